//! Servers and mirrors that send endless data, send nothing, or cannot be trusted.

use crate::server;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use server::{Framing, Reply, Server};
use zoo_datasets::fetch::{
    Consent, DataHome, Digest, Event, FetchError, FetchOptions, Progress, Source, fetch, place_of, sha256_of,
};

/// Longer than any test waits, so only Ctrl-C can end the fetch.
const LONG: Duration = Duration::from_secs(90);

fn patient() -> FetchOptions<'static> {
    FetchOptions { retries: 0, stall: LONG, ..FetchOptions::default() }
}

fn unknown(urls: &[String]) -> Source {
    Source::new(urls.to_vec(), None, Digest::Unknown).unwrap()
}

/// Stands for the flag that Ctrl-C sets.
#[derive(Default)]
struct Stop {
    pressed: AtomicBool,
    waits_for_a_lock: AtomicBool,
}

impl Progress for Stop {
    fn event(&self, event: Event<'_>) {
        if let Event::Waiting { .. } = event {
            self.waits_for_a_lock.store(true, Ordering::SeqCst);
        }
    }

    fn cancelled(&self) -> bool {
        self.pressed.load(Ordering::SeqCst)
    }
}

/// Waits until `there` returns true. A minute is far more than any machine needs.
fn wait_until(there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never happened");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Fetches, simulates Ctrl-C once `server` received a request, and returns the resulting error.
fn interrupted(server: &Server, home: &Path) -> FetchError {
    let source = Source::new(vec![server.url("/f")], None, Digest::Sha256("0".repeat(64))).unwrap();
    let stop = Stop::default();
    thread::scope(|scope| {
        let fetching = scope.spawn(|| {
            let options = FetchOptions { progress: &stop, ..patient() };
            fetch(&source, &DataHome::new(home), &options)
        });
        wait_until(|| !server.asked().is_empty());
        // The fetch should now be waiting for the server. If it is not yet, it sees the flag before
        // it waits.
        thread::sleep(Duration::from_millis(50));
        stop.pressed.store(true, Ordering::SeqCst);
        wait_until(|| fetching.is_finished());
        fetching.join().unwrap().unwrap_err()
    })
}

#[test]
fn one_interruption_ends_a_download_that_trickles_or_is_silent() {
    // (bytes per block, pause): the first bytes, which distinguish a page from a file, arrive very
    // slowly.
    let trickle = |mut reply: Reply| {
        reply.slow = Some((1, Duration::from_millis(200)));
        reply
    };
    let silent = |mut reply: Reply, after: usize| {
        (reply.cut, reply.hang) = (Some(after), true);
        reply
    };
    let body = || Reply::new(200, vec![7; 100_000]);
    let replies = [
        trickle(body()),
        trickle(body().framing(Framing::Chunked)),
        silent(body(), 0),
        silent(body(), 70_000),
    ];
    for reply in replies {
        let server = Server::start(move |_, _| reply.clone());
        let home = tempfile::tempdir().unwrap();
        let error = interrupted(&server, home.path());
        assert!(matches!(error, FetchError::Cancelled { .. }), "{error}");
    }
    // The server does not even send a status line.
    let server = Server::start(|_, _| {
        thread::sleep(Duration::from_secs(90));
        Reply::new(200, "")
    });
    let home = tempfile::tempdir().unwrap();
    let error = interrupted(&server, home.path());
    assert!(matches!(error, FetchError::Cancelled { .. }), "{error}");
}

#[test]
fn an_interruption_ends_the_wait_for_another_fetch_of_the_file() {
    let server = Server::start(|_, _| {
        let mut reply = Reply::new(200, vec![7; 1000]);
        (reply.cut, reply.hang) = (Some(600), true);
        reply
    });
    let source = Source::new(vec![server.url("/f")], None, Digest::Sha256("0".repeat(64))).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let home = DataHome::new(dir.path());
    let (first, second) = (Stop::default(), Stop::default());
    let fetch = |progress| fetch(&source, &home, &FetchOptions { progress, ..patient() });
    thread::scope(|scope| {
        let fetching = scope.spawn(|| fetch(&first));
        wait_until(|| !server.asked().is_empty());
        let waiting = scope.spawn(|| fetch(&second));
        wait_until(|| second.waits_for_a_lock.load(Ordering::SeqCst));
        second.pressed.store(true, Ordering::SeqCst);
        wait_until(|| waiting.is_finished());
        assert!(matches!(waiting.join().unwrap(), Err(FetchError::Cancelled { .. })));
        assert!(!fetching.is_finished());
        first.pressed.store(true, Ordering::SeqCst);
    });
}

#[test]
fn a_body_without_an_end_is_cut_where_no_size_is_published() {
    let server = Server::start(|asked, _| {
        let reply = Reply::new(200, vec![7; 3_000_000]);
        match asked.path.as_str() {
            "/chunks" => reply.framing(Framing::Chunked),
            _ => reply,
        }
    });
    for (path, why) in [
        ("/chunks", "its body does not end; the most is 1000000 bytes where its size is not published"),
        ("/length", "it offers 3000000 bytes; the most is 1000000"),
    ] {
        let source = Source::new(vec![server.url(path)], None, Digest::Sha256("0".repeat(64))).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let options = FetchOptions { most_unsized: 1_000_000, ..patient() };
        let home = DataHome::new(dir.path());
        let error = fetch(&source, &home, &options).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("hint:"), "{error}");
        let part = home.download(&place_of(&source.urls[0]).unwrap()).with_extension("part");
        assert!(!part.exists());
    }
    // A published size is the limit, however large it is.
    let source = Source::new(
        vec![server.url("/length")],
        Some(3_000_000),
        Digest::Sha256(sha256_of(&vec![7; 3_000_000])),
    );
    let dir = tempfile::tempdir().unwrap();
    let options = FetchOptions { most_unsized: 1_000_000, ..patient() };
    fetch(&source.unwrap(), &DataHome::new(dir.path()), &options).unwrap();
}

