//! What needs the entries of the home: runs, records of the ledger, and recipes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use zoo_datasets::corpora::CorpusDefinition;
use zoo_recipes::{Document, Selection};
use zoo_results::ledger::{Entry as LedgerEntry, Record, references_key};

use super::extent::is_link;
use crate::context::Context;
use crate::error::Result;
use crate::records;
use crate::run::activity::Activity;
use crate::run::folder::Run;
use crate::run::initial::Origin;
use crate::runs::{Found, all, called};
use crate::tasks;

/// A run of the home with its shortest name.
#[derive(Debug, Clone)]
pub struct NamedRun {
    pub found: Found,
    pub name: String,
    /// Whether a process trains or evaluates it.
    pub activity: Activity,
    /// Whether its folder, or one above it in the folder of runs, is a symbolic link. Such a run needs
    /// its data, and is not an entry.
    pub is_linked: bool,
}

/// What needs a corpus or a folder of prepared data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Users {
    /// Built-in recipes, at any tier.
    pub recipes: BTreeSet<String>,
    /// Runs of the home.
    pub runs: BTreeSet<String>,
    /// Numbers of the records whose references are made from it.
    pub records: BTreeSet<u64>,
    /// Whether a process works on one of the runs.
    pub busy: bool,
}

/// What needs the entries of a home.
#[derive(Debug, Default)]
pub struct Needs {
    /// Runs of the home, newest first.
    pub runs: Vec<NamedRun>,
    /// By name of the corpus.
    pub corpora: BTreeMap<String, Users>,
    /// Corpora that have a file, by `<host>/<path>`.
    pub places: BTreeMap<String, BTreeSet<String>>,
    /// By folder of prepared data.
    pub prepared: BTreeMap<PathBuf, Users>,
    /// Numbers of the records of a run, by its path below the folder of runs.
    pub recorded: BTreeMap<String, BTreeSet<u64>>,
    /// Numbers of the records that name a kept file, by its path below the folder of hypotheses.
    pub kept: BTreeMap<String, BTreeSet<u64>>,
    /// Names of the runs that began with the weights of a run.
    pub origins: BTreeMap<String, BTreeSet<String>>,
    /// Runs whose data is unknown, because they cannot be read: they may need any of it.
    pub unread: Users,
}

/// Where the data of a run or recipe lies.
#[derive(Debug, Clone, Default)]
struct Data {
    corpus: Option<String>,
    prepared: Option<PathBuf>,
}

/// The runs of a home, newest first, with those behind symbolic links.
pub fn runs(context: &Context) -> Vec<NamedRun> {
    let folder = context.runs_dir();
    let found = all(&folder);
    let names = called(&found);
    let named = |(found, name): (Found, String)| NamedRun {
        activity: Activity::of(&found.folder),
        is_linked: [&folder, &found.folder].into_iter().any(|path| is_link(path))
            || found.folder.parent().is_some_and(is_link),
        found,
        name,
    };
    found.into_iter().zip(names).map(named).collect()
}

impl Needs {
    /// Reads the runs, recipes and records of a home. `entries` are those of its ledger.
    pub fn of(context: &Context, entries: &[LedgerEntry]) -> Self {
        let mut needs = Self { runs: runs(context), ..Self::default() };
        needs.add_corpora();
        needs.add_recipes(context);
        needs.add_runs(context);
        entries.iter().for_each(|entry| needs.add_record(entry.sequence, &entry.record));
        needs
    }

    /// The runs of a home, without what needs them.
    pub fn of_runs(context: &Context) -> Self {
        Self { runs: runs(context), ..Self::default() }
    }

    /// The entries of the home's ledger.
    ///
    /// # Errors
    /// The ledger is damaged.
    pub fn ledger(context: &Context) -> Result<Vec<LedgerEntry>> {
        Ok(records::ledger(context, None).entries()?)
    }

    fn add_corpora(&mut self) {
        for name in CorpusDefinition::names() {
            let Ok(definition) = CorpusDefinition::find(name) else { continue };
            for file in definition.files.values() {
                let Ok(place) = file.source.place() else { continue };
                self.places.entry(place).or_default().insert(name.to_owned());
            }
        }
    }

