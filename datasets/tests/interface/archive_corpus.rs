//! A corpus in an archive, defined by a user's file: fetch, unpack, read, damage and repair.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::thread;

use flate2::{Compression, write::GzEncoder};
use zoo_datasets::corpora::{CorpusDefinition, CorpusError};
use zoo_datasets::fetch::{DataHome, FetchError, FetchOptions, Silent, place_of, sha256_of};

const DEFINITION: &str = r#"
name = "tiny"
summary = "Two lines"
homepage = "https://example.invalid/"
licence = { terms = "none", source = "this test" }

[split.train]
lines = 3
text.en = [{ file = "pack", member = "t/a.en" }, { file = "pack", member = "t/b.en" }]
text.de = [{ file = "pack", member = "t/a.de" }, { file = "more" }]

[split.test]
lines = 2
format = "sgm"
text.en = [{ file = "pack", member = "t/test.sgm" }]

[file.pack]
unpack = "tar.gz"
source.urls = ["https://example.invalid/tiny.tgz"]
source.sha256 = "SHA256"

[file.more]
source.urls = ["https://example.invalid/more.de"]
source.digest = "unknown"
"#;

struct Setting {
    dir: tempfile::TempDir,
    definition: CorpusDefinition,
}

fn pack(first: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    let test = "<doc>\n<seg id=\"1\">one </seg>\n<seg id=\"2\"> two</seg>\n</doc>\n";
    for (path, text) in [
        ("t/a.en", first),
        ("t/b.en", "three\n"),
        ("t/a.de", "eins\nzwei\n"),
        ("t/unused", "?"),
        ("t/test.sgm", test),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

fn setting(archive: &[u8]) -> Setting {
    let dir = tempfile::tempdir().unwrap();
    let mirror = dir.path().join("mirror/example.invalid");
    fs::create_dir_all(&mirror).unwrap();
    fs::write(mirror.join("tiny.tgz"), archive).unwrap();
    fs::File::create(mirror.join("more.de")).unwrap().write_all(b"drei").unwrap();
    let path = dir.path().join("tiny.toml");
    fs::write(&path, DEFINITION.replace("SHA256", &sha256_of(archive))).unwrap();
    let definition = CorpusDefinition::load(&path).unwrap();
    Setting { dir, definition }
}

impl Setting {
    fn home(&self) -> DataHome {
        DataHome::new(self.dir.path().join("home"))
    }

    fn options(&self) -> FetchOptions<'static> {
        let mirror = Some(self.dir.path().join("mirror").display().to_string());
        FetchOptions { mirror, offline: true, ..FetchOptions::default() }
    }

    fn member(&self, name: &str) -> PathBuf {
        self.home().corpus_dir("tiny").join("pack/t").join(name)
    }
}

#[test]
fn splits_are_read_from_members_and_files() {
    let s = setting(&pack("one\ntwo\n"));
    let corpus = s.definition.fetch_all(&s.home(), &s.options()).unwrap();
    assert_eq!(corpus.split("train").unwrap().read("en").unwrap(), ["one", "two", "three"]);
    assert_eq!(corpus.split("train").unwrap().read("de").unwrap(), ["eins", "zwei", "drei"]);
    assert_eq!(corpus.split("test").unwrap().read("en").unwrap(), ["one", "two"]);
    assert!(!s.member("unused").exists(), "only what the splits use is unpacked");
    assert_eq!(corpus.fingerprints["more"].checked, "unknown");
    assert_eq!(corpus.fingerprints["more"].sha256, sha256_of(b"drei"));
    assert!(s.definition.verify(&s.home(), &Silent).iter().all(|c| c.result.is_ok()));
    let error = corpus.split("dev").unwrap_err().to_string();
    assert!(error.contains("its splits are test, train"), "{error}");
}

#[test]
fn one_split_fetches_its_files_alone() {
    let s = setting(&pack("one\ntwo\n"));
    let corpus = s.definition.fetch_splits(&["test"], &s.home(), &s.options()).unwrap();
    assert_eq!(corpus.fingerprints.keys().collect::<Vec<_>>(), ["pack"]);
    assert!(!s.home().download(&place_of("https://example.invalid/more.de").unwrap()).exists());
    let error = s.definition.fetch_splits(&["dev"], &s.home(), &s.options()).unwrap_err();
    assert!(matches!(error, CorpusError::UnknownSplit { .. }));
}

#[test]
fn another_number_of_lines_is_an_error() {
    let s = setting(&pack("one\n"));
    let corpus = s.definition.fetch_all(&s.home(), &s.options()).unwrap();
    let error = corpus.split("train").unwrap().read("en").unwrap_err().to_string();
    assert!(error.contains("has 2 lines in \"en\", expected 3"), "{error}");
}

#[test]
fn a_damaged_member_is_named_and_a_missing_one_is_unpacked_again() {
    let s = setting(&pack("one\ntwo\n"));
    s.definition.fetch_all(&s.home(), &s.options()).unwrap();
    let path = s.member("a.de");
    fs::write(&path, "eins\nZwei\n").unwrap();
    let bad: Vec<_> =
        s.definition.verify(&s.home(), &Silent).into_iter().filter(|c| c.result.is_err()).collect();
    assert_eq!((bad.len(), &bad[0].path), (1, &path));
    let error = s.definition.fetch_all(&s.home(), &s.options()).unwrap_err();
    let CorpusError::Fetch { source, .. } = &error else { panic!("{error}") };
    assert!(matches!(&**source, FetchError::Corrupt { path: p, .. } if *p == path), "{error}");
    assert!(error.to_string().contains(&sha256_of(b"eins\nzwei\n")), "{error}");
    // Do as the hint says.
    fs::remove_file(&path).unwrap();
    s.definition.fetch_all(&s.home(), &s.options()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "eins\nzwei\n");
}

#[test]
fn what_a_killed_unpacking_left_is_no_obstacle() {
    let s = setting(&pack("one\ntwo\n"));
    let left = s.home().corpus_dir("tiny").join(".new-pack");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("half"), "x").unwrap();
    s.definition.fetch_all(&s.home(), &s.options()).unwrap();
    assert!(!left.exists() && s.member("a.de").exists());
}

