//! Checks the searches of speech synthesis recipes.

use super::Findings;
use crate::spec::FreeRunningSpec;

/// Checks a free-running search.
pub(super) fn free_running(spec: &FreeRunningSpec, path: &str, findings: &mut Findings<'_, '_>) {
    findings.require(spec.threshold > 0.0 && spec.threshold < 1.0, &format!("{path}.threshold"), || {
        format!("`{path}.threshold` is {}; it is a probability between 0 and 1", spec.threshold)
    });
    super::sequences::longest_of(&spec.max_frames, &format!("{path}.max_frames"), findings);
    let vocoder = &spec.vocoder;
    findings.above_zero(vocoder.power, &format!("{path}.vocoder.power"));
    findings.share(vocoder.momentum, &format!("{path}.vocoder.momentum"));
}
