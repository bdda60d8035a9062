//! Source of batches for the training loop.

use crate::error::OtherError;

/// The share of an epoch's batches that a worker processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Rank of this worker.
    pub rank: u64,
    /// Number of workers.
    pub world: u64,
    /// Number of batches of an update.
    pub group: u64,
}

impl Share {
    /// Whether the batch at `index` of an epoch belongs to this worker. The batches of each update
    /// are assigned round-robin.
    pub fn has(&self, index: u64) -> bool {
        index % self.group % self.world == self.rank
    }
}

/// A batch with its size.
#[derive(Debug, Clone)]
pub struct Fetched<B> {
    pub batch: B,
    /// Number of tokens, frames or images, for the speed.
    pub tokens: u64,
}

/// Batches in the order of one epoch.
pub type Batches<'a, B> = Box<dyn Iterator<Item = Result<Fetched<B>, OtherError>> + 'a>;

/// A source of batches. A batch depends only on the seed, the epoch and its index.
pub trait BatchSource<B> {
    /// Number of batches of an epoch (counted from 0), over all workers.
    fn epoch_len(&mut self, epoch: u64) -> Result<u64, OtherError>;

    /// The batches of an epoch from index `from` on, in order, limited to those of `share`. May
    /// read ahead.
    fn batches(&mut self, epoch: u64, from: u64, share: Share) -> Result<Batches<'_, B>, OtherError>;
}