#[test]
fn a_folder_that_nobody_knows_is_not_removed() {
    let s = setting(&pack("one\ntwo\n"));
    let folder = s.home().corpus_dir("tiny").join("pack");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("precious"), "x").unwrap();
    let error = s.definition.fetch_all(&s.home(), &s.options()).unwrap_err().to_string();
    assert!(error.contains("remove that folder"), "{error}");
    assert!(folder.join("precious").exists());
}

#[test]
fn a_new_archive_replaces_the_members_of_the_old_one() {
    let s = setting(&pack("one\ntwo\n"));
    s.definition.fetch_all(&s.home(), &s.options()).unwrap();
    let new = pack("uno\ndos\n");
    fs::write(s.dir.path().join("mirror/example.invalid/tiny.tgz"), &new).unwrap();
    fs::remove_file(s.home().download(&place_of("https://example.invalid/tiny.tgz").unwrap())).unwrap();
    let definition =
        CorpusDefinition::parse(&DEFINITION.replace("SHA256", &sha256_of(&new)), "tiny").unwrap();
    let corpus = definition.fetch_all(&s.home(), &s.options()).unwrap();
    assert_eq!(corpus.split("train").unwrap().read("en").unwrap(), ["uno", "dos", "three"]);
}

#[test]
fn several_at_once_agree() {
    let s = setting(&pack("one\ntwo\n"));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let corpus = s.definition.fetch_all(&s.home(), &s.options()).unwrap();
                assert_eq!(corpus.split("train").unwrap().read("de").unwrap().len(), 3);
            });
        }
    });
}