/// Gives a fixed answer, and records the risks that it was asked about.
struct Answer(bool, Mutex<Vec<String>>);

impl Consent for Answer {
    fn allows(&self, risk: &str) -> bool {
        self.1.lock().unwrap().push(risk.to_owned());
        self.0
    }
}

#[test]
fn an_unknown_digest_over_plain_http_needs_consent() {
    let server = Server::start(|_, _| Reply::new(200, "the file"));
    let dir = tempfile::tempdir().unwrap();
    let source = unknown(&["https://example.invalid/f.bin".to_owned()]);
    let no = Answer(false, Mutex::default());
    let options = FetchOptions { mirror: Some(server.url("/m")), consent: &no, ..patient() };
    let error = fetch(&source, &DataHome::new(dir.path().join("no")), &options).unwrap_err();
    assert!(matches!(error, FetchError::Unconfirmed { .. }), "{error}");
    assert!(error.to_string().contains("plain http") && error.to_string().contains("--yes"), "{error}");
    assert_eq!(server.asked().len(), 0);
    let asked = no.1.lock().unwrap();
    assert!(asked[0].contains("/m/example.invalid/f.bin") && asked.len() == 1, "{asked:?}");

    let yes = Answer(true, Mutex::default());
    let options = FetchOptions { consent: &yes, ..options.clone() };
    let home = DataHome::new(dir.path().join("yes"));
    let fetched = fetch(&source, &home, &options).unwrap();
    assert_eq!(fetched.from, server.url("/m/example.invalid/f.bin"));

    // From now on the pin verifies the file, as a published digest always does.
    fs::remove_file(&fetched.path).unwrap();
    let options = FetchOptions { consent: &no, ..options };
    drop(asked);
    fetch(&source, &home, &options).unwrap();
    let known = Source::new(source.urls, None, Digest::Sha256(sha256_of(b"the file"))).unwrap();
    fetch(&known, &DataHome::new(dir.path().join("known")), &options).unwrap();
    assert_eq!(no.1.lock().unwrap().len(), 1);
}

#[cfg(unix)]
#[test]
fn a_mirror_of_devices_and_folders_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mirror = dir.path().join("mirror");
    let source = unknown(&["https://example.invalid/a/f.bin".to_owned()]);
    let mirrored = mirror.join(place_of(&source.urls[0]).unwrap());
    let options = FetchOptions { mirror: Some(mirror.display().to_string()), offline: true, ..patient() };
    let home = DataHome::new(dir.path().join("home"));
    fs::create_dir_all(&mirrored).unwrap();
    let error = fetch(&source, &home, &options).unwrap_err().to_string();
    assert!(error.contains("it is a folder, not a regular file"), "{error}");
    fs::remove_dir(&mirrored).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &mirrored).unwrap();
    let error = fetch(&source, &home, &options).unwrap_err().to_string();
    assert!(error.contains("it is a device, not a regular file"), "{error}");
}
