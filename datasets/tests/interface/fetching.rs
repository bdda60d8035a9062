//! Fetching from well-behaved and misbehaving servers.

use crate::server;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use server::{Agrees, Asked, Framing, Reply, Server};
use zoo_datasets::fetch::{
    DataHome, Digest, Event, FetchError, FetchOptions, Fetched, Mismatch, Progress, Source, fetch, sha256_of,
};

/// Pseudorandom bytes, which cannot be compressed or guessed.
fn bytes(n: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

fn source(url: String, file: &[u8]) -> Source {
    Source::new(vec![url], Some(file.len() as u64), Digest::Sha256(sha256_of(file))).unwrap()
}

fn quick() -> FetchOptions<'static> {
    FetchOptions {
        consent: &Agrees,
        retries: 3,
        backoff: Duration::from_millis(2),
        stall: Duration::from_secs(5),
        ..FetchOptions::default()
    }
}

struct Home {
    _dir: tempfile::TempDir,
    home: DataHome,
}

fn home() -> Home {
    let dir = tempfile::tempdir().unwrap();
    let home = DataHome::new(dir.path().join("home"));
    Home { _dir: dir, home }
}

impl Home {
    fn fetch(&self, source: &Source, options: &FetchOptions<'_>) -> Result<Fetched, FetchError> {
        fetch(source, &self.home, options)
    }

    /// Names of all files below `downloads`.
    fn files(&self) -> Vec<String> {
        fn walk(folder: &Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, found);
                } else {
                    found.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.home.root().join("downloads"), &mut found);
        found.sort();
        found
    }
}

