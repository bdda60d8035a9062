//! The entries of the home: a download, a corpus, a run, …

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::fetch::kept_downloads;
use zoo_datasets::temporary::{Temporary, temporaries};
use zoo_training::checkpoint::read_state;
use zoo_training::folder::CheckpointFolder;

use super::extent::{Extent, is_folder, is_link, paths_in};
use super::kind::Kind;
use super::needs::{NamedRun, Needs, Users};
use crate::context::Context;
use crate::listing::REMEMBERED;
use crate::records::HYPOTHESES;
use crate::run::activity::Activity;
use crate::runs::{REMEMBERED as RUNS, State, state_of};

/// Time for which a kept output stays without a record. A command keeps outputs just before it writes
/// their record.
const UNRECORDED: Duration = Duration::from_secs(3600);

/// Why data of an unknown corpus is kept.
const NOT_AGAIN: &str = "no corpus of this program has it, so it cannot be fetched again";

/// Maximum number of names in a text.
const MOST_NAMED: usize = 3;

/// Something in the home that is removed as a whole.
#[derive(Debug, Clone)]
pub struct Entry {
    pub kind: Kind,
    /// Name in tables: a corpus, a run, a path below the kind's folder.
    pub name: String,
    /// Its files and folders.
    pub paths: Vec<PathBuf>,
    pub extent: Extent,
    /// Bytes that its removal frees: for a run, those of its checkpoints too.
    pub frees: u64,
    /// What it is of: recipes, corpora, or the state of a run.
    pub of: String,
    /// What needs it.
    pub needed: Vec<String>,
    /// Why it must not be removed at the moment, whatever the user says.
    pub busy: Option<String>,
    /// What the program knows about it, to decide whether it can be removed.
    pub subject: Subject,
}

/// What an entry is, for its removal.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A download, by its `<host>/<path>`.
    Download(String),
    /// A corpus, by its name.
    Corpus(String),
    /// Prepared data. `is_orphan`: no recipe can use it, because its corpus does not exist.
    Prepared { is_orphan: bool },
    /// A run, or checkpoints of it. The folder has the lock.
    Run { folder: PathBuf, group: Option<(String, String, u64)>, state: State },
    /// A file or folder with a temporary name.
    Temporary(Temporary),
    /// Something without a lock.
    Plain,
}

/// Lists entries of some kinds, in the order of kinds and names.
pub fn entries(context: &Context, kinds: &[Kind], needs: &Needs) -> Vec<Entry> {
    let temporary = temporaries(&context.home);
    let except = temporary.iter().flat_map(|one| one.paths()).map(Path::to_owned).collect();
    let lister = Lister { context, needs, except };
    let mut found = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| kinds.contains(kind)) {
        match kind {
            Kind::Downloads => lister.downloads(&mut found),
            Kind::Corpora => lister.corpora(&mut found),
            Kind::Prepared => lister.prepared(&mut found),
            Kind::Checkpoints => lister.checkpoints(&mut found),
            Kind::Runs => lister.runs(&mut found),
            Kind::Hypotheses => lister.hypotheses(&mut found),
            Kind::Kernels => lister.kernels(&mut found),
            Kind::Ledger => lister.files(Kind::Ledger, &["ledger.jsonl", "pins.json"], &mut found),
            Kind::Temporary => lister.temporary(&temporary, &mut found),
            Kind::Other => lister.other(&mut found),
        }
    }
    found
}

struct Lister<'c> {
    context: &'c Context,
    needs: &'c Needs,
    /// Paths with temporary names, which are entries of their own.
    except: BTreeSet<PathBuf>,
}

