//! The words that a search may spell, as a prefix tree of their labels.

/// Prefix tree of words. A place of the tree is a common beginning of words; place 0 is the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    /// The label that leads to each place; unused for place 0.
    labels: Vec<u32>,
    /// Index of the first child of each place. The children end where those of the next place
    /// begin.
    behind: Vec<u32>,
    /// Whether each place is a complete word.
    whole: Vec<bool>,
    words: usize,
    /// The label between words.
    pub(super) space: u32,
}

impl Vocabulary {
    /// Builds the tree. `letters` is the text of each label, one character; `space` is the label
    /// between words. Empty words, and words with a character that is not a letter, are left out.
    pub fn new<'w>(words: impl IntoIterator<Item = &'w str>, letters: &[String], space: u32) -> Self {
        let label = |c: char| {
            let mut text = [0u8; 4];
            let text = &*c.encode_utf8(&mut text);
            let label = letters.iter().position(|letter| letter == text).map(|label| label as u32);
            label.filter(|label| *label != space)
        };
        let spelt = words.into_iter().filter_map(|word| word.chars().map(label).collect());
        let mut words: Vec<Vec<u32>> = spelt.filter(|labels: &Vec<u32>| !labels.is_empty()).collect();
        words.sort_unstable();
        words.dedup();
        let mut tree =
            Self { labels: vec![0], behind: Vec::new(), whole: vec![false], words: words.len(), space };
        // For each place its range of sorted words, in order of depth.
        let mut through: Vec<_> = std::iter::once(0..words.len()).collect();
        let (mut depth, mut level) = (0, 0..1);
        while !level.is_empty() {
            for place in level.clone() {
                tree.behind.push(tree.labels.len() as u32);
                let mut here = through[place].clone();
                // The word that ends here sorts before the words that continue.
                here.start += usize::from(tree.whole[place]);
                while !here.is_empty() {
                    let label = words[here.start][depth];
                    let more = words[here.clone()].partition_point(|word| word[depth] == label);
                    let group = here.start..here.start + more;
                    tree.labels.push(label);
                    tree.whole.push(words[group.start].len() == depth + 1);
                    here.start = group.end;
                    through.push(group);
                }
            }
            level = level.end..tree.labels.len();
            depth += 1;
        }
        tree.behind.push(tree.labels.len() as u32);
        tree
    }

    /// Number of words that can be spelt.
    pub fn len(&self) -> usize {
        self.words
    }

    /// Whether no word can be spelt.
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// The place after `place` and one more label, if a word continues with this label.
    pub(super) fn step(&self, place: u32, label: u32) -> Option<u32> {
        let place = place as usize;
        (self.behind[place]..self.behind[place + 1]).find(|&next| self.labels[next as usize] == label)
    }

    /// Whether the place is a complete word.
    pub(super) fn is_word(&self, place: u32) -> bool {
        self.whole[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    fn letters() -> Vec<String> {
        ["a", "b", "é", " "].map(str::to_owned).to_vec()
    }

    fn walk(vocabulary: &Vocabulary, text: &str) -> Option<bool> {
        let label = |c: char| letters().iter().position(|letter| *letter == c.to_string()).unwrap() as u32;
        let place = text.chars().try_fold(0, |place, c| vocabulary.step(place, label(c)));
        place.map(|place| vocabulary.is_word(place))
    }

    #[test]
    fn what_words_begin_with_is_a_place() {
        let vocabulary = Vocabulary::new(["ab", "a", "béa", "ab", "", "abc", "ba b"], &letters(), 3);
        assert_eq!(vocabulary.len(), 3);
        for (text, found) in [
            ("", Some(false)),
            ("a", Some(true)),
            ("ab", Some(true)),
            ("b", Some(false)),
            ("bé", Some(false)),
            ("béa", Some(true)),
            ("aa", None),
            ("aba", None),
            ("é", None),
            ("ba", None),
        ] {
            assert_eq!(walk(&vocabulary, text), found, "{text}");
        }
    }

    #[test]
    fn nothing_goes_on_in_a_vocabulary_of_nothing() {
        let vocabulary = Vocabulary::new(["xyz", ""], &letters(), 3);
        assert!(vocabulary.is_empty());
        assert_eq!((walk(&vocabulary, ""), walk(&vocabulary, "a")), (Some(false), None));
    }

    #[test]
    fn a_tree_has_the_words_of_a_list() {
        for case in 0..20 {
            let key = Key::new(case, 4, 0);
            let mut next = 0;
            let mut drawn = |below: u32| {
                next += 1;
                (key.uniform(next) * below as f32) as u32 % below
            };
            let mut word = || -> String {
                let length = 1 + drawn(4);
                (0..length).map(|_| ['a', 'b', 'é'][drawn(3) as usize]).collect()
            };
            let words: Vec<String> = (0..12).map(|_| word()).collect();
            let vocabulary = Vocabulary::new(words.iter().map(String::as_str), &letters(), 3);
            for text in (0..60).map(|_| word()) {
                let begins = words.iter().any(|word| word.starts_with(&text));
                let expected = begins.then(|| words.contains(&text));
                assert_eq!(walk(&vocabulary, &text), expected, "{text} in {words:?}");
            }
        }
    }
}
