//! The command line that is completed, as far as it decides on the candidates.

use std::collections::BTreeSet;
use std::path::PathBuf;

use zoo_recipes::{Document, Recipe, Selection};

use super::runs::{RunFolder, all};

/// Words of the command line.
pub struct Line {
    words: Vec<String>,
}

impl Line {
    /// The line that the shell gave this process after `--`.
    pub fn of_process() -> Self {
        let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
        Self::new(words.map(|word| word.to_string_lossy().into_owned()))
    }

    fn new(words: impl IntoIterator<Item = String>) -> Self {
        Self { words: words.into_iter().collect() }
    }

    /// Runs of the home, from the names of their folders.
    pub fn runs(&self) -> Vec<RunFolder> {
        crate::home::resolve(self.home().as_deref()).map(|home| all(&home.join("runs"))).unwrap_or_default()
    }

    /// The home that the line names, else that of the environment.
    fn home(&self) -> Option<PathBuf> {
        let given = self.value_of("--home");
        given.map(PathBuf::from).or_else(|| std::env::var_os("ZOO_HOME").map(PathBuf::from))
    }

    /// The first word that is a recipe: a built-in name, or the path of a file.
    pub fn recipe(&self) -> Option<Document> {
        let mut words = self.words.iter().skip(1);
        words.find_map(|word| {
            let is_one = zoo_recipes::find(word).is_ok() || word.ends_with(".toml");
            is_one.then(|| Document::load(word).ok()).flatten()
        })
    }

    /// The recipe that the line names, else the built-in recipes of the runs that it names, each in its
    /// tier.
    pub fn recipes(&self) -> Vec<Recipe> {
        let resolved = |document: Document, tier: Option<&str>| {
            let selection = Selection { tier: tier.map(str::to_owned), ..Selection::default() };
            Some(document.resolve(&selection).ok()?.recipe)
        };
        if let Some(document) = self.recipe() {
            return resolved(document, self.value_of("--tier")).into_iter().collect();
        }
        let runs = self.chosen_runs();
        let named: BTreeSet<(&str, Option<&str>)> =
            runs.iter().map(|run| (run.recipe(), run.tier())).collect();
        named.into_iter().filter_map(|(name, tier)| resolved(Document::load(name).ok()?, tier)).collect()
    }

    /// The last value of an option on the line.
    fn value_of(&self, option: &str) -> Option<&str> {
        let after = self.words.iter().zip(self.words.iter().skip(1));
        let given = after.filter(|(word, _)| *word == option).map(|(_, value)| value.as_str());
        let joined = self.words.iter().filter_map(|word| word.strip_prefix(option)?.strip_prefix('='));
        given.chain(joined).next_back()
    }

    /// The runs whose recipe or name a word of the line begins; all if there is none.
    pub fn chosen_runs(&self) -> Vec<RunFolder> {
        let runs = self.runs();
        let name = |word: &String| word.split_once(':').map_or(word.clone(), |(name, _)| name.to_owned());
        let begins = |run: &RunFolder, word: &String| run.name == name(word) || run.recipe() == word;
        let named = |run: &&RunFolder| self.words.iter().skip(2).any(|word| begins(run, word));
        let exact: Vec<RunFolder> = runs.iter().filter(named).cloned().collect();
        if exact.is_empty() { runs } else { exact }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line::new(text.split(' ').map(str::to_owned))
    }

    #[test]
    fn the_recipe_is_the_word_that_names_one() {
        let known = zoo_recipes::names()[0];
        assert_eq!(line(&format!("zoo reproduce {known} --arms ")).recipe().unwrap().name(), known);
        assert_eq!(
            line(&format!("zoo reproduce --tier smoke {known} --arms")).recipe().unwrap().name(),
            known
        );
        assert!(line("zoo reproduce none --arms").recipe().is_none());
        assert!(line("zoo reproduce ./none.toml --arms").recipe().is_none());
    }

    #[test]
    fn the_last_home_of_the_line_counts() {
        assert_eq!(line("zoo --home /a log --home=/b x").home(), Some("/b".into()));
        assert_eq!(line("zoo --home /a log x").home(), Some("/a".into()));
    }
}