#[test]
fn definitions_that_cannot_be_right_say_why() {
    let sound = DEFINITION.replace("SHA256", &sha256_of(b""));
    CorpusDefinition::parse(&sound, "x.toml").unwrap();
    let cases = [
        ("name = \"tiny\"", "name = \"../tiny\"", "cannot be a folder's name"),
        ("summary = \"Two lines\"", "summary = \"\"", "`summary` is empty"),
        ("terms = \"none\"", "terms = \" \"", "`licence.terms` is empty"),
        ("[{ file = \"pack\", member = \"t/test.sgm\" }]", "[]", "empty list"),
        ("[{ file = \"pack\", member = \"t/test.sgm\" }]", "[{ file = \"pack\" }]", "name the `member`"),
        ("{ file = \"more\" }", "{ file = \"more\", member = \"x\" }", "is not an archive"),
        ("{ file = \"more\" }", "{ file = \"nope\" }", "there is no [file.\"nope\"]"),
        (", { file = \"more\" }", "", "no split uses [file.\"more\"]"),
        ("t/test.sgm", "../test.sgm", "leaves its folder"),
        ("source.digest = \"unknown\"", "", "0 digests are stated"),
        (
            "source.digest = \"unknown\"",
            "source.digest = \"unknown\"\nsource.md5 = \"00\"",
            "2 digests are stated",
        ),
        ("source.digest = \"unknown\"", "source.md5 = \"00\"", "is not 32 lower-case"),
        ("https://example.invalid/more.de", "ftp://example.invalid/more.de", "neither http nor https"),
        ("[\"https://example.invalid/more.de\"]", "[]", "`urls` is empty"),
        ("lines = 3", "lines = 3\nlimes = 4", "line 9"),
        ("unpack = \"tar.gz\"", "unpack = \"rar\"", "unknown variant"),
    ];
    for (from, to, why) in cases {
        assert!(sound.contains(from), "{from}");
        let error = CorpusDefinition::parse(&sound.replacen(from, to, 1), "x.toml").unwrap_err().to_string();
        assert!(error.starts_with("x.toml: ") && error.contains(why), "{to}: {error}");
    }
}

#[test]
fn members_of_a_large_folder_are_read_again_only_if_their_length_or_time_changed() {
    let dir = tempfile::tempdir().unwrap();
    let noise = |seed: u32| -> Vec<u8> {
        let next = |state: &mut u32| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some((*state >> 24) as u8)
        };
        std::iter::repeat_n((), 33 << 20).scan(seed, |state, ()| next(state)).collect()
    };
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::none()));
    for name in ["r/a.wav", "r/b/c.wav", "r/d.txt"] {
        let bytes = noise(name.len() as u32);
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, &bytes[..]).unwrap();
    }
    let archive = builder.into_inner().unwrap().finish().unwrap();
    let mirror = dir.path().join("mirror/example.invalid");
    fs::create_dir_all(&mirror).unwrap();
    fs::write(mirror.join("r.tgz"), &archive).unwrap();
    let text = format!(
        "name = \"r\"\nsummary = \"s\"\nhomepage = \"h\"\nlicence = {{ terms = \"t\", source = \"s\" }}\n\
         [split.train.recordings]\nsuffix = \".wav\"\nfolders = [{{ file = \"r\", folder = \"r\" }}]\n\
         transcripts = {{ kind = \"file-name\", words = {{ a = \"A\" }} }}\n\
         [file.r]\nunpack = \"tar.gz\"\nsource.urls = [\"https://example.invalid/r.tgz\"]\nsource.sha256 = \"{}\"\n",
        sha256_of(&archive)
    );
    let corpus = CorpusDefinition::parse(&text, "r.toml").unwrap();
    let home = DataHome::new(dir.path().join("home"));
    let mirror = Some(dir.path().join("mirror").display().to_string());
    let options = FetchOptions { mirror, offline: true, ..FetchOptions::default() };
    let fetched = corpus.fetch_all(&home, &options).unwrap();
    let folder = &fetched.split("train").unwrap().recordings.as_ref().unwrap().folders[0];
    assert!(folder.join("b/c.wav").is_file() && !folder.join("d.txt").exists());

    let path = folder.join("a.wav");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[5] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = corpus.fetch_all(&home, &options).unwrap_err().to_string();
    assert!(error.contains("a.wav"), "{error}");
    // Damage that changes neither length nor modification time is found only by a full
    // verification.
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    assert_eq!(corpus.fetch_all(&home, &options).unwrap(), fetched);
    let bad: Vec<_> = corpus.verify(&home, &Silent).into_iter().filter(|c| c.result.is_err()).collect();
    assert_eq!((bad.len(), &bad[0].path), (1, &path));
    fs::remove_file(&path).unwrap();
    corpus.fetch_all(&home, &options).unwrap();
    assert!(path.is_file(), "what is missing is unpacked again");
}
