//! Calls of `zoo` in temporary homes.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A home that is removed at the end of a test, with calls of the program in it.
pub struct Zoo {
    home: TempDir,
}

/// Result of a call.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Zoo {
    pub fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file into the home's folder.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zoo"));
        for variable in ["ZOO_MIRROR", "XDG_DATA_HOME", "CLICOLOR_FORCE"] {
            command.env_remove(variable);
        }
        // Help is wrapped at the terminal's width, and tests have no terminal.
        command.env("ZOO_HOME", self.home()).env("NO_COLOR", "1").env("COLUMNS", "100");
        command.current_dir(self.home()).args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.run_with_input(arguments, "")
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Ended {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read stdin may have ended already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Ended {
            code: output.status.code().expect("not ended by a signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command and checks its exit code.
    #[track_caller]
    pub fn ends_with(&self, code: i32, arguments: &[&str]) -> Ended {
        let ended = self.run(arguments);
        assert_eq!(ended.code, code, "zoo {}\n{}\n{}", arguments.join(" "), ended.stdout, ended.stderr);
        ended
    }
}

impl Ended {
    /// The document of JSON on stdout. It must match docs/json.schema.json.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        let document =
            serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{}", self.stdout));
        crate::json_schema::assert_valid(&document);
        document
    }

    /// A member of the document on stdout.
    #[track_caller]
    pub fn part(&self, key: &str) -> serde_json::Value {
        let mut document = self.json();
        assert!(!document[key].is_null(), "{key} is not in {document}");
        document[key].take()
    }

    /// The only line of stdout, of a command that prints lines of JSON.
    #[track_caller]
    pub fn json_line(&self) -> serde_json::Value {
        assert_eq!(self.stdout.lines().count(), 1, "{}", self.stdout);
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{}", self.stdout))
    }

    /// The error on the last line of stderr, with `--format json`. It must match the schema.
    #[track_caller]
    pub fn error(&self) -> serde_json::Value {
        let line = self.stderr.lines().last().unwrap_or_default();
        let mut document: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}\n{}", self.stderr));
        crate::json_schema::assert_valid(&document);
        document["error"].take()
    }

    /// Checks that stderr has an `error:` line with this text, and a hint, or with `--format json` an
    /// error that has both.
    #[track_caller]
    pub fn says(&self, error: &str) {
        if self.stderr.lines().last().is_some_and(|line| line.starts_with('{')) {
            let found = self.error();
            assert!(found["message"].as_str().is_some_and(|message| message.contains(error)), "{found}");
            assert!(found["hint"].is_string(), "{found}");
            return;
        }
        let line = self.stderr.lines().find(|line| line.starts_with("error: "));
        assert!(line.is_some_and(|line| line.contains(error)), "{error:?} is not in\n{}", self.stderr);
        assert!(self.stderr.lines().any(|line| line.starts_with("hint: ")), "no hint in\n{}", self.stderr);
    }
}

/// Every file of a folder with its content.
pub fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                found.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Folders of the runs in the document of `zoo reproduce`.
pub fn run_folders(outcome: &serde_json::Value) -> Vec<PathBuf> {
    let runs = outcome["runs"].as_array().unwrap().iter();
    runs.map(|run| PathBuf::from(run["folder"].as_str().unwrap())).collect()
}

/// A tone as a WAV file: 16 bits, 8 kHz, one channel.
pub fn tone(hertz: f64, samples: u32) -> Vec<u8> {
    let wave =
        (0..samples).map(|i| ((f64::from(i) * hertz * std::f64::consts::TAU / 8000.0).sin() * 8000.0) as i16);
    let data: Vec<u8> = wave.flat_map(i16::to_le_bytes).collect();
    let mut bytes = b"RIFF".to_vec();
    bytes.extend((36 + data.len() as u32).to_le_bytes());
    bytes.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data");
    bytes.extend((data.len() as u32).to_le_bytes());
    bytes.extend(data);
    bytes
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Path of a file in the repository.
pub fn in_root(path: &str) -> String {
    root().join(path).to_str().unwrap().to_owned()
}

/// Compares text with a committed file in `tests/end_to_end/snapshots`. Writes the file if
/// `ZOO_UPDATE_SNAPSHOTS` is set.
#[track_caller]
pub fn assert_snapshot(name: &str, text: &str) {
    let path = root().join("tests/end_to_end/snapshots").join(name);
    if std::env::var_os("ZOO_UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "not as in {} (ZOO_UPDATE_SNAPSHOTS=1 writes it):\n{text}", path.display());
}

/// Writes a recipe file: the reversal recipe at a size that trains in seconds, with its published
/// claims and with `changes` of its text.
pub fn small_copy(zoo: &Zoo, changes: &[(&str, &str)]) -> String {
    let text = std::fs::read_to_string(in_root("recipes/schema/tests/written-out/reversal-transformer.toml"))
        .unwrap();
    let smaller = [
        ("name = \"reversal-transformer\"", "name = \"copied\""),
        ("min_length = 5", "min_length = 2"),
        ("max_length = 50", "max_length = 4"),
        ("train = 10000", "train = 640"),
        ("valid = 1000", "valid = 32"),
        ("test = 2000", "test = 64"),
        ("lines = 1000", "lines = 32"),
        ("lines = 2000", "lines = 64"),
        ("max_updates = 800", "max_updates = 20"),
    ];
    let text = smaller.iter().chain(changes).fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    });
    zoo.file("copied.toml", &text).to_str().unwrap().to_string()
}
