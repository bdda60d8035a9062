//! One-token extensions of hypotheses.

/// A one-token extension: index of the hypothesis in its sentence, token, and log-probability of
/// the whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extension {
    pub parent: usize,
    pub token: u32,
    pub log_p: f64,
}

/// Returns the `count` most likely extensions that are allowed, best first. Equal ones are in the
/// order of hypotheses, then tokens. `log_ps` are the log-probabilities of the hypotheses; `scores`
/// has one row of the vocabulary for each.
pub(super) fn likeliest(
    log_ps: impl Iterator<Item = f64>,
    scores: &[f32],
    vocabulary: usize,
    count: usize,
    allows: impl Fn(u32) -> bool,
) -> Vec<Extension> {
    let mut best: Vec<Extension> = Vec::with_capacity(count + 1);
    for (parent, (before, row)) in log_ps.zip(scores.chunks_exact(vocabulary)).enumerate() {
        for (token, &step) in (0..).zip(row) {
            let log_p = before + f64::from(step);
            if best.len() == count && best.last().is_none_or(|worst| log_p <= worst.log_p) {
                continue;
            }
            if !allows(token) || !log_p.is_finite() {
                continue;
            }
            let place = best.partition_point(|other| other.log_p >= log_p);
            best.insert(place, Extension { parent, token, log_p });
            best.truncate(count);
        }
    }
    best
}
