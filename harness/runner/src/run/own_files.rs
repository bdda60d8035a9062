//! Copies of the files that the searches of a run read: language models and word lists.
//!
//! They lie in `files/` of a run's folder, so that a user's own input needs no file of the machine
//! that trained the run. `files/kept.json` lists them. A run of a recipe whose searches read no file
//! has no such folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zoo_datasets::fetch::sha256_file;
use zoo_recipes::{Recipe, SearchBlock, SearchFile, atomic};
use zoo_results::exit::Exit;

use super::evaluate::Evaluation;
use super::folder::Run;
use super::package::Manifest;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::files::{is_below, read_json, write_json};

/// Folder of the copies in that of a run or package.
pub const FILES: &str = "files";
/// File of [`FILES`] that lists the others.
pub const LIST: &str = "kept.json";

/// What to do about a damaged list.
pub const AGAIN: &str = "restore the file, or remove its folder `files`; `zoo evaluate` makes it again";

/// Digits of the digest in the name of a copy.
const DIGITS: usize = 12;

/// The files that a run keeps for its searches.
#[derive(Debug)]
pub struct OwnFiles {
    /// The run's `files/`.
    folder: PathBuf,
    /// One for each search and kind of file at most.
    copies: Vec<Copied>,
}

/// A copy of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copied {
    /// The search that reads it.
    search: String,
    /// What it is.
    of: SearchFile,
    /// The path that the recipe or the user named.
    path: String,
    /// The path of the copy below `files/`, with `/` between folders.
    file: String,
    /// SHA-256, hexadecimal.
    sha256: String,
}

/// What a package has in `files/`.
#[derive(Debug, Default)]
pub struct PackedFiles {
    /// Content of the list.
    pub list: Vec<Copied>,
    /// The path of each file below `files/`, and the file to copy.
    pub files: Vec<(String, PathBuf)>,
    /// What is left out, and why.
    pub missing: Vec<String>,
}

/// Keeps the files that the searches of a run read, as the evaluations read them. `used` is the
/// recipe that was evaluated. What cannot be kept is told, and fails nothing: the scores are there.
pub fn keep(ctx: &Context, run: &Run, used: &Recipe, evaluations: &[Evaluation]) {
    if read_by(used).is_empty() {
        return;
    }
    let kept = || match Manifest::of(&run.folder)? {
        // A package stays as it was packed.
        Some(_) => Ok(Vec::new()),
        None => {
            let (run, saved) = Run::open(&run.folder)?;
            OwnFiles::of(&run.folder)?.keep(&saved, used, &run.card.base, evaluations)
        }
    };
    match kept() {
        Ok(missing) => missing.iter().for_each(|why| ctx.progress.note(why)),
        Err(failure) => ctx.progress.note(&format!("the files of searches are not kept: {failure}")),
    }
}

