//! Greedy CTC search: the most likely class of each frame.

use super::{Frames, Transcript};

/// Returns the best path with repeats merged and blanks removed. The score is that of the path.
pub fn greedy(frames: Frames<'_>) -> Transcript {
    let mut found =
        Transcript { units: Vec::new(), times: Vec::new(), score: 0.0, language_model: Some(0.0) };
    let mut before = frames.blank;
    for (t, row) in frames.rows().enumerate() {
        let (mut class, mut score) = (0u32, f32::NEG_INFINITY);
        for (i, &log_prob) in row.iter().enumerate() {
            // The first of equal scores, as in every argmax.
            if log_prob > score {
                (class, score) = (i as u32, log_prob);
            }
        }
        found.score += f64::from(score);
        if class != frames.blank {
            match found.times.last_mut() {
                Some(time) if class == before => time.end = t + 1,
                _ => {
                    found.units.push(class);
                    found.times.push(t..t + 1);
                }
            }
        }
        before = class;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes rows with one dominant class each.
    fn found(path: &[u32]) -> Transcript {
        let row = |&class: &u32| (0..4).map(move |i| if i == class { -0.25f32 } else { -9.0 });
        let log_probs: Vec<f32> = path.iter().flat_map(row).collect();
        greedy(Frames { log_probs: &log_probs, classes: 4, blank: 3 })
    }

    #[test]
    fn runs_are_one_label_and_blanks_part_them() {
        let transcript = found(&[3, 1, 1, 3, 1, 2, 2, 0, 3]);
        assert_eq!(transcript.units, [1, 1, 2, 0]);
        assert_eq!(transcript.times, [1..3, 4..5, 5..7, 7..8]);
        assert_eq!(transcript.score, -0.25 * 9.0);
    }

    #[test]
    fn nothing_is_found_in_nothing() {
        assert!(found(&[]).units.is_empty());
        assert!(found(&[3, 3]).units.is_empty());
    }

    #[test]
    fn the_first_of_equals_is_taken() {
        let log_probs = [-1.0f32, -1.0, -1.0, -1.0];
        assert_eq!(greedy(Frames { log_probs: &log_probs, classes: 4, blank: 3 }).units, [0]);
    }
}
