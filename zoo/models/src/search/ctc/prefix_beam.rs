//! Prefix beam search (Hannun et al. 2014). A prefix is scored by all its alignments, and by a
//! language model at the end of each word.
//!
//! The scores follow Baidu's decoder in OpenSeq2Seq: `alpha` weighs logarithms to base 10, and an
//! n-gram that contains an unknown word has a fixed score, whatever its other words are. That
//! decoder spells only words of the language model, as this one does with such a vocabulary.
//! Without a vocabulary this search also spells other words, which are scored when they end.
//!
//! Intended differences from Baidu's decoder:
//!
//! - After a space, any label may begin a word at once. In Baidu's decoder the first label that is
//!   tried in vain makes the others possible.
//! - A hypothesis with an unfinished last word ranks below all complete ones.
//! - No prefix is dropped before the end of a frame.

use super::alignment::alignment;
use super::{Frames, Transcript, Vocabulary};
use crate::search::ngram::{History, Ngram};

/// Settings of a prefix beam search.
#[derive(Debug, Clone, Copy)]
pub struct PrefixBeam<'a> {
    /// Number of prefixes that are kept.
    pub beam: usize,
    /// Classes of a frame are used from the most likely down, until their total probability reaches
    /// this value. 1 uses all classes.
    pub cutoff: f64,
    /// Maximum number of classes of a frame.
    pub classes: usize,
    /// Language model that scores words.
    pub words: Option<Words<'a>>,
    /// Words that may be spelt: every prefix is the beginning of a sequence of these words. Without
    /// a vocabulary any label sequence may be spelt.
    pub vocabulary: Option<&'a Vocabulary>,
}

/// A language model over the words that labels spell.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    pub model: &'a Ngram,
    /// Weight of its log10 probabilities.
    pub alpha: f64,
    /// Score added for every word.
    pub beta: f64,
    /// Used as log10 of the probability of an n-gram with an unknown word (Baidu's decoder: -1000).
    pub unknown: f64,
    /// The label between words.
    pub space: u32,
    /// Text of each label.
    pub letters: &'a [String],
}

/// Logarithm of probability 0.
const NEVER: f64 = f64::NEG_INFINITY;

/// A prefix: its parent prefix plus one label.
struct Node {
    parent: usize,
    label: u32,
    children: Vec<(u32, usize)>,
    /// Log-probabilities of the alignments that end in a blank and in the label: `before` up to the
    /// last frame, `now` up to this one.
    before: [f64; 2],
    now: [f64; 2],
    /// Language-model score of all complete words, and the history after them.
    model: f64,
    history: Option<History>,
    /// Place of the unfinished last word in the vocabulary.
    place: u32,
    /// Whether the prefix was reached in this frame.
    listed: bool,
}

const ROOT: usize = 0;

/// Number of prefixes in memory above which those that lead to no kept prefix are dropped.
const ROOM: usize = 1 << 15;

impl Node {
    fn new(parent: usize, label: u32) -> Self {
        let never = [NEVER; 2];
        let (children, history) = (Vec::new(), None);
        Self {
            parent,
            label,
            children,
            before: never,
            now: never,
            model: 0.0,
            history,
            place: 0,
            listed: false,
        }
    }

    fn score(&self) -> f64 {
        log_add(self.before[0], self.before[1]) + self.model
    }
}

/// Returns the kept prefixes and their ancestors, in the previous order, and updates the indices in
/// `kept`.
fn living(nodes: Vec<Node>, kept: &mut [usize]) -> Vec<Node> {
    let mut lives = vec![false; nodes.len()];
    lives[ROOT] = true;
    for &node in kept.iter() {
        let mut node = node;
        while !std::mem::replace(&mut lives[node], true) {
            node = nodes[node].parent;
        }
    }
    let mut count = 0;
    let places: Vec<usize> = lives.iter().map(|&lives| (count, count += usize::from(lives)).0).collect();
    kept.iter_mut().for_each(|node| *node = places[*node]);
    let old = nodes.into_iter().zip(&lives).filter(|(_, lives)| **lives);
    old.map(|(mut node, _)| {
        node.parent = places[node.parent];
        node.children.retain(|(_, child)| lives[*child]);
        node.children.iter_mut().for_each(|(_, child)| *child = places[*child]);
        node
    })
    .collect()
}

/// ln(e^a + e^b).
fn log_add(a: f64, b: f64) -> f64 {
    let (top, low) = if a > b { (a, b) } else { (b, a) };
    if low == NEVER { top } else { top + (low - top).exp().ln_1p() }
}

