//! Assigns examples to batches, and orders the batches of an epoch. The result is a function of
//! (seed, epoch) alone.

use std::ops::Range;

use zoo_recipes::tasks::translation::TextBatchingSpec;

use crate::random::{Purpose, RandomStream};

/// Why batches cannot be planned.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    /// An example is longer than the limit of a batch.
    #[error(
        "example {example} has {length} tokens (padded), more than max_tokens = {max_tokens}\nhint: raise data.batching.max_tokens or set data.filter.max_source_tokens and max_target_tokens"
    )]
    TooLong {
        /// Index of the example.
        example: u32,
        /// Length of its longer side, padded.
        length: u32,
        /// Maximum number of tokens of a batch.
        max_tokens: u32,
    },
    /// There are not enough examples for one batch.
    #[error(
        "{examples} examples do not fill one batch of {sentences}\nhint: lower data.batching.sentences (of buckets, times batches_together) or give more data"
    )]
    TooFew {
        /// Number of examples.
        examples: usize,
        /// Number of sentences in a batch, or in a block of batches.
        sentences: u64,
    },
    /// A setting of the recipe must not be zero.
    #[error("data.batching: {0} must be at least 1\nhint: leave the key out for its default")]
    Zero(&'static str),
}

#[derive(Debug, Clone)]
enum Kind {
    /// Each epoch shuffles the examples of each pool and cuts them into blocks of batches of this
    /// many sentences.
    Shuffled { pools: Vec<Vec<u32>>, sentences: usize, together: usize },
    /// Batches that are made once; each epoch shuffles their order.
    Frozen(Vec<Vec<u32>>),
}

/// The batches of all epochs.
#[derive(Debug, Clone)]
pub struct BatchPlan {
    kind: Kind,
    seed: u64,
    pad_length_to: u32,
}

impl BatchPlan {
    /// Plans batches of examples with these (source, target) lengths, special tokens included.
    ///
    /// - `sentences`: every epoch shuffles all examples and cuts them into batches. The remainder
    ///   is dropped.
    /// - `tokens` (fairseq): examples are shuffled once, then sorted by target length and, stably,
    ///   by source length. They are added to a batch in this order while sentences x longest side,
    ///   padding included, is at most `max_tokens`. A batch with more sentences than
    ///   `sentences_multiple_of` is cut to a multiple of it; the rest begins the next batch. The
    ///   batches are fixed; an epoch changes only their order.
    /// - `buckets` (NVIDIA's GNMT): as `sentences`, within each bucket of lengths, in blocks of
    ///   batches that stay together.
    pub fn new(lengths: &[(u32, u32)], batching: &TextBatchingSpec, seed: u64) -> Result<Self, PlanError> {
        Self::of_groups(lengths, &[lengths.len()], batching, seed)
    }

    /// Plans batches of examples in several groups, e.g. one per target language. `groups` are
    /// their sizes, in order. A batch has examples of one group. The batches of all groups are
    /// ordered together.
    pub fn of_groups(
        lengths: &[(u32, u32)],
        groups: &[usize],
        batching: &TextBatchingSpec,
        seed: u64,
    ) -> Result<Self, PlanError> {
        let mut first = 0;
        let groups: Vec<Range<u32>> = groups
            .iter()
            .map(|&examples| {
                let end = first + u32::try_from(examples).expect("indices of examples are 32 bit");
                std::mem::replace(&mut first, end)..end
            })
            .collect();
        assert_eq!(first as usize, lengths.len(), "every example is in a group");
        match *batching {
            TextBatchingSpec::Sentences { sentences, pad_length_to } => {
                at_least_one(&[(sentences, "sentences"), (pad_length_to, "pad_length_to")])?;
                if let Some(few) = groups.iter().find(|group| group.len() < sentences as usize) {
                    return Err(PlanError::TooFew { examples: few.len(), sentences: sentences.into() });
                }
                let pools = groups.into_iter().map(Range::collect).collect();
                let kind = Kind::Shuffled { pools, sentences: sentences as usize, together: 1 };
                Ok(Self { kind, seed, pad_length_to })
            }
            TextBatchingSpec::Buckets { sentences, buckets, width, batches_together, pad_length_to } => {
                at_least_one(&[
                    (sentences, "sentences"),
                    (buckets, "buckets"),
                    (width, "width"),
                    (batches_together, "batches_together"),
                    (pad_length_to, "pad_length_to"),
                ])?;
                let block = u64::from(sentences) * u64::from(batches_together);
                let bucket = |&(source, target): &(u32, u32)| (source.max(target) / width).min(buckets - 1);
                // Higher buckets are empty.
                let buckets = lengths.iter().map(bucket).max().map_or(0, |last| last as usize + 1);
                let mut pools = Vec::with_capacity(groups.len() * buckets);
                for group in groups {
                    let (examples, first) = (group.len(), pools.len());
                    pools.resize(first + buckets, Vec::new());
                    for example in group {
                        pools[first + bucket(&lengths[example as usize]) as usize].push(example);
                    }
                    if pools[first..].iter().all(|pool| (pool.len() as u64) < block) {
                        return Err(PlanError::TooFew { examples, sentences: block });
                    }
                }
                let (sentences, together) = (sentences as usize, batches_together as usize);
                Ok(Self { kind: Kind::Shuffled { pools, sentences, together }, seed, pad_length_to })
            }
            TextBatchingSpec::Tokens { max_tokens, sentences_multiple_of, pad_length_to } => {
                at_least_one(&[
                    (max_tokens, "max_tokens"),
                    (sentences_multiple_of, "sentences_multiple_of"),
                    (pad_length_to, "pad_length_to"),
                ])?;
                if groups.iter().any(Range::is_empty) {
                    return Err(PlanError::TooFew { examples: 0, sentences: 1 });
                }
                let mut batches = Vec::new();
                for (number, group) in (0..).zip(groups) {
                    let mut order: Vec<u32> = group.collect();
                    RandomStream::new(seed, Purpose::Bucketing, number).shuffle(&mut order);
                    order.sort_by_key(|&example| lengths[example as usize].1);
                    order.sort_by_key(|&example| lengths[example as usize].0);
                    batches.extend(batches_by_tokens(
                        &order,
                        lengths,
                        max_tokens,
                        sentences_multiple_of,
                        pad_length_to,
                    )?);
                }
                Ok(Self { kind: Kind::Frozen(batches), seed, pad_length_to })
            }
        }
    }

