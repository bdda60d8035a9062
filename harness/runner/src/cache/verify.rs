//! Reads files of the home again and compares them with their recorded digests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use zoo_datasets::corpora::CorpusDefinition;
use zoo_datasets::fetch::{self, FetchError, Source, kept_downloads, sha256_file};
use zoo_recipes::Recipe;
use zoo_results::exit::Exit;
use zoo_results::ledger::{Entry as LedgerEntry, references_key};
use zoo_training::checkpoint::{Checkpoint, read_state};
use zoo_training::folder::Ended;
use zoo_training::state::Ending;

use super::extent::{Extent, is_folder, paths_in};
use super::kind::Kind;
use super::needs::{NamedRun, runs};
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::files::is_below;
use crate::records;
use crate::run::activity::Activity;
use crate::run::evaluate::read_evaluation;
use crate::run::folder::{Run, VOCABULARY, evaluation_files};
use crate::run::own_files::{AGAIN, FILES, LIST, OwnFiles};
use crate::run_folders;
use crate::tasks;

/// A file that is damaged or missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    /// Path of the file.
    pub path: PathBuf,
    /// What is wrong.
    pub fault: String,
    /// What to do about it.
    pub mend: String,
}

/// Result of reading a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Number of files that were compared with a digest.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    pub faults: Vec<Fault>,
    /// Why something was not compared.
    pub notes: Vec<String>,
}

/// Reads the files of a kind that have recorded digests. `None` if files of this kind have none.
///
/// # Errors
/// Only after Ctrl-C: whatever cannot be read is a fault.
pub fn verify(context: &Context, kind: Kind) -> Result<Option<Checked>> {
    let mut checker = Checker { context, kind, checked: Checked::default(), seen: BTreeSet::new() };
    match kind {
        Kind::Downloads => checker.downloads()?,
        Kind::Corpora => checker.corpora()?,
        Kind::Prepared => checker.prepared()?,
        Kind::Checkpoints => checker.checkpoints()?,
        Kind::Runs => checker.runs()?,
        Kind::Hypotheses => checker.hypotheses()?,
        Kind::Ledger => checker.ledger(),
        Kind::Kernels | Kind::Temporary | Kind::Other => return Ok(None),
    }
    Ok(Some(checker.checked))
}

impl Checked {
    /// Exit code: that of missing or damaged data, or of files that do not match their digests.
    pub fn exit(&self) -> Exit {
        let code = |fault: &Fault| match fault.kind {
            Kind::Downloads | Kind::Corpora | Kind::Prepared => Exit::Data,
            _ => Exit::Damaged,
        };
        self.faults.iter().map(code).max_by_key(|exit| exit.code()).unwrap_or(Exit::Ok)
    }
}

struct Checker<'c> {
    context: &'c Context,
    kind: Kind,
    checked: Checked,
    /// Files that were read already.
    seen: BTreeSet<PathBuf>,
}