impl Lister<'_> {
    fn entry(&self, kind: Kind, name: String, paths: Vec<PathBuf>) -> Entry {
        let mut extent = Extent::default();
        paths.iter().for_each(|path| extent.add(Extent::of(path, &self.except)));
        let (of, needed, busy, frees) = (String::new(), Vec::new(), None, extent.bytes);
        Entry { kind, name, paths, extent, frees, of, needed, busy, subject: Subject::Plain }
    }

    fn downloads(&self, found: &mut Vec<Entry>) {
        let home = self.context.data_home();
        let downloads = kept_downloads(&home);
        let mut known = BTreeSet::new();
        for download in downloads {
            let files: Vec<PathBuf> =
                download.files.iter().filter(|file| !self.except.contains(*file)).cloned().collect();
            known.extend(download.files.iter().cloned());
            if files.is_empty() {
                continue;
            }
            let users = self.needs.of_place(&download.place);
            let corpora = self.needs.places.get(&download.place);
            let corpora: Vec<&String> = corpora.into_iter().flatten().collect();
            let mut entry = self.entry(Kind::Downloads, download.place.clone(), files);
            entry.of = match (corpora.is_empty(), download.was_complete()) {
                (true, true) => "no corpus of this program".to_owned(),
                (false, true) => named("corpus", "corpora", &corpora),
                (true, false) => "unfinished".to_owned(),
                (false, false) => format!("unfinished, {}", named("corpus", "corpora", &corpora)),
            };
            self.used_by(&users, &mut entry);
            if corpora.is_empty() && download.was_complete() {
                entry.needed.push(NOT_AGAIN.to_owned());
            }
            entry.subject = Subject::Download(download.place);
            found.push(entry);
        }
        // Links are listed, and not followed.
        self.links(Kind::Downloads, &self.context.home.join("downloads"), found);
    }

    /// The symbolic links below a folder.
    fn links(&self, kind: Kind, folder: &Path, found: &mut Vec<Entry>) {
        let mut links = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for path in paths_in(&folder) {
                match is_link(&path) {
                    true => links.push(path),
                    false if is_folder(&path) => folders.push(path),
                    false => {}
                }
            }
        }
        links.extend(Some(folder.to_owned()).filter(|folder| is_link(folder)));
        for link in links {
            // The folder of the kind can be a link itself.
            let root = if link == folder { folder.parent().unwrap_or(folder) } else { folder };
            let name = shown(link.strip_prefix(root).unwrap_or(&link));
            found.push(linked(self.entry(kind, name, vec![link])));
        }
    }

    fn corpora(&self, found: &mut Vec<Entry>) {
        for path in self.folders(Kind::Corpora, "corpora", found) {
            let name = shown(path.strip_prefix(self.context.home.join("corpora")).unwrap_or(&path));
            let mut entry = self.entry(Kind::Corpora, name.clone(), vec![path]);
            let users = self.needs.corpora.get(&name).cloned().unwrap_or_default();
            entry.of = match CorpusDefinition::names().contains(&name.as_str()) {
                true => recipes(&users),
                false => "no corpus of this program".to_owned(),
            };
            self.used_by(&users, &mut entry);
            if !CorpusDefinition::names().contains(&name.as_str()) {
                entry.needed.push(NOT_AGAIN.to_owned());
            }
            entry.subject = Subject::Corpus(name);
            found.push(entry);
        }
    }

    fn prepared(&self, found: &mut Vec<Entry>) {
        for path in self.folders(Kind::Prepared, "prepared", found) {
            let name = shown(path.strip_prefix(self.context.prepared_dir()).unwrap_or(&path));
            let users = self.needs.prepared.get(&path).cloned().unwrap_or_default();
            let mut entry = self.entry(Kind::Prepared, name.clone(), vec![path]);
            if !is_of_zoo(&entry.paths[0], &name) {
                entry.of = "not zoo's".to_owned();
                entry.busy = Some("it is not a folder of zoo".to_owned());
                found.push(entry);
                continue;
            }
            let corpus = corpus_of(&name);
            let is_orphan = corpus == Some(None) && users.recipes.is_empty() && users.runs.is_empty();
            entry.of = match corpus {
                Some(None) if is_orphan => "its corpus is gone".to_owned(),
                _ if !users.recipes.is_empty() => recipes(&users),
                Some(Some(corpus)) => format!("corpus {corpus}, no built-in recipe"),
                _ => "no built-in recipe".to_owned(),
            };
            self.used_by(&Users { records: BTreeSet::new(), ..users.clone() }, &mut entry);
            let is_orphan = is_orphan && self.needs.unread.runs.is_empty();
            entry.subject = Subject::Prepared { is_orphan };
            found.push(entry);
        }
    }

    /// What needs data with these users. Runs that cannot be read may need it too.
    fn used_by(&self, users: &Users, entry: &mut Entry) {
        let unread: Vec<&String> = self.needs.unread.runs.iter().collect();
        entry.needed = needed_by(users);
        if !unread.is_empty() {
            entry.needed.push(format!("{} cannot be read and may use it", named("run", "runs", &unread)));
        }
        entry.busy = match (users.busy, self.needs.unread.busy) {
            (true, _) => Some("a process works on a run with this data".to_owned()),
            (false, true) => Some("a process works on a run that cannot be read".to_owned()),
            (false, false) => None,
        };
    }

    fn checkpoints(&self, found: &mut Vec<Entry>) {
        for run in self.needs.own_runs() {
            let folder = run.found.folder.join("checkpoints");
            let files: Vec<PathBuf> =
                paths_in(&folder).into_iter().filter(|path| !self.except.contains(path)).collect();
            if files.is_empty() {
                continue;
            }
            let subject = subject(run);
            let Subject::Run { state, .. } = &subject else { continue };
            let (needed, rest, why) = match has_ended(*state) {
                true => split(&folder, files),
                false => (files, Vec::new(), format!("the run is {}", state.word())),
            };
            let busy = busy(run);
            for (paths, needed) in [(needed, vec![why]), (rest, Vec::new())] {
                if paths.is_empty() {
                    continue;
                }
                let mut entry = self.entry(Kind::Checkpoints, run.name.clone(), paths);
                entry.of = state.word();
                entry.needed = needed;
                entry.busy.clone_from(&busy);
                entry.subject = subject.clone();
                found.push(entry);
            }
        }
    }

    fn runs(&self, found: &mut Vec<Entry>) {
        let busy_names = self.needs.busy_names();
        let mut folders = BTreeSet::new();
        for run in self.needs.own_runs() {
            let below = run.found.below();
            let mut entry = self.entry(Kind::Runs, run.name.clone(), vec![run.found.folder.clone()]);
            // The checkpoints are a kind of their own.
            let checkpoints = Extent::of(&run.found.folder.join("checkpoints"), &self.except);
            entry.extent.files = entry.extent.files.saturating_sub(checkpoints.files);
            entry.extent.bytes = entry.extent.bytes.saturating_sub(checkpoints.bytes);
            entry.subject = subject(run);
            entry.needed = records(self.needs.recorded.get(&below)).into_iter().collect();
            if let Subject::Run { state, .. } = &entry.subject {
                entry.of = state.word();
                if !has_ended(*state) {
                    entry.needed.push(format!("the run is {}", state.word()));
                }
            }
            let began: Vec<&String> = self.needs.origins.get(&below).into_iter().flatten().collect();
            if !began.is_empty() {
                entry.needed.push(format!("its weights began {}", named("run", "runs", &began)));
            }
            let others = busy_names.contains(run.found.name.as_str());
            let others = others.then(|| format!("a process works on a run of {}", run.found.name));
            entry.busy = busy(run).or(others);
            folders.insert(run.found.folder.clone());
            found.push(entry);
        }
        for name in self.folders(Kind::Runs, "runs", found) {
            for path in paths_in(&name).into_iter().filter(|path| !folders.contains(path)) {
                if self.except.contains(&path) {
                    continue;
                }
                let below = shown(path.strip_prefix(self.context.runs_dir()).unwrap_or(&path));
                let mut entry = self.entry(Kind::Runs, below, vec![path.clone()]);
                entry.of = "not a run".to_owned();
                entry.busy = Some("it has no run.json".to_owned());
                found.push(if is_link(&path) { linked(entry) } else { entry });
            }
        }
    }

    fn hypotheses(&self, found: &mut Vec<Entry>) {
        let root = self.context.home.join(HYPOTHESES);
        // By folder, and whether records need the files.
        let mut groups: BTreeMap<(String, bool), (Vec<PathBuf>, BTreeSet<u64>)> = BTreeMap::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for path in paths_in(&folder) {
                if is_folder(&path) {
                    folders.push(path);
                } else if !is_link(&path) && !self.except.contains(&path) {
                    let below = shown(path.strip_prefix(&root).unwrap_or(&path));
                    let of = self.needs.kept.get(&below);
                    let group = below.rsplit_once('/').map_or("", |(group, _)| group).to_owned();
                    let (paths, numbers) = groups.entry((group, of.is_some())).or_default();
                    paths.push(path);
                    numbers.extend(of.into_iter().flatten());
                }
            }
        }
        for ((name, _), (paths, numbers)) in groups {
            let mut entry = self.entry(Kind::Hypotheses, name, paths);
            entry.needed = records(Some(&numbers)).into_iter().collect();
            let is_new = entry.extent.age(SystemTime::now()).is_some_and(|age| age < UNRECORDED);
            entry.busy = (is_new && numbers.is_empty())
                .then(|| "written within the last hour: its record may follow".to_owned());
            found.push(entry);
        }
        self.links(Kind::Hypotheses, &root, found);
    }

    fn kernels(&self, found: &mut Vec<Entry>) {
        let folder = self.context.kernels_dir();
        if is_link(&folder) {
            found.push(linked(self.entry(Kind::Kernels, "kernels".to_owned(), vec![folder])));
            return;
        }
        // A folder for each build of zoo, and files of builds that had none.
        for path in paths_in(&folder).into_iter().filter(|path| !self.except.contains(path)) {
            let name = path.file_name().map(shown).unwrap_or_default();
            let entry = self.entry(Kind::Kernels, name, vec![path.clone()]);
            found.push(if is_link(&path) { linked(entry) } else { entry });
        }
    }

    fn temporary(&self, temporary: &[Temporary], found: &mut Vec<Entry>) {
        for one in temporary {
            let paths: Vec<PathBuf> = one.paths().into_iter().map(Path::to_owned).collect();
            let name = shown(one.path.strip_prefix(&self.context.home).unwrap_or(&one.path));
            let mut extent = Extent::default();
            paths.iter().for_each(|path| extent.add(Extent::of(path, &BTreeSet::new())));
            let is_dead = one.is_dead();
            let busy = (!is_dead).then(|| "its process is alive, or ended less than a day ago".to_owned());
            let of = if is_dead { "of a dead process" } else { "in use" }.to_owned();
            let subject = Subject::Temporary(one.clone());
            let (needed, frees) = (Vec::new(), extent.bytes);
            found.push(Entry {
                kind: Kind::Temporary,
                name,
                paths,
                extent,
                frees,
                of,
                needed,
                busy,
                subject,
            });
        }
    }

    fn other(&self, found: &mut Vec<Entry>) {
        let known =
            ["downloads", "corpora", "prepared", "runs", HYPOTHESES, "kernels", "ledger.jsonl", "pins.json"];
        for path in paths_in(&self.context.home) {
            let name = path.file_name().map(shown).unwrap_or_default();
            if known.contains(&name.as_str()) || self.except.contains(&path) {
                continue;
            }
            let mut entry = self.entry(Kind::Other, name.clone(), vec![path.clone()]);
            let of = match name.as_str() {
                "locks" => "locks of downloads",
                REMEMBERED => "the last list of `zoo list`",
                RUNS => "what `zoo runs` read of ended runs",
                _ => "not zoo's",
            };
            of.clone_into(&mut entry.of);
            found.push(if is_link(&path) { linked(entry) } else { entry });
        }
    }

    fn files(&self, kind: Kind, names: &[&str], found: &mut Vec<Entry>) {
        for path in names.iter().map(|name| self.context.home.join(name)).filter(|path| path.exists()) {
            let name = path.file_name().map(shown).unwrap_or_default();
            found.push(self.entry(kind, name, vec![path]));
        }
    }

    /// The folders in a folder of the home. Symbolic links and stray files become entries that stay.
    fn folders(&self, kind: Kind, name: &str, found: &mut Vec<Entry>) -> Vec<PathBuf> {
        let root = self.context.home.join(name);
        if is_link(&root) {
            found.push(linked(self.entry(kind, name.to_owned(), vec![root])));
            return Vec::new();
        }
        let mut folders = Vec::new();
        for path in paths_in(&root).into_iter().filter(|path| !self.except.contains(path)) {
            if is_folder(&path) {
                folders.push(path);
                continue;
            }
            let below = path.file_name().map(shown).unwrap_or_default();
            let mut entry = self.entry(kind, below, vec![path.clone()]);
            entry.busy = Some("it is not a folder of zoo".to_owned());
            found.push(if is_link(&path) { linked(entry) } else { entry });
        }
        folders
    }
}

