//! Evaluation batches: every example once, grouped by similar length.

use super::plan::{PlanError, batches_by_tokens};

/// Maximum size of an evaluation batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvalLimit {
    /// Maximum of sentences x longest side, in tokens.
    Tokens(u32),
    /// Maximum number of sentences.
    Sentences(u32),
}

/// Batches of all examples. They are sorted by source length, the longest first (so that a lack of
/// memory shows at once), then by target length and index. An example longer than
/// [`EvalLimit::Tokens`] has its own batch.
pub fn eval_batches(lengths: &[(u32, u32)], limit: EvalLimit) -> Vec<Vec<u32>> {
    let mut order: Vec<u32> = (0..lengths.len() as u32).collect();
    order.sort_by_key(|&example| std::cmp::Reverse(lengths[example as usize]));
    match limit {
        EvalLimit::Sentences(sentences) => {
            order.chunks(sentences.max(1) as usize).map(<[u32]>::to_vec).collect()
        }
        EvalLimit::Tokens(max_tokens) => {
            let size = |example: &u32| lengths[*example as usize].0.max(lengths[*example as usize].1);
            let (long, fitting): (Vec<u32>, Vec<u32>) = order.into_iter().partition(|e| size(e) > max_tokens);
            let fitting: Result<_, PlanError> = batches_by_tokens(&fitting, lengths, max_tokens, 1, 1);
            let mut batches: Vec<Vec<u32>> = long.into_iter().map(|example| vec![example]).collect();
            batches.extend(fitting.expect("examples that are too long were set apart"));
            batches
        }
    }
}

/// Puts results that came batch by batch into the order of the examples. `None` unless there is
/// exactly one result for each example of `batches`.
pub fn restore_order<T>(batches: &[Vec<u32>], results: impl IntoIterator<Item = T>) -> Option<Vec<T>> {
    let count = batches.iter().map(Vec::len).sum();
    let mut places: Vec<Option<T>> = std::iter::repeat_with(|| None).take(count).collect();
    let mut results = results.into_iter();
    for &example in batches.iter().flatten() {
        let place = places.get_mut(example as usize)?;
        if place.replace(results.next()?).is_some() {
            return None;
        }
    }
    if results.next().is_some() {
        return None;
    }
    places.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_sources_come_first() {
        let batches = eval_batches(&[(3, 3), (9, 1), (3, 4), (5, 5)], EvalLimit::Sentences(3));
        assert_eq!(batches, [vec![1, 3, 2], vec![0]]);
    }

    #[test]
    fn an_example_that_is_longer_than_the_limit_has_a_batch_of_its_own() {
        let batches = eval_batches(&[(3, 3), (90, 1), (3, 3)], EvalLimit::Tokens(6));
        assert_eq!(batches, [vec![1], vec![0, 2]]);
        assert!(eval_batches(&[], EvalLimit::Tokens(6)).is_empty());
    }

    #[test]
    fn results_that_do_not_fit_the_batches_are_refused() {
        assert_eq!(restore_order(&[vec![1, 0]], ["b", "a"]), Some(vec!["a", "b"]));
        assert_eq!(restore_order(&[vec![1, 0]], ["b"]), None);
        assert_eq!(restore_order(&[vec![1, 0]], ["b", "a", "c"]), None);
        assert_eq!(restore_order(&[vec![0, 0]], ["b", "a"]), None);
        assert_eq!(restore_order(&[vec![0, 2]], ["b", "a"]), None);
    }

    proptest! {
        #[test]
        fn the_original_order_is_restored(
            lengths in prop::collection::vec((1_u32..50, 1_u32..50), 0..200),
            limit in 1_u32..300,
            by_tokens in any::<bool>(),
        ) {
            let limit = if by_tokens { EvalLimit::Tokens(limit) } else { EvalLimit::Sentences(limit) };
            let batches = eval_batches(&lengths, limit);
            let results: Vec<(u32, u32)> = batches.iter().flatten().map(|&e| lengths[e as usize]).collect();
            prop_assert_eq!(restore_order(&batches, results), Some(lengths));
        }
    }
}
