//! Batches: which examples they contain, their order, and their padded form.

mod ahead;
mod collate;
mod eval;
mod groups;
mod plan;
mod prefetch;

pub use ahead::{Ahead, ThreadEnded};
pub use collate::{Batch, Collator, PaddedSequences, PaddingWaste};
pub use eval::{EvalLimit, eval_batches, restore_order};
pub use groups::Groups;
pub use plan::{BatchPlan, PlanError};
pub use prefetch::{PlacedBatch, Position, Prefetch, PrefetchOptions};

/// Pairs of token sequences by index.
pub trait PairSource: Send + Sync {
    /// Number of pairs.
    fn len(&self) -> usize;

    /// Whether there are no pairs.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Source and target of pair `index`, special tokens included. `index` is below [`Self::len`].
    fn pair(&self, index: u32) -> (&[u32], &[u32]);

    /// (source, target) lengths of all pairs, in tokens.
    fn lengths(&self) -> Vec<(u32, u32)> {
        (0..self.len() as u32)
            .map(|index| {
                let (source, target) = self.pair(index);
                (source.len() as u32, target.len() as u32)
            })
            .collect()
    }
}
