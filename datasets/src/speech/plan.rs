//! Assigns training examples to batches and orders the batches, as a function of seed and epoch.

use std::ops::Range;

use zoo_recipes::RecordingBatchingSpec;

use super::error::SpeechError;
use crate::random::{Purpose, RandomStream};

/// How the examples of an epoch are batched. An example is an utterance at one of its speeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Plan {
    /// This many utterances per batch; the remainder is dropped.
    Utterances(usize),
    /// As many utterances as have at most this many samples together, but at least one. No
    /// utterance is dropped.
    Samples(f64),
}

/// The batches of an epoch.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    order: Vec<u32>,
    /// End of each batch in the order of the examples.
    ends: Vec<u32>,
}

impl Plan {
    pub fn new(spec: &RecordingBatchingSpec, rate: u32) -> Result<Self, SpeechError> {
        match *spec {
            RecordingBatchingSpec::Utterances { utterances: 0 } => Err(SpeechError::recipe(
                "batching.utterances",
                "a batch has at least one utterance",
                "utterances = 32",
            )),
            RecordingBatchingSpec::Utterances { utterances } => Ok(Self::Utterances(utterances as usize)),
            RecordingBatchingSpec::Seconds { max_seconds } if max_seconds > 0.0 => {
                Ok(Self::Samples(max_seconds * f64::from(rate)))
            }
            RecordingBatchingSpec::Seconds { max_seconds } => Err(SpeechError::recipe(
                "batching.max_seconds",
                format!("no batch lasts {max_seconds} seconds"),
                "max_seconds = 30.0",
            )),
        }
    }

    /// The batches of an epoch of `examples` examples. `samples` gives the number of samples of
    /// each.
    pub fn epoch(self, examples: u32, samples: impl Fn(u32) -> u64, seed: u64, epoch: u64) -> Epoch {
        let mut order: Vec<u32> = (0..examples).collect();
        RandomStream::new(seed, Purpose::EpochOrder, epoch).shuffle(&mut order);
        let mut ends = Vec::new();
        match self {
            Self::Utterances(count) => {
                order.truncate(order.len() / count * count);
                ends.extend((1..=order.len() / count).map(|batch| (batch * count) as u32));
            }
            // Follows lhotse's SimpleCutSampler.
            Self::Samples(most) => {
                let (mut sum, mut first) = (0_u64, 0);
                for (place, example) in (0..).zip(&order) {
                    let length = samples(*example);
                    if place > first && (sum + length) as f64 > most {
                        ends.push(place);
                        (sum, first) = (0, place);
                    }
                    sum += length;
                }
                ends.extend((!order.is_empty()).then_some(examples));
            }
        }
        Epoch { order, ends }
    }
}

impl Epoch {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The examples of batch `index`; `None` if there is no such batch.
    pub fn batch(&self, index: usize) -> Option<&[u32]> {
        let end = *self.ends.get(index)? as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        let range: Range<usize> = start..end;
        self.order.get(range)
    }

    pub fn batches(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).filter_map(|index| self.batch(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(text: &str) -> Result<Plan, SpeechError> {
        Plan::new(&serde_json::from_str(text).unwrap(), 10)
    }

    #[test]
    fn a_fixed_number_leaves_the_remainder_out() {
        let epoch = plan(r#"{"kind": "utterances", "utterances": 4}"#).unwrap().epoch(10, |_| 1, 1, 0);
        assert_eq!(epoch.batches().map(<[u32]>::len).collect::<Vec<_>>(), [4, 4]);
        assert_eq!((epoch.len(), epoch.batch(2)), (2, None));
    }

    #[test]
    fn what_no_batch_can_be_made_of_is_refused() {
        for bad in
            [r#"{"kind": "utterances", "utterances": 0}"#, r#"{"kind": "seconds", "max_seconds": 0.0}"#]
        {
            assert!(plan(bad).unwrap_err().to_string().contains("data.batching"), "{bad}");
        }
    }

    #[test]
    fn the_longest_sum_itself_still_fits() {
        let epoch = Plan::Samples(30.0).epoch(6, |_| 10, 1, 0);
        assert_eq!(epoch.batches().map(<[u32]>::len).collect::<Vec<_>>(), [3, 3]);
        assert_eq!(Plan::Samples(30.0).epoch(0, |_| 10, 1, 0).len(), 0);
    }

    proptest! {
        #[test]
        fn seconds_are_filled_in_order_and_nothing_is_lost(
            lengths in prop::collection::vec(1_u64..40, 1..100),
            most in 1_u64..80,
            seed in any::<u64>(),
        ) {
            let length = |example: u32| lengths[example as usize];
            let epoch = Plan::Samples(most as f64).epoch(lengths.len() as u32, length, seed, 3);
            let sum = |batch: &[u32]| batch.iter().map(|example| length(*example)).sum::<u64>();
            let batches: Vec<&[u32]> = epoch.batches().collect();
            for (at, batch) in batches.iter().enumerate() {
                prop_assert!(!batch.is_empty() && (batch.len() == 1 || sum(batch) <= most));
                if let Some(next) = batches.get(at + 1) {
                    prop_assert!(sum(batch) + length(next[0]) > most);
                }
            }
            let mut all = batches.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..lengths.len() as u32).collect::<Vec<_>>());
        }
    }
}