/// An entry that is a symbolic link.
fn linked(entry: Entry) -> Entry {
    let why = "a symbolic link, which is not followed";
    Entry { of: why.to_owned(), busy: Some(why.to_owned()), subject: Subject::Plain, ..entry }
}

fn shown(path: impl AsRef<OsStr>) -> String {
    let text = path.as_ref().to_string_lossy();
    if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() }
}

/// The corpus in the name of a folder of prepared data: `None` if the folder is of generated data or
/// of the user's own files, `Some(None)` if it is of a corpus that this program does not have.
fn corpus_of(folder: &str) -> Option<Option<&'static str>> {
    if ["own-", "generated-"].iter().any(|prefix| folder.starts_with(prefix)) {
        return None;
    }
    let names = CorpusDefinition::names().into_iter();
    let of = |name: &&str| folder.strip_prefix(*name).is_some_and(|rest| rest.starts_with('-'));
    // The longest, because the name of a corpus may begin with that of another one.
    Some(names.filter(of).max_by_key(|name| name.len()))
}

/// Whether a folder of prepared data is one that zoo made: it has the form of such a name, and a list.
fn is_of_zoo(folder: &Path, name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // A share of the recordings is named by its sizes.
    let parts = match parts.as_slice() {
        [first @ .., "first", train, eval] if is_number(train) && is_number(eval) => first,
        all => all,
    };
    let is_key = |part: &str| part.len() == 12 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_form = parts.len() > 1 && parts.last().is_some_and(|part| *part == "recordings" || is_key(part));
    has_form && paths_in(folder).iter().any(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
}

/// Whether training ended and cannot continue. Files of the checkpoints of such a run may be useless.
pub fn has_ended(state: State) -> bool {
    matches!(state, State::Trained | State::Evaluated | State::Diverged)
}

/// The files that an ended run needs to be evaluated, the others, and why the former are needed.
fn split(folder: &Path, files: Vec<PathBuf>) -> (Vec<PathBuf>, Vec<PathBuf>, String) {
    let newest = CheckpointFolder::new(folder).states().ok().and_then(|states| states.into_iter().next());
    let Some(newest) = newest else { return (files, Vec::new(), "the run has no state".to_owned()) };
    let Ok(Some(state)) = read_state(&newest) else {
        return (files, Vec::new(), "the newest state cannot be read".to_owned());
    };
    let names: BTreeSet<&str> = state.weight_files().collect();
    let is_needed = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        // Only files that training writes are known to be useless.
        *path == newest || names.contains(name) || !is_checkpoint(name)
    };
    let (needed, rest) = files.into_iter().partition(is_needed);
    (needed, rest, "evaluation of the run".to_owned())
}