    fn add_recipes(&mut self, context: &Context) {
        let of_recipe = |name: &&'static str| -> Vec<(String, Data)> {
            let Ok(document) = Document::load(name) else { return Vec::new() };
            let tiers = document.tiers().into_iter().map(|tier| Some(tier.to_owned()));
            let data = |tier| Some((name.to_string(), of_document(context, &document, tier)?));
            std::iter::once(None).chain(tiers).filter_map(data).collect()
        };
        let found: Vec<_> = zoo_recipes::names().par_iter().flat_map_iter(of_recipe).collect();
        for (recipe, data) in found {
            self.users_of(&data, |users| {
                users.recipes.insert(recipe.clone());
            });
        }
    }

    fn add_runs(&mut self, context: &Context) {
        let opened: Vec<_> = self.runs.par_iter().map(|run| Run::open(&run.found.folder).ok()).collect();
        let mut origins: Vec<(Origin, String)> = Vec::new();
        let mut users: Vec<(Data, String, bool)> = Vec::new();
        for (run, opened) in self.runs.iter().zip(opened) {
            let busy = run.activity != Activity::Idle;
            let Some((card, recipe)) = opened.map(|(run, recipe)| (run.card, recipe)) else {
                self.unread.runs.insert(run.name.clone());
                self.unread.busy |= busy;
                continue;
            };
            let corpus = recipe.data().corpus_to_fetch().map(str::to_owned);
            // The recipe's own files may be gone, and then no data is prepared from them again.
            let prepared = tasks::of(&recipe).prepared_folder(context, &card.base).ok().flatten();
            users.push((Data { corpus, prepared }, run.name.clone(), busy));
            origins.extend(card.transfer.map(|origin| (origin, run.name.clone())));
        }
        for (data, name, busy) in users {
            self.users_of(&data, |users| {
                users.runs.insert(name.clone());
                users.busy |= busy;
            });
        }
        for (origin, name) in origins {
            for run in self.runs.iter().filter(|run| is_origin(&run.found, &origin)) {
                self.origins.entry(run.found.below()).or_default().insert(name.clone());
            }
        }
    }

    fn add_record(&mut self, number: u64, record: &Record) {
        for run in &record.runs {
            self.recorded.entry(run.folder.clone()).or_default().insert(number);
        }
        let references = record.data.iter().filter(|(key, _)| key.starts_with(&references_key("")));
        let references = references.map(|(_, digest)| records::kept_path(digest));
        let outputs = record.all_scores().filter_map(|score| score.hypotheses.as_ref());
        for path in outputs.map(|file| file.path.clone()).chain(references) {
            self.kept.entry(path).or_default().insert(number);
        }
        // A recheck makes the references of a built-in recipe from its corpus.
        if record.all_scores().next().is_none() {
            return;
        }
        let users = self.corpora.values_mut().filter(|users| users.recipes.contains(&record.recipe));
        users.for_each(|users| {
            users.records.insert(number);
        });
    }

    fn users_of(&mut self, data: &Data, change: impl Fn(&mut Users)) {
        if let Some(corpus) = &data.corpus {
            change(self.corpora.entry(corpus.clone()).or_default());
        }
        if let Some(folder) = &data.prepared {
            change(self.prepared.entry(folder.clone()).or_default());
        }
    }

    /// The recipe's and its tier's name of a run of the home on which a process works.
    pub fn busy_names(&self) -> BTreeSet<&str> {
        let busy = self.runs.iter().filter(|run| run.activity != Activity::Idle);
        busy.map(|run| run.found.name.as_str()).collect()
    }

    /// The runs that are entries of the home.
    pub fn own_runs(&self) -> impl Iterator<Item = &NamedRun> {
        self.runs.iter().filter(|run| !run.is_linked)
    }

    /// The users of the corpora that have a downloaded file.
    pub fn of_place(&self, place: &str) -> Users {
        let mut all = Users::default();
        let corpora = self.places.get(place).into_iter().flatten();
        for users in corpora.filter_map(|corpus| self.corpora.get(corpus)) {
            all.recipes.extend(users.recipes.iter().cloned());
            all.runs.extend(users.runs.iter().cloned());
            all.records.extend(&users.records);
            all.busy |= users.busy;
        }
        all
    }
}

/// Where the data of a recipe lies, at a tier.
fn of_document(context: &Context, document: &Document, tier: Option<String>) -> Option<Data> {
    let resolved = document.resolve(&Selection { tier, ..Selection::default() }).ok()?;
    let corpus = resolved.recipe.data().corpus_to_fetch().map(str::to_owned);
    let prepared = tasks::of(&resolved.recipe).prepared_folder(context, Path::new(&resolved.folder)).ok();
    Some(Data { corpus, prepared: prepared.flatten() })
}

fn is_origin(found: &Found, origin: &Origin) -> bool {
    found.identity.as_ref().is_some_and(|identity| {
        (&identity.recipe, &identity.arm, &identity.tier, identity.seed)
            == (&origin.recipe, &origin.arm, &origin.tier, origin.seed)
    })
}