    /// Number of batches per epoch; the same for every epoch.
    pub fn batches_per_epoch(&self) -> usize {
        match &self.kind {
            Kind::Shuffled { pools, sentences, together } => {
                pools.iter().map(|pool| pool.len() / (sentences * together) * together).sum()
            }
            Kind::Frozen(batches) => batches.len(),
        }
    }

    /// The multiple to which lengths are padded.
    pub fn pad_length_to(&self) -> u32 {
        self.pad_length_to
    }

    /// The batches of an epoch (counted from 0), as indices of examples.
    pub fn epoch(&self, epoch: u64) -> Vec<Vec<u32>> {
        let mut stream = RandomStream::new(self.seed, Purpose::EpochOrder, epoch);
        match &self.kind {
            Kind::Shuffled { pools, sentences, together } => {
                let mut blocks: Vec<Vec<u32>> = Vec::new();
                for pool in pools {
                    let mut order = pool.clone();
                    stream.shuffle(&mut order);
                    blocks.extend(order.chunks_exact(sentences * together).map(<[u32]>::to_vec));
                }
                // The blocks of a single pool are already in a random order.
                if pools.len() > 1 {
                    stream.shuffle(&mut blocks);
                }
                blocks.iter().flat_map(|block| block.chunks_exact(*sentences).map(<[u32]>::to_vec)).collect()
            }
            Kind::Frozen(batches) => {
                let mut order: Vec<u32> = (0..batches.len() as u32).collect();
                stream.shuffle(&mut order);
                order.into_iter().map(|batch| batches[batch as usize].clone()).collect()
            }
        }
    }

    /// The batches of an epoch that rank `rank` of `world` computes: batch b goes to rank b mod
    /// `world`. All ranks get the same number of batches; missing ones at the end are empty and do
    /// not count.
    pub fn shard(&self, epoch: u64, rank: usize, world: usize) -> Vec<Vec<u32>> {
        let world = world.max(1);
        let each = self.batches_per_epoch().div_ceil(world);
        let mut mine: Vec<Vec<u32>> = self.epoch(epoch).into_iter().skip(rank).step_by(world).collect();
        mine.resize(each, Vec::new());
        mine
    }
}

