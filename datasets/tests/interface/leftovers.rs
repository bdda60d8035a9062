//! Removal of files left by killed processes, while those of live processes stay.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use zoo_datasets::fetch::{Event, Packing, Progress, Silent, UnpackLimits, unpack};
use zoo_datasets::temporary::remove_leftovers;

const ARCHIVE: &str = "ZOO_TEST_LEFTOVERS_ARCHIVE";
const CORPUS: &str = "ZOO_TEST_LEFTOVERS_CORPUS";

/// Blocks in the middle of an archive.
struct Hangs;

impl Progress for Hangs {
    fn event(&self, event: Event<'_>) {
        if let Event::Unpacking { .. } = event {
            println!("\nunpacking");
            // The parent kills this process, or dies itself.
            thread::sleep(Duration::from_secs(120));
        }
    }
}

/// Not a test: the process that another test starts.
#[test]
fn child() {
    let (Some(archive), Some(corpus)) = (std::env::var_os(ARCHIVE), std::env::var_os(CORPUS)) else { return };
    let into = Path::new(&corpus).join("files");
    let _ = unpack(Path::new(&archive), Packing::Tar, &into, None, UnpackLimits::default(), &Hangs);
}

/// A child process that is killed at the end of the test.
struct Unpacking(Child);

impl Drop for Unpacking {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a process and waits until it is in the middle of unpacking.
fn unpacking(archive: &Path, corpus: &Path) -> Unpacking {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "leftovers::child", "--nocapture"])
        .env(ARCHIVE, archive)
        .env(CORPUS, corpus)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let child = Unpacking(child);
    assert!(lines.map_while(Result::ok).any(|line| line == "unpacking"), "it ended early");
    child
}

fn archive(folder: &Path) -> PathBuf {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(100_000);
    header.set_mode(0o644);
    tar.append_data(&mut header, "a", &vec![7; 100_000][..]).unwrap();
    let path = folder.join("a.tar");
    fs::write(&path, tar.into_inner().unwrap()).unwrap();
    path
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_next_start_removes_what_a_killed_process_left_and_nothing_of_a_living_one() {
    let dir = tempfile::tempdir().unwrap();
    let (archive, corpus) = (archive(dir.path()), dir.path().join("home/corpora/a-corpus"));
    let killed = unpacking(&archive, &corpus);
    let left = names(&corpus);
    assert_eq!(left.len(), 2, "a folder and its lock: {left:?}");
    let living = unpacking(&archive, &corpus);
    let both = names(&corpus);
    assert_eq!(both.len(), 4, "{both:?}");
    // SIGKILL, so no destructor runs.
    drop(killed);
    assert_eq!(names(&corpus), both);

    remove_leftovers(&dir.path().join("home"));
    let kept: Vec<_> = both.iter().filter(|name| !left.contains(name)).cloned().collect();
    assert_eq!(names(&corpus), kept);
    // The files of the live process are still there.
    assert!(corpus.join(&kept[0]).join("files/a").exists());

    // The next unpacking in this folder removes leftovers, too.
    drop(living);
    unpack(&archive, Packing::Tar, &corpus.join("files"), None, UnpackLimits::default(), &Silent).unwrap();
    assert_eq!(names(&corpus), ["files"]);
}
