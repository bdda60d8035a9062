//! Cross-validation: splits whose texts each belong to the model of a part.

use zoo_recipes::tasks::text_classification::FoldsSpec;

use super::prepared::TextSplit;
use crate::random::{Purpose, RandomStream};

/// The splits of `all` texts: those to train on, part by part; those that select an epoch, part by
/// part; and all texts in their order, each of its own part. `batch` is the number of texts of a
/// training batch.
///
/// As in sent-conv-torch, the slices overlap: the first and the last text of a part are also among
/// those that its model is trained on.
pub(super) fn folded(all: &TextSplit, spec: &FoldsSpec, batch: usize) -> [TextSplit; 3] {
    let (texts, count, batch) = (all.texts.len(), spec.count.max(1) as usize, batch.max(1));
    let mut train = all.part(&all.name, &[], &[]);
    let mut held_out = all.part(&spec.held_out, &[], &[]);
    let mut tested = all.part(&spec.tested, &[], &[]);
    for fold in 0..count {
        let (first, end) = (fold * texts / count, (fold + 1) * texts / count);
        let part: Vec<usize> = (first..end).collect();
        let mut others: Vec<usize> = (0..texts.min(first + 1)).chain(end.saturating_sub(1)..texts).collect();
        RandomStream::new(spec.seed, Purpose::HeldOut, fold as u64).shuffle(&mut others);
        let batches = (others.len() / batch) as f64 * spec.trained;
        let trained = others.len().min(batches.round() as usize * batch);
        for (split, texts) in
            [(&mut train, &others[..trained]), (&mut held_out, &others[trained..]), (&mut tested, &part)]
        {
            split.append(all, texts, fold as u32);
        }
    }
    [train, held_out, tested]
}