fn attempts(error: &FetchError) -> Vec<String> {
    match error {
        FetchError::AllFailed { attempts, .. } => attempts.iter().map(|a| a.reason.clone()).collect(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_file_arrives_once_and_stays() {
    let file = bytes(200_000, 1);
    let body = file.clone();
    let server = Server::start(move |asked, _| Reply::file(asked, &body, "\"1\""));
    let (home, source) = (home(), source(server.url("/a/data.bin"), &file));
    let fetched = home.fetch(&source, &quick()).unwrap();
    assert_eq!(fs::read(&fetched.path).unwrap(), file);
    assert_eq!((fetched.bytes, &fetched.from), (200_000, &source.urls[0]));
    assert_eq!(fetched.sha256, sha256_of(&file));
    assert_eq!(home.files(), ["data.bin", "data.bin.fetched.json"]);
    let offline = FetchOptions { offline: true, ..quick() };
    assert_eq!(home.fetch(&source, &offline).unwrap(), fetched);
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_broken_transfer_goes_on_where_it_broke() {
    let file = bytes(300_000, 2);
    let body = file.clone();
    let server = Server::start(move |asked, n| {
        let reply = Reply::file(asked, &body, "\"v\"");
        if n < 2 { reply.cut(100_000) } else { reply }
    });
    let (home, source) = (home(), source(server.url("/f"), &file));
    let fetched = home.fetch(&source, &quick()).unwrap();
    assert_eq!(fs::read(fetched.path).unwrap(), file);
    let ranges: Vec<_> = server.asked().iter().map(Asked::start).collect();
    assert_eq!(ranges, [0, 100_000, 200_000]);
    assert_eq!(server.asked()[1].if_range.as_deref(), Some("\"v\""));
}

#[test]
fn progress_starts_the_count_of_retries_anew() {
    let file = bytes(100_000, 3);
    let body = file.clone();
    let server = Server::start(move |asked, _| Reply::file(asked, &body, "\"v\"").cut(10_000));
    let fetched = home().fetch(&source(server.url("/f"), &file), &FetchOptions { retries: 1, ..quick() });
    assert_eq!(fetched.unwrap().bytes, 100_000);
    assert_eq!(server.asked().len(), 10);
}

#[test]
fn a_server_that_ignores_ranges_sends_all_of_it_again() {
    let file = bytes(100_000, 4);
    let body = file.clone();
    let server = Server::start(move |_, n| {
        let reply = Reply::new(200, body.clone()).header("ETag", "\"v\"");
        if n == 0 { reply.cut(40_000) } else { reply }
    });
    let fetched = home().fetch(&source(server.url("/f"), &file), &quick()).unwrap();
    assert_eq!(fetched.sha256, sha256_of(&file));
    assert_eq!(server.asked()[1].start(), 40_000);
}

#[test]
fn a_server_that_never_gets_further_is_given_up() {
    let file = bytes(100_000, 5);
    let body = file.clone();
    let server = Server::start(move |_, _| Reply::new(200, body.clone()).header("ETag", "\"v\"").cut(40_000));
    let error = home().fetch(&source(server.url("/f"), &file), &quick()).unwrap_err();
    assert!(attempts(&error)[0].contains("gave up after 4 tries"), "{error}");
    assert_eq!(server.asked().len(), 4);
}

#[test]
fn a_file_that_changed_meanwhile_is_not_glued_together() {
    let (old, new) = (bytes(100_000, 6), bytes(100_000, 7));
    let body = new.clone();
    let server = Server::start(move |asked, n| match n {
        0 => Reply::file(asked, &old, "\"old\"").cut(50_000),
        _ => Reply::file(asked, &body, "\"new\""),
    });
    let fetched = home().fetch(&source(server.url("/f"), &new), &quick()).unwrap();
    assert_eq!(fetched.sha256, sha256_of(&new));
}

#[test]
fn without_validators_the_digest_tells_and_the_download_starts_over() {
    let (old, new) = (bytes(100_000, 8), bytes(100_000, 9));
    let body = new.clone();
    let server = Server::start(move |asked, n| {
        let mut reply = Reply::file(asked, if n == 0 { &old } else { &body }, "");
        reply.headers.retain(|(name, _)| name != "ETag");
        if n == 0 { reply.cut(50_000) } else { reply }
    });
    let fetched = home().fetch(&source(server.url("/f"), &new), &quick()).unwrap();
    assert_eq!(fetched.sha256, sha256_of(&new));
    let asked = server.asked();
    assert_eq!(asked.iter().map(Asked::start).collect::<Vec<_>>(), [0, 50_000, 0]);
    assert_eq!(asked[1].if_range, None);
}

#[test]
fn a_wrong_range_is_not_appended() {
    let file = bytes(100_000, 10);
    let body = file.clone();
    let server = Server::start(move |asked, n| match n {
        0 => Reply::file(asked, &body, "\"v\"").cut(50_000),
        1 => Reply::new(206, &body[40_000..]).header("Content-Range", "bytes 40000-99999/100000"),
        _ => Reply::file(asked, &body, "\"v\""),
    });
    let fetched = home().fetch(&source(server.url("/f"), &file), &quick()).unwrap();
    assert_eq!(fetched.sha256, sha256_of(&file));
    assert_eq!(server.asked()[2].start(), 0);
}

#[test]
fn nothing_more_to_send_means_whole_or_start_over() {
    // The transfer is chunked, so the sidecar has no length. All bytes arrived, but the closing
    // chunk did not.
    let file = bytes(50_000, 11);
    let body = file.clone();
    let server = Server::start(move |asked, n| match n {
        0 => Reply::file(asked, &body, "\"v\"").framing(Framing::Chunked).cut(body.len()),
        _ => Reply::file(asked, &body, "\"v\""),
    });
    let known = source(server.url("/f"), &file);
    let fetched = home().fetch(&known, &quick()).unwrap();
    assert_eq!(fetched.sha256, sha256_of(&file));
    assert_eq!(server.asked()[1].start(), 50_000);
    assert_eq!(server.asked().len(), 2);

    // The same case, but the file on the server is now shorter than the part file.
    let (old, new) = (bytes(60_000, 12), bytes(50_000, 13));
    let body = new.clone();
    let server = Server::start(move |asked, n| match n {
        0 => Reply::file(asked, &old, "\"v\"").framing(Framing::Chunked).cut(55_000),
        _ => Reply::file(asked, &body, "\"v\""),
    });
    let unsized_source = Source::new(vec![server.url("/f")], None, Digest::Sha256(sha256_of(&new))).unwrap();
    let fetched = home().fetch(&unsized_source, &quick()).unwrap();
    assert_eq!(fetched.sha256, sha256_of(&new));
}

#[test]
fn a_missing_file_is_not_asked_for_twice_and_the_next_url_is_tried() {
    let file = bytes(10_000, 14);
    let body = file.clone();
    let server = Server::start(move |asked, _| match asked.path.as_str() {
        "/good" => Reply::file(asked, &body, "\"v\""),
        "/gone" => Reply::new(410, ""),
        _ => Reply::new(404, "no"),
    });
    let mut source = source(server.url("/none"), &file);
    source.urls.extend([server.url("/gone"), server.url("/good")]);
    let home = home();
    let fetched = home.fetch(&source, &quick()).unwrap();
    assert_eq!(fetched.from, server.url("/good"));
    // Its path comes from the first URL, whichever URL it was downloaded from.
    assert!(fetched.path.ends_with("none"));
    let paths: Vec<_> = server.asked().into_iter().map(|a| a.path).collect();
    assert_eq!(paths, ["/none", "/gone", "/good"]);

    source.urls.pop();
    fs::remove_file(fetched.path).unwrap();
    let error = home.fetch(&source, &quick()).unwrap_err();
    assert_eq!(attempts(&error).len(), 2);
    assert!(error.to_string().contains("404") && error.to_string().contains("hint:"), "{error}");
}

#[test]
fn a_server_in_trouble_is_asked_again() {
    let file = bytes(10_000, 15);
    let body = file.clone();
    let server = Server::start(move |asked, n| match n {
        0 => Reply::new(503, "busy").header("Retry-After", "0"),
        1 => Reply::new(429, ""),
        _ => Reply::file(asked, &body, "\"v\""),
    });
    home().fetch(&source(server.url("/f"), &file), &quick()).unwrap();
    assert_eq!(server.asked().len(), 3);

    let server = Server::start(|_, _| Reply::new(500, ""));
    let error = home().fetch(&source(server.url("/f"), &file), &quick()).unwrap_err();
    assert!(attempts(&error)[0].contains("gave up after 4 tries"), "{error}");
    assert_eq!(server.asked().len(), 4);
}

#[test]
fn a_page_is_no_archive_and_no_text() {
    for (path, kind) in
        [("/a.tgz", "text/html"), ("/train.en", "text/plain"), ("/x", "application/octet-stream")]
    {
        let server = Server::start(move |_, _| {
            Reply::new(200, "\n<!DOCTYPE html><html><body>We have moved</body></html>")
                .header("Content-Type", kind)
        });
        let source = Source::new(vec![server.url(path)], None, Digest::Unknown).unwrap();
        let home = home();
        let error = home.fetch(&source, &quick()).unwrap_err();
        assert!(attempts(&error)[0].contains("HTML page"), "{error}");
        assert_eq!(server.asked().len(), 1);
        assert!(home.files().is_empty(), "{:?}", home.files());
        assert!(!home.home.pins_path().exists());
    }
}

#[test]
fn wrong_bytes_never_get_the_name() {
    let (due, sent) = (bytes(10_000, 16), bytes(10_000, 17));
    let body = sent.clone();
    let server = Server::start(move |asked, _| Reply::file(asked, &body, "\"v\""));
    for digest in [Digest::Sha256(sha256_of(&due)), Digest::Md5("0".repeat(32))] {
        let source = Source::new(vec![server.url("/f")], None, digest).unwrap();
        let home = home();
        let error = home.fetch(&source, &quick()).unwrap_err();
        let reason = &attempts(&error)[0];
        assert!(reason.contains("expected") && reason.contains("removed"), "{reason}");
        if let Digest::Sha256(hex) = &source.digest {
            assert!(reason.contains(hex) && reason.contains(&sha256_of(&sent)), "{reason}");
        }
        assert!(home.files().is_empty(), "{:?}", home.files());
    }
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn a_wrong_length_is_refused_before_it_is_downloaded() {
    let sent = bytes(3_000_000, 18);
    let server = Server::start(move |asked, _| Reply::file(asked, &sent, "\"v\""));
    let source = Source::new(vec![server.url("/f")], Some(10), Digest::Unknown).unwrap();
    let error = home().fetch(&source, &quick()).unwrap_err();
    assert!(attempts(&error)[0].contains("offers 3000000 bytes where 10 were due"), "{error}");

    // Without a Content-Length the excess is detected during the transfer.
    let sent = bytes(3_000_000, 18);
    let server = Server::start(move |_, _| Reply::new(200, sent.clone()).framing(Framing::Chunked));
    let source = Source::new(vec![server.url("/f")], Some(100_000), Digest::Unknown).unwrap();
    let home = home();
    let error = home.fetch(&source, &quick()).unwrap_err();
    assert!(attempts(&error)[0].contains("more than the 100000 bytes"), "{error}");
    assert!(home.files().is_empty(), "{:?}", home.files());
}

#[test]
fn an_unknown_digest_is_pinned_and_then_checked() {
    let (first, other) = (bytes(10_000, 19), bytes(10_000, 20));
    let bodies = [first.clone(), other.clone()];
    let server = Server::start(move |asked, n| Reply::file(asked, &bodies[n.min(1)], "\"v\""));
    let source = Source::new(vec![server.url("/f.bin")], None, Digest::Unknown).unwrap();
    let home = home();
    let fetched = home.fetch(&source, &quick()).unwrap();
    let pins = fs::read_to_string(home.home.pins_path()).unwrap();
    assert!(pins.contains(&sha256_of(&first)), "{pins}");

    // Another file under the same name.
    fs::write(&fetched.path, &other).unwrap();
    let error = home.fetch(&source, &quick()).unwrap_err();
    assert!(matches!(&error, FetchError::Corrupt { mismatch: Mismatch::Pin { .. }, .. }), "{error}");
    assert!(error.to_string().contains("pins.json"), "{error}");

    // Another file at the same URL.
    fs::remove_file(&fetched.path).unwrap();
    let error = home.fetch(&source, &quick()).unwrap_err();
    assert!(attempts(&error)[0].contains("pinned when it was first fetched"), "{error}");
    assert!(!fetched.path.exists());
}

#[test]
fn a_file_of_unknown_length_and_digest_is_not_pinned() {
    let file = bytes(10_000, 21);
    let body = file.clone();
    let server =
        Server::start(move |_, _| Reply::new(200, body.clone()).framing(Framing::UntilClose).cut(5_000));
    let unknown = Source::new(vec![server.url("/f")], None, Digest::Unknown).unwrap();
    let error = home().fetch(&unknown, &quick()).unwrap_err();
    assert!(attempts(&error)[0].contains("does not report the file size"), "{error}");
}

#[test]
fn redirects_are_followed() {
    let file = bytes(100_000, 22);
    let body = file.clone();
    let server = Server::start(move |asked, n| match asked.path.as_str() {
        "/old" => Reply::new(302, "").header("Location", "/new"),
        _ if n == 1 => Reply::file(asked, &body, "\"v\"").cut(60_000),
        _ => Reply::file(asked, &body, "\"v\""),
    });
    home().fetch(&source(server.url("/old"), &file), &quick()).unwrap();
    assert_eq!(server.asked().last().map(Asked::start), Some(60_000));
}

#[test]
fn a_silent_server_is_left_and_asked_again() {
    let file = bytes(100_000, 23);
    let body = file.clone();
    let server = Server::start(move |asked, n| {
        let mut reply = Reply::file(asked, &body, "\"v\"");
        if n == 0 {
            (reply.cut, reply.hang) = (Some(70_000), true);
        }
        reply
    });
    // On a busy machine the second answer may be late as well.
    let options = FetchOptions { stall: Duration::from_millis(500), retries: 20, ..quick() };
    home().fetch(&source(server.url("/f"), &file), &options).unwrap();
    assert!(server.asked()[1].start() > 0);
}

struct StopAfter(Mutex<u64>);

impl Progress for StopAfter {
    fn event(&self, event: Event<'_>) {
        if let Event::Advanced { done, .. } = event {
            *self.0.lock().unwrap() = done;
        }
    }

    fn cancelled(&self) -> bool {
        *self.0.lock().unwrap() >= 100_000
    }
}

#[test]
fn an_interrupted_fetch_keeps_what_it_has() {
    let file = bytes(1_000_000, 24);
    let body = file.clone();
    let server = Server::start(move |asked, n| {
        let mut reply = Reply::file(asked, &body, "\"v\"");
        if n == 0 {
            reply.slow = Some((20_000, Duration::from_millis(5)));
        }
        reply
    });
    let (home, source) = (home(), source(server.url("/f"), &file));
    let stop = StopAfter(Mutex::new(0));
    let error = home.fetch(&source, &FetchOptions { progress: &stop, ..quick() }).unwrap_err();
    assert!(matches!(error, FetchError::Cancelled { .. }), "{error}");
    home.fetch(&source, &quick()).unwrap();
    assert!(server.asked()[1].start() >= 100_000);
}
