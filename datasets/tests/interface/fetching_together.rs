//! Mirrors, offline fetches, damaged files, and concurrent fetches of one file.

use crate::server;

use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, SystemTime};

use server::{Reply, Server};
use zoo_datasets::fetch::{
    DataHome, Digest, Event, FetchError, FetchOptions, Progress, Silent, Source, fetch, place_of, sha256_of,
    verify,
};

fn source(url: String, file: &[u8]) -> Source {
    Source::new(vec![url], Some(file.len() as u64), Digest::Sha256(sha256_of(file))).unwrap()
}

fn quick() -> FetchOptions<'static> {
    FetchOptions { retries: 2, backoff: Duration::from_millis(2), ..FetchOptions::default() }
}

#[test]
fn a_mirror_folder_comes_first_and_is_checked_like_the_rest() {
    let file = b"the file".to_vec();
    let body = file.clone();
    let server = Server::start(move |asked, _| Reply::file(asked, &body, "\"v\""));
    let dir = tempfile::tempdir().unwrap();
    let mirror = dir.path().join("mirror");
    let source = source(server.url("/deep/f.txt"), &file);
    let mirrored = mirror.join(place_of(&source.urls[0]).unwrap());
    fs::create_dir_all(mirrored.parent().unwrap()).unwrap();
    let options = FetchOptions { mirror: Some(mirror.display().to_string()), ..quick() };

    fs::write(&mirrored, &file).unwrap();
    let fetched = fetch(&source, &DataHome::new(dir.path().join("1")), &options).unwrap();
    assert_eq!(fetched.from, mirrored.display().to_string());
    assert_eq!(server.asked().len(), 0);

    // A damaged file in the mirror is refused, and the URL is tried.
    fs::write(&mirrored, b"the fire").unwrap();
    let home = DataHome::new(dir.path().join("2"));
    let offline = FetchOptions { offline: true, ..options.clone() };
    let error = fetch(&source, &home, &offline).unwrap_err().to_string();
    assert!(error.contains("expected sha256") && error.contains(&sha256_of(b"the fire")), "{error}");
    assert_eq!(server.asked().len(), 0);
    let fetched = fetch(&source, &home, &options).unwrap();
    assert_eq!((fetched.from, server.asked().len()), (source.urls[0].clone(), 1));

    // A mirror may lack files, but must be a folder.
    fs::remove_file(&mirrored).unwrap();
    fetch(&source, &DataHome::new(dir.path().join("3")), &options).unwrap();
    let wrong = FetchOptions { mirror: Some("/nowhere/at/all".into()), offline: true, ..quick() };
    let error = fetch(&source, &DataHome::new(dir.path().join("4")), &wrong).unwrap_err().to_string();
    assert!(error.contains("/nowhere/at/all: the mirror is not a folder"), "{error}");
}

#[test]
fn a_mirror_url_comes_first() {
    let file = b"the file".to_vec();
    let body = file.clone();
    let server = Server::start(move |asked, _| match asked.path.as_str() {
        "/m/example.invalid/deep/f.txt" => Reply::file(asked, &body, "\"v\""),
        _ => Reply::new(404, ""),
    });
    let dir = tempfile::tempdir().unwrap();
    let options = FetchOptions { mirror: Some(server.url("/m/")), ..quick() };
    let source = source("https://example.invalid/deep/f.txt".into(), &file);
    let fetched = fetch(&source, &DataHome::new(dir.path().join("1")), &options).unwrap();
    assert_eq!(fetched.from, server.url("/m/example.invalid/deep/f.txt"));

    // Offline, not even a mirror's URL is tried.
    let offline = FetchOptions { offline: true, ..options };
    let error = fetch(&source, &DataHome::new(dir.path().join("2")), &offline).unwrap_err();
    assert!(matches!(error, FetchError::Missing { .. }), "{error}");
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn offline_says_what_is_missing_and_where_it_belongs() {
    let server = Server::start(|_, _| Reply::new(200, "never asked"));
    let dir = tempfile::tempdir().unwrap();
    let home = DataHome::new(dir.path().join("home"));
    let mirror = dir.path().join("mirror");
    fs::create_dir(&mirror).unwrap();
    let source = source(server.url("/f.txt"), b"by hand");
    let options = FetchOptions { offline: true, mirror: Some(mirror.display().to_string()), ..quick() };
    let text = fetch(&source, &home, &options).unwrap_err().to_string();
    let place = home.download(&place_of(&source.urls[0]).unwrap());
    let in_mirror = mirror.join(place_of(&source.urls[0]).unwrap());
    for due in
        [source.urls[0].as_str(), &place.display().to_string(), &in_mirror.display().to_string(), "7 bytes"]
    {
        assert!(text.contains(due), "{due} is not in: {text}");
    }
    assert_eq!(server.asked().len(), 0);

    // Do as the hint says.
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, b"by hand").unwrap();
    let fetched = fetch(&source, &home, &options).unwrap();
    assert_eq!((fetched.from.as_str(), fetched.path), ("by hand", place));
}