impl Checker<'_> {
    /// Counts a file, and notes its first fault. Without a `mend`, that is the hint of the failure.
    fn note(&mut self, path: &Path, result: Result<()>, mend: &str) {
        if self.checked.faults.iter().any(|fault| fault.path == path) {
            return;
        }
        if self.seen.insert(path.to_owned()) {
            let extent = Extent::of(path, &BTreeSet::new());
            self.checked.files += extent.files;
            self.checked.bytes += extent.bytes;
        }
        if let Err(failure) = result {
            let (message, hint) = failure.parts();
            let first = message.lines().next().unwrap_or_default();
            // The table has the path in a column.
            let of_path = first.strip_prefix(&path.display().to_string());
            let first = of_path.map_or(first, |rest| rest.trim_start_matches([':', ' '])).to_owned();
            let mend = hint.filter(|_| mend.is_empty()).unwrap_or(mend).to_owned();
            self.checked.faults.push(Fault { kind: self.kind, path: path.to_owned(), fault: first, mend });
        }
    }

    fn downloads(&mut self) -> Result<()> {
        let home = self.context.data_home();
        let mut sources: BTreeMap<String, Source> = BTreeMap::new();
        for name in CorpusDefinition::names() {
            for file in CorpusDefinition::find(name)?.files.into_values() {
                if let Ok(place) = file.source.place() {
                    sources.insert(place, file.source);
                }
            }
        }
        for download in kept_downloads(&home).into_iter().filter(|one| one.was_complete()) {
            self.context.check_stop()?;
            let result = match sources.get(&download.place) {
                Some(source) => Some(fetch::verify(source, &home, &*self.context.progress).map(|_| ())),
                None => download.verify(),
            };
            match result {
                Some(Err(FetchError::Missing { .. })) => {
                    let gone = Err(Failure::new(Exit::Data, "it was fetched, and is missing"));
                    self.note(&download.path, gone, "fetch it again: `zoo fetch` of a recipe that uses it");
                }
                Some(result) => self.note(&download.path, result.map_err(Failure::from), ""),
                None => {
                    let note = format!("{} has no digest", self.context.shown(&download.path));
                    self.checked.notes.push(note);
                }
            }
        }
        self.context.progress.end_stage();
        Ok(())
    }

    fn corpora(&mut self) -> Result<()> {
        let home = self.context.data_home();
        for folder in paths_in(&self.context.home.join("corpora")).into_iter().filter(|path| is_folder(path))
        {
            self.context.check_stop()?;
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Ok(definition) = CorpusDefinition::find(&name) else {
                self.checked
                    .notes
                    .push(format!("{} is not a corpus of this program", self.context.shown(&folder)));
                continue;
            };
            for check in definition.verify_unpacked(&home, &*self.context.progress) {
                let archive = self.context.home.join("corpora").join(&name).join(&check.file);
                let mend = format!("remove {}; it is unpacked again", self.context.shown(&archive));
                self.note(&check.path, check.result.map(|_| ()).map_err(Failure::from), &mend);
            }
        }
        self.context.progress.end_stage();
        Ok(())
    }

    fn prepared(&mut self) -> Result<()> {
        self.context.progress.stage("read prepared data");
        for folder in paths_in(&self.context.prepared_dir()).into_iter().filter(|path| is_folder(path)) {
            self.context.check_stop()?;
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Temporary folders.
            if name.starts_with('.') {
                continue;
            }
            for (path, result) in tasks::check_prepared(&folder) {
                self.note(&path, result, "");
            }
        }
        self.context.progress.end_stage();
        Ok(())
    }

    /// The runs that no process works on.
    fn idle_runs(&mut self) -> Vec<NamedRun> {
        let (idle, busy): (Vec<_>, Vec<_>) =
            runs(self.context).into_iter().partition(|run| run.activity == Activity::Idle);
        let note = |run: &NamedRun| format!("{} was not read: a process trains or evaluates it", run.name);
        self.checked.notes.extend(busy.iter().map(note));
        idle
    }

    fn checkpoints(&mut self) -> Result<()> {
        self.context.progress.stage("read checkpoints");
        for run in self.idle_runs() {
            self.context.check_stop()?;
            let Ok((opened, _)) = Run::open(&run.found.folder) else { continue };
            self.checkpoints_of(&opened);
        }
        self.context.progress.end_stage();
        Ok(())
    }

    fn checkpoints_of(&mut self, run: &Run) {
        let again = format!(
            "restore it from a copy, or remove {} and train the run again",
            self.context.shown(&run.folder)
        );
        let folder = run.checkpoints();
        let newest = folder.states().ok().and_then(|states| states.into_iter().next());
        // A damaged `trained.json` is a fault of the run's other files.
        let trained = run.trained_file().is_file().then(|| run.trained().ok()).flatten();
        let trained = trained.filter(|trained| !matches!(trained.ending, Ending::OffCourse { .. }));
        let Some(newest) = newest else {
            if let Some(last) = trained.and_then(|trained| trained.last_state) {
                let why = "the run noted it as its last state, and it is missing";
                self.note(&folder.path().join(last.file), Err(Failure::new(Exit::Damaged, why)), &again);
            }
            return;
        };
        let result = match &trained {
            Some(trained) if trained.last_state.is_some() => {
                let ended = Ended { updates: trained.updates, last_state: trained.last_state.as_ref() };
                folder.check_newest(&run.card.key, Some(ended))
            }
            _ => Checkpoint::read(&newest).map(|_| ()),
        };
        let mend = match &trained {
            Some(_) => again.clone(),
            None => "the command that trained the run continues from an older state".to_owned(),
        };
        let last = trained.and_then(|trained| trained.last_state);
        let last = last.map(|last| folder.path().join(last.file)).filter(|last| !last.exists());
        self.note(last.as_ref().unwrap_or(&newest), result.map_err(Failure::from), &mend);
        let Ok(Some(state)) = read_state(&newest) else { return };
        for kept in state.kept_weights.iter().chain(&state.best_weights) {
            let path = folder.path().join(&kept.file);
            let result = compare(&path, &kept.sha256, "the state noted");
            self.note(&path, result, &again);
        }
    }

    fn runs(&mut self) -> Result<()> {
        self.context.progress.stage("read runs");
        let idle = self.idle_runs();
        match records::ledger(self.context, None).entries() {
            Ok(entries) => self.recorded_runs(&idle, &entries)?,
            Err(error) => self.checked.notes.push(format!("runs are not compared with records: {error}")),
        }
        for run in idle {
            self.context.check_stop()?;
            let folder = &run.found.folder;
            let again = format!(
                "restore it from a copy, or remove {} and make the run again",
                self.context.shown(folder)
            );
            let opened = Run::open(folder);
            let is_ended = opened.as_ref().is_ok_and(|(run, _): &(Run, Recipe)| run.trained_file().is_file());
            if let Ok((opened, _)) = &opened
                && is_ended
            {
                let result = opened.trained().map(|_| ());
                self.note(&opened.trained_file(), result, &again);
            }
            if let Ok((opened, recipe)) = &opened {
                self.kept_for_input(opened, recipe, &again);
            }
            self.note(&folder.join("run.json"), opened.map(|_| ()), &again);
            let mut folders = vec![folder.join("eval")];
            while let Some(eval) = folders.pop() {
                for file in evaluation_files(&eval) {
                    let found = read_evaluation(&eval, &file);
                    let found = found.and_then(|evaluation| evaluation.sources(&eval)).map(|_| ());
                    self.note(&file, found, "");
                }
                folders.extend(paths_in(&eval).into_iter().filter(|path| is_folder(path)));
            }
        }
        self.context.progress.end_stage();
        Ok(())
    }

    /// Compares what a run keeps for a user's own input with its digests.
    fn kept_for_input(&mut self, run: &Run, recipe: &Recipe, again: &str) {
        let kept = run.folder.join(VOCABULARY);
        if kept.is_dir() && run.trained_file().is_file() {
            let result = match run.has_vocabulary() {
                true => tasks::of(recipe).check_vocabulary(run),
                false => Err(Failure::new(Exit::Damaged, "its list of files is missing")),
            };
            self.note(&kept, result, again);
        }
        let folder = run.folder.join(FILES);
        let list = folder.join(LIST);
        // A process that copies has temporary files.
        let is_copy =
            |path: &PathBuf| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let result = match OwnFiles::of(&run.folder) {
            Ok(files) => {
                files.checked().for_each(|(path, result)| self.note(&path, result, ""));
                match list.is_file() || !paths_in(&folder).iter().any(is_copy) {
                    true => return,
                    false => Err(Failure::new(Exit::Damaged, "it is missing")),
                }
            }
            Err(failure) => Err(failure),
        };
        self.note(&list, result, AGAIN);
    }

    /// Compares the folders of runs with their records, as `zoo ledger recheck` does.
    fn recorded_runs(&mut self, idle: &[NamedRun], entries: &[LedgerEntry]) -> Result<()> {
        let idle: BTreeSet<String> = idle.iter().map(|run| run.found.below()).collect();
        // A path that leads out of the folder of runs is a fault of its record, and is not read.
        let is_read = |folder: &str| idle.contains(folder) || !is_below(folder);
        for compared in run_folders::compared(self.context, entries, is_read) {
            self.context.check_stop()?;
            let failure = compared.fault.map_or(Ok(()), |why| Err(Failure::new(Exit::Damaged, why)));
            let mend = format!(
                "restore it from a copy: record {} has its digest, and nothing else has this result",
                compared.sequence
            );
            self.note(&compared.path, failure, &mend);
        }
        Ok(())
    }

    fn hypotheses(&mut self) -> Result<()> {
        let entries = match records::ledger(self.context, None).entries() {
            Ok(entries) => entries,
            Err(error) => {
                self.checked.notes.push(format!("kept outputs are not compared with records: {error}"));
                return Ok(());
            }
        };
        self.context.progress.stage("read hypotheses");
        let mut due: BTreeMap<String, (&str, u64)> = BTreeMap::new();
        for entry in &entries {
            for file in entry.record.all_scores().filter_map(|score| score.hypotheses.as_ref()) {
                due.insert(file.path.clone(), (&file.sha256, entry.sequence));
            }
            // References are kept for some records only, under their digest.
            let references = entry.record.data.iter().filter(|(key, _)| key.starts_with(&references_key("")));
            for (_, digest) in references {
                let path = records::kept_path(digest);
                if records::kept_file(self.context, &path).is_some_and(|file| file.is_file()) {
                    due.insert(path, (digest, entry.sequence));
                }
            }
        }
        for (below, (digest, record)) in &due {
            self.context.check_stop()?;
            let Some(path) = records::kept_file(self.context, below) else {
                self.checked.notes.push(format!("record {record} names a file outside the home: {below}"));
                continue;
            };
            let of_run = below
                .rsplit_once('/')
                .map(|(run, name)| self.context.runs_dir().join(run).join("eval").join(name));
            let copy = of_run.filter(|file| sha256_file(file).is_ok_and(|found| found == *digest));
            let mend = match copy {
                Some(copy) => format!("copy {} to it", self.context.shown(&copy)),
                None => format!("restore it from a copy: `zoo ledger recheck` needs it for record {record}"),
            };
            self.note(&path, compare(&path, digest, &format!("record {record} has")), &mend);
        }
        self.context.progress.end_stage();
        Ok(())
    }

    fn ledger(&mut self) {
        let ledger = records::ledger(self.context, None);
        if ledger.path().exists() {
            let path = ledger.path().to_owned();
            self.note(&path, ledger.verify(None).map(|_| ()).map_err(Failure::from), "");
        }
    }
}

fn compare(path: &Path, digest: &str, noted: &str) -> Result<()> {
    match sha256_file(path) {
        Ok(found) if found == digest => Ok(()),
        Ok(found) => Err(Failure::new(Exit::Damaged, format!("its SHA-256 is {found}, {noted} {digest}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::new(Exit::Damaged, "it is missing"))
        }
        Err(error) => Err(Failure::io("read", path, &error)),
    }
}
