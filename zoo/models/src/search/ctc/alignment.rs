//! Forced alignment of frames with known labels.

use std::ops::Range;

use super::Frames;

/// Returns the most likely frames of each label; `None` if there are too few frames for the labels.
pub fn alignment(frames: Frames<'_>, labels: &[u32]) -> Option<Vec<Range<usize>>> {
    let n = 2 * labels.len() + 1;
    let class = |state: usize| if state.is_multiple_of(2) { frames.blank } else { labels[state / 2] };
    let mut scores = vec![f64::NEG_INFINITY; n];
    // For each frame and state, by how many states the best path advanced.
    let mut steps: Vec<u8> = Vec::new();
    for (t, row) in frames.rows().enumerate() {
        let before = std::mem::replace(&mut scores, vec![f64::NEG_INFINITY; n]);
        for state in 0..n {
            let (mut step, mut score) = match t {
                0 if state < 2 => (0, 0.0),
                0 => (0, f64::NEG_INFINITY),
                _ => (0u8, before[state]),
            };
            let skips = state >= 3 && state % 2 == 1 && class(state) != class(state - 2);
            for back in (1..=2usize).filter(|&back| t > 0 && back <= state && (back == 1 || skips)) {
                if before[state - back] > score {
                    (step, score) = (back as u8, before[state - back]);
                }
            }
            scores[state] = score + f64::from(row[class(state) as usize]);
            steps.push(step);
        }
    }
    let mut state = n - 1;
    if n > 1 && scores[n - 2] > scores[state] {
        state = n - 2;
    }
    if scores[state] == f64::NEG_INFINITY && !(labels.is_empty() && steps.is_empty()) {
        return None;
    }
    let mut times = vec![0..0; labels.len()];
    for t in (0..steps.len() / n).rev() {
        if state % 2 == 1 {
            let time = &mut times[state / 2];
            *time = t..if time.end == 0 { t + 1 } else { time.end };
        }
        state -= usize::from(steps[t * n + state]);
    }
    Some(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(path: &[u32], labels: &[u32]) -> Option<Vec<Range<usize>>> {
        let row = |&class: &u32| (0..4).map(move |i| if i == class { 0.0f32 } else { -9.0 });
        let log_probs: Vec<f32> = path.iter().flat_map(row).collect();
        alignment(Frames { log_probs: &log_probs, classes: 4, blank: 3 }, labels)
    }

    #[test]
    fn labels_have_their_frames() {
        assert_eq!(times(&[3, 1, 1, 3, 1, 2, 2, 0, 3], &[1, 1, 2, 0]).unwrap(), [1..3, 4..5, 5..7, 7..8]);
        assert_eq!(times(&[1, 2], &[1, 2]).unwrap(), [0..1, 1..2]);
        // Against the frames' scores: a blank must separate the two equal labels.
        assert_eq!(times(&[1, 1, 1], &[1, 1]).unwrap(), [0..1, 2..3]);
    }

    #[test]
    fn too_few_frames_have_no_alignment() {
        assert_eq!(times(&[1, 1], &[1, 1]), None);
        assert_eq!(times(&[], &[1]), None);
        assert_eq!(times(&[], &[]), Some(vec![]));
        assert_eq!(times(&[3, 3], &[]), Some(vec![]));
    }
}