fn is_checkpoint(name: &str) -> bool {
    let ours = name.starts_with("state-") || name.starts_with("weights-");
    ours && (name.ends_with(".safetensors") || name.ends_with(".safetensors.damaged"))
}

fn subject(run: &NamedRun) -> Subject {
    let identity = run.found.identity.as_ref();
    let group = identity.map(|of| (run.found.name.clone(), of.arm.clone(), of.seed));
    Subject::Run { folder: run.found.folder.clone(), group, state: state_of(&run.found.folder) }
}

/// Why a run must not be touched.
fn busy(run: &NamedRun) -> Option<String> {
    match run.activity {
        Activity::Idle => None,
        Activity::Working => Some("a process trains or evaluates it".to_owned()),
        Activity::Unknown => Some("its lock cannot be read".to_owned()),
    }
}

fn recipes(users: &Users) -> String {
    match users.recipes.is_empty() {
        true => "no built-in recipe".to_owned(),
        false => named("recipe", "recipes", &users.recipes.iter().collect::<Vec<_>>()),
    }
}

fn needed_by(users: &Users) -> Vec<String> {
    let runs: Vec<&String> = users.runs.iter().collect();
    let runs = (!runs.is_empty()).then(|| named("run", "runs", &runs));
    runs.into_iter().chain(records(Some(&users.records))).collect()
}