fn at_least_one(numbers: &[(u32, &'static str)]) -> Result<(), PlanError> {
    match numbers.iter().find(|(number, _)| *number == 0) {
        Some((_, key)) => Err(PlanError::Zero(key)),
        None => Ok(()),
    }
}

/// Cuts `order` into batches; see [`BatchPlan::new`].
pub(super) fn batches_by_tokens(
    order: &[u32],
    lengths: &[(u32, u32)],
    max_tokens: u32,
    multiple: u32,
    pad_length_to: u32,
) -> Result<Vec<Vec<u32>>, PlanError> {
    let size = |example: u32| {
        let (source, target) = lengths[example as usize];
        u64::from(source.max(target)).next_multiple_of(u64::from(pad_length_to))
    };
    let mut batches = Vec::new();
    let mut batch: Vec<u32> = Vec::new();
    let mut longest = 0;
    for &example in order {
        let length = size(example);
        if length > u64::from(max_tokens) {
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            return Err(PlanError::TooLong { example, length, max_tokens });
        }
        // The rest of a cut and this example may again exceed the limit.
        while !batch.is_empty() && (batch.len() as u64 + 1) * longest.max(length) > u64::from(max_tokens) {
            let multiple = multiple as usize;
            let whole = batch.len() / multiple * multiple;
            let rest = batch.split_off(if whole == 0 { batch.len() } else { whole });
            batches.push(std::mem::replace(&mut batch, rest));
            longest = batch.iter().map(|&e| size(e)).max().unwrap_or(0);
        }
        batch.push(example);
        longest = longest.max(length);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    Ok(batches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(max_tokens: u32, sentences_multiple_of: u32, pad_length_to: u32) -> TextBatchingSpec {
        TextBatchingSpec::Tokens { max_tokens, sentences_multiple_of, pad_length_to }
    }

    #[test]
    fn a_batch_is_of_one_group_and_every_group_is_in_every_epoch() {
        let lengths: Vec<(u32, u32)> = (0..100).map(|i| (3 + i % 7, 3 + i % 5)).collect();
        for batching in [TextBatchingSpec::Sentences { sentences: 4, pad_length_to: 1 }, tokens(60, 1, 1)] {
            let plan = BatchPlan::of_groups(&lengths, &[60, 40], &batching, 5).unwrap();
            let group = |batch: &[u32]| {
                let second = batch.iter().filter(|&&example| example >= 60).count();
                assert!(second == 0 || second == batch.len(), "{batch:?}");
                second > 0
            };
            for epoch in 0..3 {
                let batches = plan.epoch(epoch);
                assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), 100);
                let groups: Vec<bool> = batches.iter().map(|batch| group(batch)).collect();
                let turns = groups.windows(2).filter(|pair| pair[0] != pair[1]).count();
                assert!(turns > 2, "the groups take turns: {groups:?}");
            }
            let one = BatchPlan::of_groups(&lengths, &[100], &batching, 5).unwrap();
            assert_eq!(one.epoch(1), BatchPlan::new(&lengths, &batching, 5).unwrap().epoch(1));
            let few = BatchPlan::of_groups(&lengths, &[100, 0], &batching, 5).unwrap_err();
            assert!(matches!(few, PlanError::TooFew { examples: 0, .. }), "{few}");
        }
    }

    #[test]
    fn batches_of_sentences_are_a_new_order_each_epoch_and_leave_out_the_remainder() {
        let plan =
            BatchPlan::new(&[(3, 3); 10], &TextBatchingSpec::Sentences { sentences: 4, pad_length_to: 1 }, 5)
                .unwrap();
        assert_eq!((plan.batches_per_epoch(), plan.epoch(0).concat().len()), (2, 8));
        assert_eq!(plan.epoch(0), plan.epoch(0));
        assert_ne!(plan.epoch(0), plan.epoch(1));
        let mut all: Vec<u32> = (0..40).flat_map(|e| plan.epoch(e)).flatten().collect();
        assert_eq!(all.len(), 320);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 10, "in the long run every example is used");
    }

    #[test]
    fn the_order_of_an_epoch_is_fixed_for_ever() {
        let plan =
            BatchPlan::new(&[(3, 3); 8], &TextBatchingSpec::Sentences { sentences: 4, pad_length_to: 1 }, 1)
                .unwrap();
        assert_eq!(plan.epoch(0), [[0, 6, 1, 5], [7, 2, 3, 4]]);
    }

    #[test]
    fn batches_of_a_bucket_stay_together_and_the_rest_of_each_is_left_out() {
        let batching = TextBatchingSpec::Buckets {
            sentences: 3,
            buckets: 3,
            width: 10,
            batches_together: 2,
            pad_length_to: 1,
        };
        // By the longer side: 20 below 10, 14 below 20, 7 of at least 20.
        let lengths: Vec<(u32, u32)> = (0..41)
            .map(|i| match i {
                0..20 => (9, 3),
                20..34 => (5, 10 + i % 10),
                _ => (20 + 15 * (i % 3), 4),
            })
            .collect();
        let bucket = |example: u32| match example {
            0..20 => 0,
            20..34 => 1,
            _ => 2,
        };
        let plan = BatchPlan::new(&lengths, &batching, 3).unwrap();
        assert_eq!((plan.batches_per_epoch(), plan.epoch(0).concat().len()), (2 * (3 + 2 + 1), 36));
        let mut orders = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for epoch in 0..40 {
            let batches = plan.epoch(epoch);
            assert_eq!(batches.len(), 12);
            let of: Vec<u32> = batches.iter().map(|batch| bucket(batch[0])).collect();
            for (batch, of) in batches.iter().zip(&of) {
                assert!(batch.len() == 3 && batch.iter().all(|&e| bucket(e) == *of), "{batch:?}");
            }
            assert!(of.chunks(2).all(|pair| pair[0] == pair[1]), "{of:?}");
            let all: std::collections::BTreeSet<u32> = batches.into_iter().flatten().collect();
            assert_eq!(all.len(), 36, "nothing is there twice");
            seen.extend(all);
            orders.push(of);
        }
        assert_eq!(seen.len(), 41, "in the long run every example is used");
        orders.sort();
        orders.dedup();
        assert!(orders.len() > 5, "blocks of all buckets are mixed");
        let few = BatchPlan::new(&lengths[..5], &batching, 3).unwrap_err();
        assert_eq!(few, PlanError::TooFew { examples: 5, sentences: 6 });
    }

    #[test]
    fn numbers_beyond_all_measure_are_errors_and_take_no_room() {
        let most = u32::MAX;
        let batching = TextBatchingSpec::Buckets {
            sentences: most,
            buckets: most,
            width: 1,
            batches_together: most,
            pad_length_to: 1,
        };
        let sentences = u64::from(most) * u64::from(most);
        assert_eq!(
            BatchPlan::new(&[(3, 3); 9], &batching, 1).unwrap_err(),
            PlanError::TooFew { examples: 9, sentences }
        );
    }

    #[test]
    fn a_batch_of_tokens_is_cut_to_the_multiple_and_the_rest_begins_the_next() {
        let order: Vec<u32> = (0..13).collect();
        let batches = batches_by_tokens(&order, &[(5, 4); 13], 52, 8, 1).unwrap();
        // Ten sentences of length five fit. Eight are kept together, and the remaining five are the
        // end.
        assert_eq!(batches, [(0..8).collect::<Vec<_>>(), (8..13).collect()]);
        let few = batches_by_tokens(&order[..5], &[(5, 4); 5], 15, 8, 1).unwrap();
        assert_eq!(few.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2]);
    }

    #[test]
    fn batches_of_tokens_are_frozen_and_only_their_order_changes() {
        let lengths: Vec<(u32, u32)> = (0..200).map(|i| (3 + i % 3, 3 + i % 2)).collect();
        let plan = BatchPlan::new(&lengths, &tokens(100, 4, 1), 1).unwrap();
        let (mut first, mut second) = (plan.epoch(0), plan.epoch(1));
        assert_ne!(first, second);
        first.sort();
        second.sort();
        assert_eq!(first, second);
        let other = BatchPlan::new(&lengths, &tokens(100, 4, 1), 2).unwrap();
        let mut third = other.epoch(0);
        third.sort();
        assert_ne!(first, third, "another seed puts other examples of a length together");
    }

    #[test]
    fn impossible_batchings_are_errors() {
        assert_eq!(
            BatchPlan::new(&[(3, 9)], &tokens(8, 1, 1), 1).unwrap_err(),
            PlanError::TooLong { example: 0, length: 9, max_tokens: 8 }
        );
        assert!(BatchPlan::new(&[], &tokens(8, 1, 1), 1).is_err());
        assert_eq!(
            BatchPlan::new(&[(1, 1)], &tokens(8, 0, 1), 1).unwrap_err(),
            PlanError::Zero("sentences_multiple_of")
        );
        let sentences = TextBatchingSpec::Sentences { sentences: 4, pad_length_to: 1 };
        assert!(BatchPlan::new(&[(1, 1); 3], &sentences, 1).unwrap_err().to_string().contains("hint:"));
    }

    proptest! {
        #[test]
        fn every_example_is_in_exactly_one_batch_and_no_batch_is_too_large(
            lengths in prop::collection::vec((1_u32..40, 1_u32..40), 1..300),
            max_tokens in 40_u32..400,
            multiple in 1_u32..10,
            pad in 1_u32..9,
            seed in any::<u64>(),
            epoch in 0_u64..5,
            world in 1_usize..5,
        ) {
            let plan = BatchPlan::new(&lengths, &tokens(max_tokens, multiple, pad), seed);
            prop_assume!(plan.is_ok());
            let plan = plan.unwrap();
            let batches = plan.epoch(epoch);
            for batch in &batches {
                let longest = batch.iter().map(|&e| lengths[e as usize].0.max(lengths[e as usize].1)).max().unwrap();
                prop_assert!(longest.next_multiple_of(pad) * batch.len() as u32 <= max_tokens);
            }
            let mut all: Vec<u32> = batches.iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..lengths.len() as u32).collect::<Vec<_>>());
            let each = batches.len().div_ceil(world);
            for b in 0..each * world {
                let shard = plan.shard(epoch, b % world, world);
                prop_assert_eq!(shard.len(), each);
                prop_assert_eq!(&shard[b / world][..], batches.get(b).map_or(&[][..], Vec::as_slice));
            }
        }
    }
}
