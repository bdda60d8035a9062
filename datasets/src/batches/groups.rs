//! Concatenates pairs of several splits.

use std::sync::Arc;

use super::PairSource;

/// Concatenated splits, e.g. the same text in several target languages.
pub struct Groups {
    groups: Vec<Arc<dyn PairSource>>,
    /// Index of each group's first pair.
    firsts: Vec<u32>,
}

impl Groups {
    /// Concatenates `groups` in this order.
    pub fn new(groups: Vec<Arc<dyn PairSource>>) -> Self {
        let mut firsts = Vec::with_capacity(groups.len());
        let mut first = 0;
        for group in &groups {
            firsts.push(first);
            first += u32::try_from(group.len()).expect("indices of pairs are 32 bit");
        }
        Self { groups, firsts }
    }

    /// Number of pairs in each group.
    pub fn sizes(&self) -> Vec<usize> {
        self.groups.iter().map(|group| group.len()).collect()
    }

    /// The group of pair `index`; never an empty group.
    pub fn group(&self, index: u32) -> usize {
        self.firsts.partition_point(|&first| first <= index) - 1
    }
}

impl PairSource for Groups {
    fn len(&self) -> usize {
        self.groups.iter().map(|group| group.len()).sum()
    }

    fn pair(&self, index: u32) -> (&[u32], &[u32]) {
        let group = self.group(index);
        self.groups[group].pair(index - self.firsts[group])
    }
}

#[cfg(test)]
mod tests {
    use super::super::collate::tests::Pairs;
    use super::*;

    #[test]
    fn pairs_are_those_of_their_group() {
        let group = |ids: &[u32]| -> Arc<dyn PairSource> {
            Arc::new(Pairs(ids.iter().map(|&id| (vec![id], vec![id + 100])).collect()))
        };
        let groups = Groups::new(vec![group(&[1, 2]), group(&[3]), group(&[4, 5])]);
        assert_eq!((groups.len(), groups.sizes()), (5, vec![2, 1, 2]));
        let found: Vec<(usize, u32, u32)> =
            (0..5).map(|i| (groups.group(i), groups.pair(i).0[0], groups.pair(i).1[0])).collect();
        assert_eq!(found, [(0, 1, 101), (0, 2, 102), (1, 3, 103), (2, 4, 104), (2, 5, 105)]);
    }
}
