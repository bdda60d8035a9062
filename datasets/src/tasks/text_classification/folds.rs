//! Cross-validation: splits whose texts each belong to the model of a part.

use zoo_recipes::tasks::text_classification::{FoldOrder, FoldsSpec};

use super::prepared::TextSplit;
use crate::random::{Purpose, RandomStream};

/// The splits of `all` texts: those to train on, those that select an epoch, and all texts. Each
/// split is ordered by part. `batch` is the number of texts of a training batch.
pub(super) fn folded(all: &TextSplit, spec: &FoldsSpec, batch: usize) -> [TextSplit; 3] {
    let batch = batch.max(1);
    let mut train = all.part(&all.name, &[], &[]);
    let mut held_out = all.part(&spec.held_out, &[], &[]);
    let mut tested = all.part(&spec.tested, &[], &[]);
    for (fold, (part, mut others)) in (0u32..).zip(parts(all.texts.len(), spec)) {
        RandomStream::new(spec.seed, Purpose::HeldOut, u64::from(fold)).shuffle(&mut others);
        let batches = (others.len() / batch) as f64 * spec.trained;
        let trained = others.len().min(batches.round() as usize * batch);
        for (split, texts) in
            [(&mut train, &others[..trained]), (&mut held_out, &others[trained..]), (&mut tested, &part)]
        {
            split.append(all, texts, fold);
        }
    }
    [train, held_out, tested]
}

/// The indices of each part, and of the texts that its model may see, both in the order of the
/// file.
fn parts(texts: usize, spec: &FoldsSpec) -> Vec<(Vec<usize>, Vec<usize>)> {
    let count = spec.count.max(1) as usize;
    let mut order: Vec<usize> = (0..texts).collect();
    if spec.order == FoldOrder::Shuffled {
        // The streams below `count` draw the held-out texts.
        RandomStream::new(spec.seed, Purpose::HeldOut, count as u64).shuffle(&mut order);
    }
    let of = |fold: usize| {
        let (first, end) = (fold * texts / count, (fold + 1) * texts / count);
        let mut part = order[first..end].to_vec();
        // Slices of the file overlap by one text at both ends, as in sent-conv-torch.
        let overlap = usize::from(spec.order == FoldOrder::AsInTheFile);
        let front = &order[..texts.min(first + overlap)];
        let mut others = [front, &order[end.saturating_sub(overlap)..]].concat();
        part.sort_unstable();
        others.sort_unstable();
        (part, others)
    };
    (0..count).map(of).collect()
}