impl OwnFiles {
    /// The files that the run in a folder keeps; none if it was trained by an earlier version.
    ///
    /// # Errors
    /// The list cannot be read, or is not one of ours.
    pub fn of(run: &Path) -> Result<Self> {
        let folder = run.join(FILES);
        let list = folder.join(LIST);
        let copies: Vec<Copied> = if list.is_file() { read_json(&list)? } else { Vec::new() };
        let damaged =
            |why: String| Failure::new(Exit::Damaged, format!("{}: {why}", list.display())).hint(AGAIN);
        for Copied { file, sha256, .. } in &copies {
            if !is_below(file) {
                return Err(damaged(format!("{file:?} lies outside the folder")));
            }
            if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(damaged(format!("{sha256:?} is not a SHA-256")));
            }
        }
        Ok(Self { folder, copies })
    }

    /// Copies what is not kept yet or was changed. Returns what cannot be kept.
    fn keep(
        mut self,
        saved: &Recipe,
        used: &Recipe,
        base: &Path,
        evaluations: &[Evaluation],
    ) -> Result<Vec<String>> {
        let (before, mut missing) = (self.copies.clone(), Vec::new());
        for (search, of, path) in read_by(used) {
            // `infer` reads the recipe that the run saved.
            if !saved.search(search).is_some_and(|saved| stands_for(of, saved, path)) {
                continue;
            }
            let source = base.join(path);
            let known = self.copies.iter().find(|copy| copy.search == search && copy.of == of);
            let evaluated = evaluations.iter().filter(|one| one.decode == search);
            let scored = evaluated.filter_map(|one| digest_of(of, one)).next_back();
            let is_named = saved.search(search).and_then(|saved| of.of(saved)) == Some(path);
            let sha256 = match scored.map(str::to_owned) {
                Some(sha256) => sha256,
                // Only the first copy of a file that the saved recipe names is made without a score.
                None if known.is_some() || !is_named => continue,
                None => match sha256_file(&source) {
                    Ok(sha256) => sha256,
                    Err(error) => {
                        missing.push(format!("{path} of the search {search} is not kept: {error}"));
                        continue;
                    }
                },
            };
            let is_kept = |copy: &Copied| copy.path == path && copy.sha256 == sha256;
            if known.is_some_and(|copy| is_kept(copy) && self.check_copy(copy).is_ok()) {
                continue;
            }
            let copy = Copied {
                file: name_of(path, &sha256),
                search: search.to_owned(),
                of,
                path: path.to_owned(),
                sha256,
            };
            if let Err(why) = self.make(&copy, &source) {
                missing.push(format!("{path} of the search {search} is not kept: {why}"));
                continue;
            }
            self.copies.retain(|other| other.search != search || other.of != of);
            self.copies.push(copy);
        }
        if self.copies != before {
            write_json(&self.folder.join(LIST), &self.copies)?;
            let files = before.iter().map(|copy| &copy.file);
            for replaced in files.filter(|file| self.copies.iter().all(|copy| copy.file != **file)) {
                // One that cannot be removed only takes space.
                fs::remove_file(self.folder.join(replaced)).ok();
            }
        }
        // A copy that could not be made leaves a folder.
        fs::remove_dir(&self.folder).ok();
        Ok(missing)
    }

    /// Makes a copy, unless another search has it.
    fn make(&self, copy: &Copied, source: &Path) -> std::result::Result<(), String> {
        let to = self.folder.join(&copy.file);
        if self.check_copy(copy).is_ok() || self.link_of_another_run(&to, &copy.sha256) {
            return Ok(());
        }
        let failed = |error: io::Error| error.to_string();
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let mut temporary = atomic::file_in(&self.folder).map_err(failed)?;
        io::copy(&mut fs::File::open(source).map_err(failed)?, &mut temporary).map_err(failed)?;
        if sha256_file(temporary.path()).map_err(failed)? != copy.sha256 {
            return Err("it has changed since it was read".to_owned());
        }
        atomic::persist(temporary, &to).map_err(failed)
    }

    /// Links a copy of the same content in a run of the same recipe: a language model may have
    /// gigabytes. Copies are not changed, so several runs can share one.
    fn link_of_another_run(&self, to: &Path, sha256: &str) -> bool {
        let run = self.folder.parent();
        let (Some(runs), Some(name)) = (run.and_then(Path::parent), to.file_name()) else { return false };
        let runs = fs::read_dir(runs).into_iter().flatten().flatten();
        let others = runs.map(|entry| entry.path().join(FILES).join(name));
        let is_intact = |other: &PathBuf| sha256_file(other).is_ok_and(|found| found == sha256);
        let mut others = others.filter(|other| other != to && other.is_file() && is_intact(other));
        let made = fs::create_dir_all(&self.folder).is_ok();
        made && others.any(|other| {
            fs::remove_file(to).ok();
            fs::hard_link(other, to).is_ok()
        })
    }

    /// Names the copies in the place of the paths of the recipe that the run saved. A search that lacks
    /// a language model gets the one that it was last scored with.
    ///
    /// # Errors
    /// A recipe cannot hold the path of the copies, because it is not UTF-8.
    pub fn name_in(&self, recipe: &mut Recipe) -> Result<()> {
        for copy in &self.copies {
            if let Some(search) = recipe.search_mut(&copy.search)
                && stands_for(copy.of, search, &copy.path)
            {
                let place = self.place(copy);
                let text = place.to_str().ok_or_else(|| {
                    Failure::usage(format!("the path {} is not UTF-8", place.display()))
                        .hint("move the folder to a path of UTF-8 characters")
                })?;
                search.read(copy.of, text.to_owned());
            }
        }
        Ok(())
    }

    /// Compares the copies that a search reads with their digests.
    ///
    /// # Errors
    /// A copy is missing or was changed.
    pub fn check(&self, search: &dyn SearchBlock) -> Result<()> {
        let is_read =
            |copy: &&Copied| copy.of.of(search).is_some_and(|path| self.place(copy) == Path::new(path));
        self.copies.iter().filter(is_read).try_for_each(|copy| self.check_copy(copy))
    }

    /// Path of each copy, and whether it is as it was made.
    pub fn checked(&self) -> impl Iterator<Item = (PathBuf, Result<()>)> + '_ {
        self.copies.iter().map(|copy| (self.folder.join(&copy.file), self.check_copy(copy)))
    }

    fn check_copy(&self, copy: &Copied) -> Result<()> {
        let path = self.folder.join(&copy.file);
        let why = match sha256_file(&path) {
            Ok(found) if found == copy.sha256 => return Ok(()),
            Ok(found) => {
                format!("{} was changed: its SHA-256 is {found}, not {}", path.display(), copy.sha256)
            }
            Err(error) => format!("cannot read {}: {error}", path.display()),
        };
        let key = match copy.of {
            SearchFile::LanguageModel => "language_model",
            SearchFile::WordList => "words.file",
        };
        let Copied { path, search, .. } = copy;
        let hint = format!(
            "it is a copy of {path}: `zoo evaluate RUN --decode {search}` copies that again, and \
             `zoo infer --set decode.{search}.{key}=/FOLDER/FILE` names another file"
        );
        Err(Failure::new(Exit::Damaged, why).hint(hint))
    }

    /// The files for a package of the run. A run by an earlier version kept no copies; its files are
    /// read where the recipe names them, relative to `base`.
    ///
    /// # Errors
    /// A copy was changed, or a file in the recipe's folder cannot be read.
    pub fn packed(&self, recipe: &Recipe, base: &Path) -> Result<PackedFiles> {
        let mut packed = PackedFiles::default();
        for copy in &self.copies {
            let Some(search) = recipe.search(&copy.search) else { continue };
            if !stands_for(copy.of, search, &copy.path) {
                continue;
            }
            self.check_copy(copy)?;
            let source = self.folder.join(&copy.file);
            match copy.of.of(search) {
                Some(_) => packed.add(copy.clone(), source),
                None => packed.add_unnamed(copy.clone(), source),
            }
        }
        for (search, of, path) in read_by(recipe) {
            if packed.list.iter().any(|copy| copy.search == search && copy.of == of) {
                continue;
            }
            let source = base.join(path);
            match sha256_file(&source) {
                Ok(sha256) => {
                    let (search, path, file) = (search.to_owned(), path.to_owned(), String::new());
                    packed.add(Copied { search, of, path, file, sha256 }, source);
                }
                Err(error) if is_below(path) => return Err(Failure::io("read", &source, &error)),
                Err(error) => {
                    packed.missing.push(format!("{path} of the search {search} is not packed: {error}"));
                }
            }
        }
        Ok(packed)
    }

    /// Path of a copy in a recipe, whatever folder its paths are relative to.
    fn place(&self, copy: &Copied) -> PathBuf {
        let path = self.folder.join(&copy.file);
        std::path::absolute(&path).unwrap_or(path)
    }
}