impl PrefixBeam<'_> {
    /// Returns at most `count` prefixes from best to worst. A score is the log-probability of the
    /// labels plus the score of the language model.
    pub fn decode(&self, frames: Frames<'_>, count: usize) -> Vec<Transcript> {
        self.decode_within(ROOM, frames, count)
    }

    fn decode_within(&self, least: usize, frames: Frames<'_>, count: usize) -> Vec<Transcript> {
        let mut nodes = vec![Node::new(ROOT, frames.blank)];
        nodes[ROOT].before = [0.0, NEVER];
        nodes[ROOT].history = self.words.map(|words| words.model.begin());
        let (mut kept, mut room) = (vec![ROOT], least);
        for row in frames.rows() {
            let classes = self.pruned(row, frames.blank);
            let mut reached = Vec::new();
            for &node in &kept {
                for &class in &classes {
                    self.extend(
                        &mut nodes,
                        &mut reached,
                        node,
                        class,
                        f64::from(row[class as usize]),
                        frames.blank,
                    );
                }
            }
            for &node in &kept {
                nodes[node].before = [NEVER; 2];
            }
            for &node in &reached {
                let node = &mut nodes[node];
                (node.before, node.now, node.listed) = (node.now, [NEVER; 2], false);
            }
            reached.sort_by(|&a, &b| nodes[b].score().total_cmp(&nodes[a].score()).then(a.cmp(&b)));
            for &node in reached.iter().skip(self.beam) {
                nodes[node].before = [NEVER; 2];
            }
            reached.truncate(self.beam);
            kept = reached;
            if nodes.len() > room {
                nodes = living(nodes, &mut kept);
                room = least.max(2 * nodes.len());
            }
        }
        let ended = |node: usize| {
            let last = self.last_word(&nodes, node);
            (nodes[node].score() + last, nodes[node].model + last, node)
        };
        let unfinished = |node: usize| self.is_unfinished(nodes[node].place);
        let mut found: Vec<(f64, f64, usize)> = kept.into_iter().map(ended).collect();
        found.sort_by(|a, b| {
            unfinished(a.2).cmp(&unfinished(b.2)).then(b.0.total_cmp(&a.0)).then(a.2.cmp(&b.2))
        });
        let transcript = |(score, model, node): (f64, f64, usize)| {
            let units = labels(&nodes, node);
            let times = alignment(frames, &units).unwrap_or_default();
            Transcript { units, times, score, language_model: Some(model) }
        };
        found.into_iter().take(count).map(transcript).collect()
    }

    /// Classes of a frame, from the most likely down, limited by `cutoff` and `classes`.
    fn pruned(&self, row: &[f32], blank: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..row.len() as u32).collect();
        order.sort_by(|&a, &b| row[b as usize].total_cmp(&row[a as usize]).then(a.cmp(&b)));
        let mut mass = 0.0;
        let enough = order.iter().position(|&class| {
            mass += f64::from(row[class as usize]).exp();
            mass >= self.cutoff
        });
        let count = if self.cutoff < 1.0 { enough.map_or(row.len(), |last| last + 1) } else { row.len() };
        order.truncate(count.min(self.classes).max(1));
        // It may be that no word continues with any of the other classes.
        if self.vocabulary.is_some() && !order.contains(&blank) {
            order.push(blank);
        }
        order
    }

    /// Extends a prefix by a frame of class `class`.
    fn extend(
        &self,
        nodes: &mut Vec<Node>,
        reached: &mut Vec<usize>,
        node: usize,
        class: u32,
        log_prob: f64,
        blank: u32,
    ) {
        let [blanks, label] = nodes[node].before;
        let mut reach = |nodes: &mut Vec<Node>, node: usize, end: usize, score: f64| {
            if score == NEVER {
                return;
            }
            let to = &mut nodes[node];
            to.now[end] = log_add(to.now[end], score);
            if !to.listed {
                to.listed = true;
                reached.push(node);
            }
        };
        if class == blank {
            return reach(nodes, node, 0, log_add(blanks, label) + log_prob);
        }
        let again = node != ROOT && nodes[node].label == class;
        if again {
            reach(nodes, node, 1, label + log_prob);
        }
        // A repeated label needs a blank in between.
        let score = if again { blanks } else { log_add(blanks, label) };
        if score == NEVER {
            return;
        }
        let known = nodes[node].children.iter().find(|(label, _)| *label == class).map(|&(_, child)| child);
        let child = if let Some(known) = known {
            known
        } else {
            let Some(place) = self.place_behind(nodes[node].place, class) else { return };
            let mut child = Node::new(node, class);
            (child.model, child.history, child.place) = (nodes[node].model, nodes[node].history, place);
            if let Some(words) = self.words.filter(|words| words.space == class) {
                let (score, history) = words.scored(nodes, node);
                child.model += score;
                child.history = Some(history);
            }
            nodes.push(child);
            let child = nodes.len() - 1;
            nodes[node].children.push((class, child));
            child
        };
        reach(nodes, child, 1, score + log_prob);
    }

    /// Vocabulary place of a prefix after one more label; `None` if it must not be spelt.
    fn place_behind(&self, place: u32, label: u32) -> Option<u32> {
        match self.vocabulary {
            None => Some(0),
            Some(vocabulary) if label == vocabulary.space => vocabulary.is_word(place).then_some(0),
            Some(vocabulary) => vocabulary.step(place, label),
        }
    }

    /// Whether the place is the beginning of words, but not a word itself.
    fn is_unfinished(&self, place: u32) -> bool {
        place != 0 && self.vocabulary.is_some_and(|vocabulary| !vocabulary.is_word(place))
    }

    /// Language-model score of a last word that is not followed by a space.
    fn last_word(&self, nodes: &[Node], node: usize) -> f64 {
        match self.words {
            Some(words) if node != ROOT && nodes[node].label != words.space => words.scored(nodes, node).0,
            _ => 0.0,
        }
    }
}

