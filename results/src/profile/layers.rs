//! Histograms by the path of a layer or parameter, and patterns of paths.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::histogram::ExponentHistogram;

/// Histograms by path, in the order in which the paths first came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ByLayer(Vec<(String, ExponentHistogram)>);

impl ByLayer {
    /// Adds counts to those of a path.
    pub fn add(&mut self, path: &str, histogram: &ExponentHistogram) {
        match self.0.iter_mut().find(|(known, _)| known == path) {
            Some((_, sum)) => sum.merge(histogram),
            None => self.0.push((path.to_owned(), histogram.clone())),
        }
    }

    /// Reverses the order of the paths.
    pub fn reverse(&mut self) {
        self.0.reverse();
    }

    /// The paths with their histograms.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ExponentHistogram)> {
        self.0.iter().map(|(path, histogram)| (path.as_str(), histogram))
    }

    /// Removes the paths that a pattern does not match.
    #[must_use]
    pub fn matching(mut self, pattern: &Pattern) -> Self {
        self.0.retain(|(path, _)| pattern.matches(path));
        self
    }

    /// The histogram of all paths together.
    #[must_use]
    pub fn all(&self) -> ExponentHistogram {
        let mut sum = ExponentHistogram::default();
        self.iter().for_each(|(_, histogram)| sum.merge(histogram));
        sum
    }
}

/// A list of objects: the histogram's fields and `path`.
impl Serialize for ByLayer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct One<'a> {
            path: &'a str,
            #[serde(flatten)]
            histogram: &'a ExponentHistogram,
        }
        serializer.collect_seq(self.iter().map(|(path, histogram)| One { path, histogram }))
    }
}

/// As it was written.
impl<'de> Deserialize<'de> for ByLayer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct One {
            path: String,
            #[serde(flatten)]
            histogram: ExponentHistogram,
        }
        let all = Vec::<One>::deserialize(deserializer)?;
        Ok(Self(all.into_iter().map(|one| (one.path, one.histogram)).collect()))
    }
}

/// A pattern of paths: a part of a path, in which `*` stands for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern with this text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Whether a path contains the pattern.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let mut rest = path;
        self.0.split('*').all(|part| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_part_of_a_path() {
        let matches = |pattern: &str| Pattern::new(pattern).matches("encoder.layers.0.query.weight");
        for pattern in ["", "*", "encoder", "query.weight", "layers.0", "enc*query", "encoder*0*weight", "*t"]
        {
            assert!(matches(pattern), "{pattern}");
        }
        for pattern in ["decoder", "layers.1", "query*encoder", "weight*weight", "encoder*key"] {
            assert!(!matches(pattern), "{pattern}");
        }
    }

    #[test]
    fn counts_of_a_path_are_added_and_paths_keep_their_order() {
        let of = |values: &[f32]| ExponentHistogram::of(values);
        let mut layers = ByLayer::default();
        layers.add("b", &of(&[1.0]));
        layers.add("a", &of(&[2.0]));
        layers.add("b", &of(&[4.0, 0.0]));
        assert_eq!(layers.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(layers.iter().next().unwrap().1, &of(&[1.0, 4.0, 0.0]));
        assert_eq!(layers.all(), of(&[1.0, 2.0, 4.0, 0.0]));
        let only = layers.clone().matching(&Pattern::new("a"));
        assert_eq!(only.all(), of(&[2.0]));
        layers.reverse();
        let json = serde_json::to_value(&layers).unwrap();
        assert_eq!((&json[0]["path"], &json[1]["values"]), (&"a".into(), &3.into()));
        assert_eq!(serde_json::from_value::<ByLayer>(json).unwrap(), layers);
    }
}
