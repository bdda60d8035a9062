//! What the loop takes batches from.

use crate::error::OtherError;

/// Which batches of an epoch a worker takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// This worker.
    pub rank: u64,
    /// Workers.
    pub world: u64,
    /// Batches of an update.
    pub group: u64,
}

impl Share {
    /// Whether the batch at `index` of an epoch is this worker's: the batches of each update are dealt out in turn.
    pub fn has(&self, index: u64) -> bool {
        index % self.group % self.world == self.rank
    }
}

/// A batch and what its speed is counted in.
#[derive(Debug, Clone)]
pub struct Fetched<B> {
    /// The batch.
    pub batch: B,
    /// Tokens, frames, images.
    pub tokens: u64,
}

/// Batches in the order of one epoch.
pub type Batches<'a, B> = Box<dyn Iterator<Item = Result<Fetched<B>, OtherError>> + 'a>;

/// Where batches come from. They depend on the seed, the epoch and their index alone.
pub trait BatchSource<B> {
    /// Batches of an epoch (counted from 0), over all workers.
    fn epoch_len(&mut self, epoch: u64) -> Result<u64, OtherError>;

    /// The batches of an epoch from index `from` on, in order: those alone that `share` has. May read ahead.
    fn batches(&mut self, epoch: u64, from: u64, share: Share) -> Result<Batches<'_, B>, OtherError>;
}