#[test]
fn a_flipped_byte_is_named_with_both_digests() {
    let file = b"some bytes".to_vec();
    let body = file.clone();
    let server = Server::start(move |asked, _| Reply::file(asked, &body, "\"v\""));
    let dir = tempfile::tempdir().unwrap();
    let (home, source) = (DataHome::new(dir.path()), source(server.url("/f"), &file));
    let path = fetch(&source, &home, &quick()).unwrap().path;
    fs::write(&path, b"some bytez").unwrap();
    for error in [fetch(&source, &home, &quick()).unwrap_err(), verify(&source, &home, &Silent).unwrap_err()]
    {
        assert!(matches!(error, FetchError::Corrupt { .. }));
        let text = error.to_string();
        for due in [&path.display().to_string(), &sha256_of(&file), &sha256_of(b"some bytez")] {
            assert!(text.contains(due), "{due} is not in: {text}");
        }
    }
    // The user must remove the file; then it is fetched again.
    assert_eq!(fs::read(&path).unwrap(), b"some bytez");
    fs::remove_file(&path).unwrap();
    assert!(matches!(verify(&source, &home, &Silent), Err(FetchError::Missing { .. })));
    fetch(&source, &home, &quick()).unwrap();
    assert_eq!(server.asked().len(), 2);
    verify(&source, &home, &Silent).unwrap();
}

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Progress for Log {
    fn event(&self, event: Event<'_>) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

#[test]
fn a_large_file_is_read_again_only_when_it_was_written_to() {
    let file = vec![7; 65 << 20];
    let dir = tempfile::tempdir().unwrap();
    let home = DataHome::new(dir.path());
    let source = source("https://example.invalid/large".into(), &file);
    let path = home.download(&place_of(&source.urls[0]).unwrap());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, &file).unwrap();
    let reads = || {
        let log = Log::default();
        let options = FetchOptions { offline: true, progress: &log, ..quick() };
        let result = fetch(&source, &home, &options);
        let reads = log.0.into_inner().unwrap().iter().filter(|e| e.starts_with("Verifying")).count();
        (result, reads)
    };
    assert!(matches!(reads(), (Ok(_), 1..)));
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    assert!(matches!(reads(), (Ok(_), 0)));

    // Change the file without a new modification time: only `verify` detects it, as documented.
    let mut bytes = file.clone();
    bytes[40 << 20] ^= 1;
    fs::write(&path, &bytes).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    assert!(matches!(reads(), (Ok(_), 0)));
    assert!(matches!(verify(&source, &home, &Silent), Err(FetchError::Corrupt { .. })));
    // Change the modification time: detected at once.
    let later = SystemTime::now() + Duration::from_secs(1);
    fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    assert!(matches!(reads(), (Err(FetchError::Corrupt { .. }), 1)));
}

#[test]
fn threads_that_want_one_file_download_it_once() {
    let file: Vec<u8> = (0..400_000_u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    let body = file.clone();
    let server = Server::start(move |asked, _| {
        let mut reply = Reply::file(asked, &body, "\"v\"");
        reply.slow = Some((50_000, Duration::from_millis(10)));
        reply
    });
    let dir = tempfile::tempdir().unwrap();
    let (home, source) = (DataHome::new(dir.path()), source(server.url("/f"), &file));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let fetched = fetch(&source, &home, &quick()).unwrap();
                assert_eq!(fetched.sha256, sha256_of(&file));
            });
        }
    });
    assert_eq!(server.asked().len(), 1);
}

/// Run by the two tests below in another process; does nothing on its own.
#[test]
fn child() {
    let Ok(url) = std::env::var("ZOO_TEST_FETCH_URL") else { return };
    let home = DataHome::new(std::env::var_os("ZOO_TEST_FETCH_HOME").unwrap());
    let sha256 = std::env::var("ZOO_TEST_FETCH_SHA256").unwrap();
    fetch(&Source::new(vec![url], None, Digest::Sha256(sha256)).unwrap(), &home, &quick()).unwrap();
}

fn child_command(url: &str, home: &DataHome, file: &[u8]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "fetching_together::child"])
        .env("ZOO_TEST_FETCH_URL", url)
        .env("ZOO_TEST_FETCH_HOME", home.root())
        .env("ZOO_TEST_FETCH_SHA256", sha256_of(file))
        .stdout(std::process::Stdio::null());
    command
}

#[test]
fn a_killed_download_is_resumed() {
    let file: Vec<u8> = (0..2_000_000_u32).map(|i| (i.wrapping_mul(i) >> 9) as u8).collect();
    let body = file.clone();
    let server = Server::start(move |asked, n| {
        let mut reply = Reply::file(asked, &body, "\"v\"");
        if n == 0 {
            // The transfer cannot finish before the process is killed.
            (reply.cut, reply.hang) = (Some(1_000_000), true);
        }
        reply
    });
    let dir = tempfile::tempdir().unwrap();
    let home = DataHome::new(dir.path());
    let url = server.url("/f");
    let target = home.download(&place_of(&url).unwrap());
    let part = target.with_file_name("f.part");
    let mut process = child_command(&url, &home, &file).spawn().unwrap();
    for _ in 0..5000 {
        if fs::metadata(&part).is_ok_and(|m| m.len() > 200_000) {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let kept = fs::metadata(&part).unwrap().len() as usize;
    assert!(!target.exists() && kept > 200_000 && kept < file.len(), "{kept}");
    let fetched = fetch(&source(url, &file), &home, &quick()).unwrap();
    assert_eq!(fs::read(fetched.path).unwrap(), file);
    assert_eq!(server.asked()[1].start(), kept);
    assert!(!part.exists());
}

#[test]
fn processes_that_want_one_file_download_it_once() {
    let file = vec![42; 300_000];
    let body = file.clone();
    let server = Server::start(move |asked, _| {
        let mut reply = Reply::file(asked, &body, "\"v\"");
        reply.slow = Some((20_000, Duration::from_millis(20)));
        reply
    });
    let dir = tempfile::tempdir().unwrap();
    let home = DataHome::new(dir.path());
    let url = server.url("/f");
    let mut children: Vec<_> = (0..3).map(|_| child_command(&url, &home, &file).spawn().unwrap()).collect();
    assert!(children.iter_mut().all(|c| c.wait().unwrap().success()));
    assert_eq!(server.asked().len(), 1);
    verify(&source(url, &file), &home, &Silent).unwrap();
}
