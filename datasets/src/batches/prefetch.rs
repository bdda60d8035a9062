//! Makes batches ahead of time in a separate thread.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use super::{Batch, BatchPlan, Collator, PairSource};

/// Maximum number of finished batches in the queue.
const QUEUE: usize = 4;

/// A position in the sequence of all batches of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// Epoch, counted from 0.
    pub epoch: u64,
    /// Index of the batch among the rank's batches of the epoch, from 0.
    pub batch: u64,
}

/// A batch and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedBatch {
    /// Position of the batch.
    pub position: Position,
    /// Position of the next batch, stored by a checkpoint taken after this batch.
    pub next: Position,
    /// Whether it is the rank's last batch of the epoch.
    pub last_of_epoch: bool,
    /// The batch; empty if the epoch has no batches left for this rank.
    pub batch: Batch,
}

/// Start position and rank of a [`Prefetch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefetchOptions {
    /// Position of the first batch.
    pub start: Position,
    /// Rank of this process, from 0.
    pub rank: usize,
    /// Number of processes.
    pub world: usize,
    /// How batches are padded.
    pub collator: Collator,
}

/// An endless sequence of batches from a position on, epoch after epoch. At most four batches are
/// made ahead. The batches depend only on the plan and the position. Dropping it ends the thread.
#[derive(Debug)]
pub struct Prefetch {
    receiver: Option<Receiver<PlacedBatch>>,
    thread: Option<JoinHandle<()>>,
}

impl Prefetch {
    /// Starts making batches.
    pub fn new(
        pairs: Arc<dyn PairSource>,
        plan: Arc<BatchPlan>,
        options: PrefetchOptions,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("batches".into()).spawn(move || {
            for placed in sequence(pairs, plan, options) {
                // The receiver was dropped, so no more batches are needed.
                if sender.send(placed).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { receiver: Some(receiver), thread: Some(thread) })
    }
}

/// The sequence of batches, made on demand.
fn sequence(
    pairs: Arc<dyn PairSource>,
    plan: Arc<BatchPlan>,
    options: PrefetchOptions,
) -> impl Iterator<Item = PlacedBatch> {
    let PrefetchOptions { start, rank, world, collator } = options;
    // A position at or beyond the end of its epoch means the start of the next epoch.
    (start.epoch..).flat_map(move |epoch| {
        let shard = plan.shard(epoch, rank, world);
        let first = if epoch == start.epoch { start.batch as usize } else { 0 };
        let count = shard.len();
        let pairs = pairs.clone();
        shard.into_iter().enumerate().skip(first).map(move |(index, ids)| {
            let last_of_epoch = index + 1 == count;
            let next = if last_of_epoch {
                Position { epoch: epoch + 1, batch: 0 }
            } else {
                Position { epoch, batch: index as u64 + 1 }
            };
            PlacedBatch {
                position: Position { epoch, batch: index as u64 },
                next,
                last_of_epoch,
                batch: collator.batch(pairs.as_ref(), &ids),
            }
        })
    })
}

impl Iterator for Prefetch {
    type Item = PlacedBatch;

    /// The next batch; `None` only if the thread that makes them has panicked.
    fn next(&mut self) -> Option<PlacedBatch> {
        self.receiver.as_ref()?.recv().ok()
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        // The thread notices the closed channel at its next batch.
        self.receiver = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::collate::tests::Pairs;
    use super::*;
    use zoo_recipes::tasks::translation::TextBatchingSpec;

    fn pairs() -> Arc<dyn PairSource> {
        Arc::new(Pairs(
            (0..50_u32).map(|i| (vec![i + 4; 1 + i as usize % 7], vec![i + 4; 1 + i as usize % 5])).collect(),
        ))
    }

    fn options(start: Position, rank: usize, world: usize) -> PrefetchOptions {
        PrefetchOptions {
            start,
            rank,
            world,
            collator: Collator { source_pad: 0, target_pad: 0, pad_length_to: 1 },
        }
    }

    fn plan() -> Arc<BatchPlan> {
        let spec = TextBatchingSpec::Tokens { max_tokens: 24, sentences_multiple_of: 2, pad_length_to: 1 };
        Arc::new(BatchPlan::new(&pairs().lengths(), &spec, 3).unwrap())
    }

    #[test]
    fn prefetched_batches_are_those_made_one_by_one() {
        let ahead = Prefetch::new(pairs(), plan(), options(Position::default(), 0, 1)).unwrap();
        let made = sequence(pairs(), plan(), options(Position::default(), 0, 1));
        for (a, b) in ahead.zip(made).take(60) {
            assert_eq!(a, b);
        }
    }

    #[test]
    fn resuming_at_any_position_goes_on_exactly() {
        let whole: Vec<PlacedBatch> =
            Prefetch::new(pairs(), plan(), options(Position::default(), 0, 1)).unwrap().take(40).collect();
        assert!(whole.last().unwrap().position.epoch >= 2, "the test crosses epochs");
        for cut in 0..whole.len() - 1 {
            let resumed = Prefetch::new(pairs(), plan(), options(whole[cut].next, 0, 1)).unwrap();
            for (a, b) in resumed.zip(&whole[cut + 1..]).take(6) {
                assert_eq!(&a, b);
            }
        }
    }

    #[test]
    fn ranks_share_the_batches_of_an_epoch() {
        let whole = plan().epoch(0);
        let mut shared: Vec<Vec<u32>> = Vec::new();
        let ranks: Vec<Vec<PlacedBatch>> = (0..3)
            .map(|rank| {
                let ahead = Prefetch::new(pairs(), plan(), options(Position::default(), rank, 3)).unwrap();
                ahead.take_while(|b| b.position.epoch == 0).collect()
            })
            .collect();
        for index in 0..ranks[0].len() {
            shared.extend(ranks.iter().map(|rank| rank[index].batch.ids.clone()));
        }
        while shared.last().is_some_and(Vec::is_empty) {
            shared.pop();
        }
        assert_eq!(shared, whole);
        assert!(ranks.iter().all(|rank| rank.last().unwrap().last_of_epoch));
    }

    #[test]
    fn dropping_it_early_ends_its_thread() {
        let ahead = Prefetch::new(pairs(), plan(), options(Position::default(), 0, 1)).unwrap();
        drop(ahead); // joins the thread; would hang if it did not end
        let mut ahead = Prefetch::new(pairs(), plan(), options(Position::default(), 0, 1)).unwrap();
        assert!(ahead.next().is_some());
    }
}