impl Words<'_> {
    /// Score of the word that ends at a node, and the history after it. A space that does not
    /// follow a label ends no word.
    fn scored(&self, nodes: &[Node], node: usize) -> (f64, History) {
        let history = nodes[node].history.unwrap_or_else(|| self.model.begin());
        let (mut at, mut reversed) = (node, Vec::new());
        while at != ROOT && nodes[at].label != self.space {
            reversed.push(nodes[at].label);
            at = nodes[at].parent;
        }
        if reversed.is_empty() {
            return (0.0, history);
        }
        let word: String =
            reversed.iter().rev().map(|&label| self.letters[label as usize].as_str()).collect();
        let (log10, history) = self.model.score(&history, &word);
        (self.alpha * log10.unwrap_or(self.unknown) + self.beta, history)
    }
}

fn labels(nodes: &[Node], mut node: usize) -> Vec<u32> {
    let mut labels = Vec::new();
    while node != ROOT {
        labels.push(nodes[node].label);
        node = nodes[node].parent;
    }
    labels.reverse();
    labels
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::random::Key;

    const ALL: PrefixBeam<'static> =
        PrefixBeam { beam: 100_000, cutoff: 1.0, classes: 100, words: None, vocabulary: None };
    const BLANK: u32 = 3;

    fn rows(case: u64, frames: u32) -> Vec<f32> {
        let key = Key::new(case, 9, 0);
        let row = |t: u32| {
            let row: Vec<f32> = (0..4).map(|c| 1.5 * key.normal(4 * t + c)).collect();
            let mass = row.iter().map(|x| x.exp()).sum::<f32>().ln();
            row.into_iter().map(move |x| x - mass)
        };
        (0..frames).flat_map(row).collect()
    }

    /// Probability of every label sequence, summed over all its paths.
    fn by_paths(log_probs: &[f32]) -> BTreeMap<Vec<u32>, f64> {
        let frames = (log_probs.len() / 4) as u32;
        let mut found = BTreeMap::new();
        for number in 0..4usize.pow(frames) {
            let path: Vec<u32> = (0..frames).map(|t| (number / 4usize.pow(t) % 4) as u32).collect();
            let score: f64 = path
                .iter()
                .zip(log_probs.chunks(4))
                .map(|(&class, row)| f64::from(row[class as usize]))
                .sum();
            let mut labels = path;
            labels.dedup();
            labels.retain(|&label| label != BLANK);
            *found.entry(labels).or_insert(0.0) += score.exp();
        }
        found
    }

    fn frames(log_probs: &[f32]) -> Frames<'_> {
        Frames { log_probs, classes: 4, blank: BLANK }
    }

    #[test]
    fn without_pruning_every_label_sequence_has_its_probability() {
        for case in 0..6 {
            let log_probs = rows(case, 5);
            let expected = by_paths(&log_probs);
            let found = ALL.decode(frames(&log_probs), usize::MAX);
            assert_eq!(found.len(), expected.len());
            for transcript in &found {
                let expected = expected[&transcript.units].ln();
                assert!((transcript.score - expected).abs() < 1e-5, "{transcript:?} {expected}");
                assert_eq!(transcript.times.len(), transcript.units.len());
            }
            assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
        }
    }

    fn letters() -> Vec<String> {
        ["a", "b", " ", ""].map(str::to_owned).to_vec()
    }

    const MODEL: &str = "\\data\\\nngram 1=4\nngram 2=2\n\\1-grams:\n-1 <s> -0.5\n-1.2 </s>\n-0.3 a -0.4\n-0.9 ab -0.2\n\\2-grams:\n\
                         -0.1 <s> ab\n-0.2 ab a\n\\end\\\n";

    #[test]
    fn words_are_scored_where_they_end() {
        let (model, letters) = (Ngram::read(MODEL.as_bytes(), str::to_owned).unwrap(), letters());
        let words =
            Words { model: &model, alpha: 0.8, beta: 0.3, unknown: -5.0, space: 2, letters: &letters };
        let score_of = |text: &str| -> f64 {
            let mut history = model.begin();
            let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
            let of = |word: &&str| {
                let (log10, next) = model.score(&history, word);
                history = next;
                0.8 * log10.unwrap_or(-5.0) + 0.3
            };
            words.iter().map(of).sum()
        };
        let log_probs = rows(77, 5);
        let expected = by_paths(&log_probs);
        let found = PrefixBeam { words: Some(words), ..ALL }.decode(frames(&log_probs), usize::MAX);
        assert_eq!(found.len(), expected.len());
        for transcript in &found {
            let text: String =
                transcript.units.iter().map(|&label| letters[label as usize].as_str()).collect();
            let (acoustic, model) = (expected[&transcript.units].ln(), score_of(&text));
            let expected = acoustic + model;
            assert!((transcript.score - expected).abs() < 1e-5, "`{text}` {} {expected}", transcript.score);
            assert!((transcript.language_model.unwrap() - model).abs() < 1e-9, "`{text}` {transcript:?}");
        }
    }

    /// `None` if the text is not a sequence of these words with single spaces, where the last word
    /// may be unfinished. Otherwise whether the last word is complete.
    fn allowed(text: &str, words: &[&str]) -> Option<bool> {
        let (whole, last) = text.rsplit_once(' ').map_or((None, text), |(whole, last)| (Some(whole), last));
        let whole = whole.is_none_or(|whole| whole.split(' ').all(|word| words.contains(&word)));
        let begun = words.iter().any(|word| word.starts_with(last));
        (whole && begun).then(|| last.is_empty() || words.contains(&last))
    }

    #[test]
    fn of_a_vocabulary_all_that_begins_its_words_is_found_and_nothing_else() {
        let (model, letters) = (Ngram::read(MODEL.as_bytes(), str::to_owned).unwrap(), letters());
        let words =
            Words { model: &model, alpha: 0.8, beta: 0.3, unknown: -5.0, space: 2, letters: &letters };
        for (case, spelt) in
            [vec!["ab"], vec!["a", "ab"], vec!["ba", "bb", "aba"], vec!["b"]].iter().enumerate()
        {
            let vocabulary = Vocabulary::new(spelt.iter().copied(), &letters, 2);
            for words in [None, Some(words)] {
                let log_probs = rows(200 + case as u64, 6);
                let text_of = |units: &[u32]| -> String {
                    units.iter().map(|&label| letters[label as usize].as_str()).collect()
                };
                let expected: BTreeMap<String, f64> = by_paths(&log_probs)
                    .into_iter()
                    .map(|(units, score)| (text_of(&units), score.ln()))
                    .filter(|(text, _)| allowed(text, spelt).is_some())
                    .collect();
                let search = PrefixBeam { words, vocabulary: Some(&vocabulary), ..ALL };
                let found = search.decode(frames(&log_probs), usize::MAX);
                assert_eq!(found.len(), expected.len(), "{spelt:?}");
                let mut order = Vec::new();
                for transcript in &found {
                    let text = text_of(&transcript.units);
                    let acoustic = transcript.score - transcript.language_model.unwrap();
                    assert!((acoustic - expected[&text]).abs() < 1e-5, "{spelt:?} `{text}` {transcript:?}");
                    order.push((!allowed(&text, spelt).unwrap(), -transcript.score));
                }
                assert!(order.is_sorted(), "{order:?}");
            }
        }
    }

    #[test]
    fn a_word_that_is_known_is_heard_in_place_of_a_likelier_one() {
        let letters = letters();
        // `b` is slightly more likely than `a` in the last frame.
        let row = |scores: [f32; 4]| scores.map(f32::ln);
        let log_probs =
            [row([0.9, 0.05, 0.02, 0.03]), row([0.02, 0.03, 0.05, 0.9]), row([0.46, 0.5, 0.01, 0.03])]
                .concat();
        let heard = |words: &[&str]| {
            let vocabulary = Vocabulary::new(words.iter().copied(), &letters, 2);
            let search = PrefixBeam { vocabulary: Some(&vocabulary), ..ALL };
            search.decode(frames(&log_probs), 1).remove(0).units
        };
        assert_eq!(ALL.decode(frames(&log_probs), 1)[0].units, [0, 1]);
        assert_eq!(heard(&["ab", "aa"]), [0, 1]);
        assert_eq!(heard(&["aa", "abb"]), [0, 0]);
        // `a` is complete and `aa` is unfinished: `a` is much less likely, but ranks first.
        assert_eq!(heard(&["a", "aab"]), [0]);
        // Only the empty text is complete.
        assert!(heard(&["abbbb"]).is_empty());
    }

    #[test]
    fn a_vocabulary_whose_letters_are_all_pruned_keeps_what_there_is() {
        let (letters, row) = (letters(), [0.02f32, 0.9, 0.05, 0.03].map(f32::ln));
        let vocabulary = Vocabulary::new(["a"], &letters, 2);
        let search = PrefixBeam { cutoff: 0.5, classes: 1, vocabulary: Some(&vocabulary), ..ALL };
        let found = search.decode(frames(&[row, row].concat()), 4);
        assert_eq!((found.len(), found[0].units.len()), (1, 0));
        assert!((found[0].score - 2.0 * f64::from(0.03f32.ln())).abs() < 1e-6);
    }

    #[test]
    fn what_is_dropped_from_memory_is_not_missed() {
        let (model, letters) = (Ngram::read(MODEL.as_bytes(), str::to_owned).unwrap(), letters());
        let words =
            Words { model: &model, alpha: 0.8, beta: 0.3, unknown: -5.0, space: 2, letters: &letters };
        for case in 0..5 {
            let log_probs = rows(case, 60);
            let vocabulary = Vocabulary::new(["ab", "ba", "b"], &letters, 2);
            for vocabulary in [None, Some(&vocabulary)] {
                let search = PrefixBeam { beam: 12, words: Some(words), vocabulary, ..ALL };
                let all = search.decode_within(usize::MAX, frames(&log_probs), 12);
                assert_eq!(search.decode_within(16, frames(&log_probs), 12), all);
            }
        }
    }

    #[test]
    fn prefixes_that_lead_nowhere_are_dropped() {
        // Tree: 0 -> 1 -> 3, and 0 -> 2.
        let mut nodes: Vec<Node> =
            [(ROOT, 9), (0, 0), (0, 1), (1, 2)].map(|(parent, label)| Node::new(parent, label)).into();
        (nodes[0].children, nodes[1].children) = (vec![(0, 1), (1, 2)], vec![(2, 3)]);
        let mut kept = [3];
        let nodes = living(nodes, &mut kept);
        assert_eq!((nodes.len(), kept), (3, [2]));
        assert_eq!(labels(&nodes, 2), [0, 2]);
        assert_eq!((&nodes[0].children[..], &nodes[1].children[..]), (&[(0, 1)][..], &[(2, 2)][..]));
    }

    #[test]
    fn a_narrow_beam_finds_the_best_of_clear_frames() {
        let row = |&class: &u32| (0..4).map(move |i| if i == class { -0.01f32 } else { -6.0 });
        let log_probs: Vec<f32> = [0u32, 3, 0, 1, 1, 3, 2].iter().flat_map(row).collect();
        let narrow = PrefixBeam { beam: 3, cutoff: 0.995, classes: 2, ..ALL };
        let found = narrow.decode(frames(&log_probs), usize::MAX);
        assert_eq!((found[0].units.as_slice(), found.len()), (&[0u32, 0, 1, 2][..], 3));
        assert_eq!(found[0].times, [0..1, 2..3, 3..5, 6..7]);
    }

    #[test]
    fn no_frames_are_no_labels() {
        let found = ALL.decode(frames(&[]), usize::MAX);
        assert_eq!((found.len(), found[0].score, found[0].units.len()), (1, 0.0, 0));
    }
}