impl PackedFiles {
    /// Adds a file that the recipe names.
    fn add(&mut self, copy: Copied, source: PathBuf) {
        // `evaluate` reads the file where the recipe names it.
        let taken = |file: &str| {
            file == LIST || self.list.iter().any(|other| other.file == file && other.sha256 != copy.sha256)
        };
        let file = match is_below(&copy.path) && !taken(&copy.path) {
            true => copy.path.clone(),
            false => name_of(&copy.path, &copy.sha256),
        };
        self.files.push((file.clone(), source));
        self.list.push(Copied { file, ..copy });
    }

    /// Adds a file that only the user named, without its folder, which is of the author's machine.
    fn add_unnamed(&mut self, copy: Copied, source: PathBuf) {
        let path = Path::new(&copy.path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = name_of(&path, &copy.sha256);
        self.files.push((file.clone(), source));
        self.list.push(Copied { path, file, ..copy });
    }
}

/// Whether a copy of `path` is what a search of a saved recipe reads, or the language model that it
/// lacks.
fn stands_for(of: SearchFile, search: &dyn SearchBlock, path: &str) -> bool {
    let lacks = of == SearchFile::LanguageModel && search.lacks_language_model();
    lacks || of.of(search) == Some(path)
}

/// Digest of the file that an evaluation read.
fn digest_of(of: SearchFile, evaluation: &Evaluation) -> Option<&str> {
    let digest = match of {
        SearchFile::LanguageModel => &evaluation.language_model,
        SearchFile::WordList => &evaluation.words,
    };
    digest.as_deref()
}

/// Name of the copy of a file: the beginning of its digest, and its own name.
fn name_of(path: &str, sha256: &str) -> String {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    let digest: String = sha256.chars().take(DIGITS).collect();
    format!("{digest}-{name}")
}

/// Search, kind and path of every file that the searches of a recipe read.
fn read_by(recipe: &Recipe) -> Vec<(&str, SearchFile, &str)> {
    let mut found = Vec::new();
    for name in recipe.searches() {
        let Some(search) = recipe.search(name) else { continue };
        found.extend(SearchFile::ALL.into_iter().filter_map(|of| Some((name, of, of.of(search)?))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(search: &str, path: &str, digit: &str) -> Copied {
        let [search, path] = [search, path].map(str::to_owned);
        Copied { search, of: SearchFile::LanguageModel, path, file: String::new(), sha256: digit.repeat(64) }
    }

    #[test]
    fn a_packed_file_keeps_its_path_unless_another_content_has_it() {
        let mut packed = PackedFiles::default();
        packed.add_unnamed(copied("a", "/home/somebody/lm.arpa", "1"), PathBuf::from("1"));
        packed.add(copied("b", "lm.arpa", "2"), PathBuf::from("2"));
        packed.add(copied("c", "lm.arpa", "2"), PathBuf::from("2"));
        packed.add(copied("d", "lm.arpa", "3"), PathBuf::from("3"));
        packed.add(copied("e", "../lm.arpa", "4"), PathBuf::from("4"));
        packed.add(copied("f", LIST, "5"), PathBuf::from("5"));
        let names: Vec<&str> = packed.files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "111111111111-lm.arpa",
                "lm.arpa",
                "lm.arpa",
                "333333333333-lm.arpa",
                "444444444444-lm.arpa",
                "555555555555-kept.json"
            ]
        );
        assert_eq!(packed.list[0].path, "lm.arpa", "without the author's folder");
    }

    #[test]
    fn a_short_digest_of_a_changed_evaluation_is_a_name_all_the_same() {
        assert_eq!(name_of("folder/lm.arpa", "ä1"), "ä1-lm.arpa");
    }
}
