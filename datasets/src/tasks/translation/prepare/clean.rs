//! Drops pairs of a corpus as Moses' `clean-corpus-n.perl` does.

use crate::corpora::CleanSpec;

/// A pair is dropped if its word counts differ by more than this factor: the script's default.
const MAX_RATIO: usize = 9;
/// Maximum length of a word in characters: the script's default.
const MAX_WORD: usize = 1000;

/// Cleans the pairs of one split in order.
#[derive(Debug)]
pub(super) struct Cleaner<'s> {
    spec: &'s CleanSpec,
    /// Whether `|` separates the factors of words. The first pair decides.
    factored: Option<bool>,
}

impl<'s> Cleaner<'s> {
    pub fn new(spec: &'s CleanSpec) -> Self {
        Self { spec, factored: None }
    }

    /// Cleans the next pair: white space becomes single spaces. `None` if the pair is dropped.
    pub fn pair(&mut self, source: &str, target: &str) -> Option<(String, String)> {
        let factored = *self.factored.get_or_insert_with(|| source.contains('|') || target.contains('|'));
        let source = self.side(source, factored)?;
        let target = self.side(target, factored)?;
        let (more, fewer) = (source.1.max(target.1), source.1.min(target.1));
        if more > fewer * MAX_RATIO {
            return None;
        }
        Some((source.0, target.0))
    }

    /// One cleaned side and its number of words. `None` if the side is invalid.
    fn side(&self, line: &str, factored: bool) -> Option<(String, usize)> {
        let mut text = String::with_capacity(line.len());
        let mut words = 0;
        let without_bars;
        let line = match factored || !line.contains('|') {
            true => line,
            false => {
                without_bars = line.replace('|', "");
                &without_bars
            }
        };
        for word in line.split_whitespace() {
            let mut parts = word.split('|');
            if word.len() > MAX_WORD && parts.any(|part| part.chars().count() > MAX_WORD) {
                return None;
            }
            if words > 0 {
                text.push(' ');
            }
            text.push_str(word);
            words += 1;
        }
        let within = (self.spec.min_words as usize..=self.spec.max_words as usize).contains(&words);
        let encodable = !self.spec.latin1 || text.chars().all(|c| c <= '\u{ff}');
        (within && encodable).then_some((text, words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(min_words: u32, max_words: u32, latin1: bool) -> CleanSpec {
        CleanSpec { splits: vec!["train".into()], min_words, max_words, latin1 }
    }

    fn kept(spec: &CleanSpec, source: &str, target: &str) -> Option<(String, String)> {
        let mut cleaner = Cleaner::new(spec);
        cleaner.pair("first", "first");
        cleaner.pair(source, target)
    }

    #[test]
    fn the_number_of_words_and_their_ratio_decide() {
        let spec = spec(1, 80, false);
        let words = |n: usize| vec!["w"; n].join(" ");
        for (source, target, due) in [
            (1, 1, true),
            (80, 80, true),
            (81, 80, false),
            (80, 81, false),
            (0, 1, false),
            (9, 1, true),
            (10, 1, false),
            (1, 10, false),
            (18, 2, true),
            (19, 2, false),
        ] {
            assert_eq!(kept(&spec, &words(source), &words(target)).is_some(), due, "{source} {target}");
        }
    }

    #[test]
    fn white_space_becomes_single_and_bars_go() {
        let spec = spec(1, 80, false);
        assert_eq!(kept(&spec, " a\u{a0}\tb \u{3000} c|d | \r", "x"), Some(("a b cd".into(), "x".into())));
        assert_eq!(kept(&spec, "|", "x"), None);
        let mut factored = Cleaner::new(&spec);
        assert_eq!(factored.pair("a|N", "x"), Some(("a|N".into(), "x".into())));
        assert_eq!(factored.pair("b|V", "y"), Some(("b|V".into(), "y".into())));
    }

    #[test]
    fn endless_words_and_characters_beyond_latin_1_are_left_out() {
        let all = spec(1, 80, false);
        assert!(kept(&all, &"ä".repeat(1000), "x").is_some());
        assert!(kept(&all, &"ä".repeat(1001), "x").is_none());
        assert!(kept(&all, "♥", "x").is_some());
        let latin1 = spec(1, 80, true);
        assert!(kept(&latin1, "ÿ é", "x").is_some());
        assert!(kept(&latin1, "x", "a € b").is_none());
    }
}