fn records(numbers: Option<&BTreeSet<u64>>) -> Option<String> {
    let numbers: Vec<String> = numbers?.iter().map(u64::to_string).collect();
    let numbers: Vec<&String> = numbers.iter().collect();
    (!numbers.is_empty()).then(|| named("record", "records", &numbers))
}

/// `run a`, `runs a, b, c and 4 more`.
fn named(one: &str, several: &str, names: &[&String]) -> String {
    let word = if names.len() == 1 { one } else { several };
    let first: Vec<&str> = names.iter().take(MOST_NAMED).map(|name| name.as_str()).collect();
    let more = names.len().saturating_sub(MOST_NAMED);
    let and = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{word} {}{and}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_of_prepared_data_is_in_the_name_of_its_folder() {
        let known = CorpusDefinition::names()[0];
        assert_eq!(corpus_of(&format!("{known}-0123456789ab")), Some(Some(known)));
        assert_eq!(corpus_of(&format!("{known}-own-0123456789ab")), Some(Some(known)));
        assert_eq!(corpus_of("withdrawn-corpus-0123456789ab"), Some(None));
        assert_eq!(corpus_of("own-0123456789ab"), None);
        assert_eq!(corpus_of("generated-recordings"), None);
    }

    #[test]
    fn long_lists_of_names_are_cut() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
        let names: Vec<&String> = names.iter().collect();
        assert_eq!(named("run", "runs", &names[..1]), "run a");
        assert_eq!(named("run", "runs", &names), "runs a, b, c and 2 more");
    }

    #[test]
    fn only_files_that_training_writes_are_useless_checkpoints() {
        for (name, ours) in [
            ("state-0000000010.safetensors", true),
            ("state-0000000010.safetensors.damaged", true),
            ("weights-00000010.safetensors", true),
            ("my-average.safetensors", false),
            ("state-notes.txt", false),
        ] {
            assert_eq!(is_checkpoint(name), ours, "{name}");
        }
    }
}
