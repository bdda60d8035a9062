//! Public speech corpora through a mirror (`ZOO_MIRROR`), and LibriSpeech's layout from a sample
//! (`ZOO_SAMPLES`); without them the tests print that they were skipped.

use std::path::{Path, PathBuf};

use zoo_datasets::corpora::{CorpusDefinition, FetchedCorpus};
use zoo_datasets::fetch::{DataHome, FetchOptions, Silent, sha256_of};
use zoo_datasets::readers::split_names;
use zoo_datasets::speech::{
    PreparedSpeech, SpeechBatches, SpeechError, SpeechPlace, SpeechStep, evaluation_batches, prepare,
};
use zoo_recipes::tasks::speech_recognition::RecognitionDataSpec;

struct Home {
    dir: tempfile::TempDir,
    mirror: String,
}

impl Home {
    fn new(mirror: impl AsRef<Path>) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), mirror: mirror.as_ref().display().to_string() }
    }

    fn data(&self) -> DataHome {
        DataHome::new(self.dir.path().join("home"))
    }

    fn fetch(&self, corpus: &CorpusDefinition, data: &RecognitionDataSpec) -> FetchedCorpus {
        let options =
            FetchOptions { mirror: Some(self.mirror.clone()), offline: true, ..FetchOptions::default() };
        let splits = split_names(data);
        let splits: Vec<&str> = splits.iter().map(String::as_str).collect();
        corpus.fetch_splits(&splits, &self.data(), &options).unwrap()
    }

    /// Prepares the splits, and returns the number of recordings that were checked.
    fn prepare(
        &self,
        corpus: &CorpusDefinition,
        data: &RecognitionDataSpec,
    ) -> Result<(PreparedSpeech, usize), SpeechError> {
        let listed = std::cell::Cell::new(0);
        let progress = |step: SpeechStep<'_>| {
            if let SpeechStep::List(_, done, total) = step {
                assert!(done <= total);
                listed.set(listed.get() + 1);
            }
        };
        let place = SpeechPlace { base: Path::new(""), progress: &progress };
        let prepared = prepare(&self.dir.path().join("lists"), data, place, &split_names(data), || {
            Ok::<_, SpeechError>(Some(self.fetch(corpus, data)))
        })?;
        Ok((prepared, listed.get()))
    }
}

fn mirror() -> Option<PathBuf> {
    let mirror = std::env::var_os("ZOO_MIRROR").map(PathBuf::from);
    if mirror.is_none() {
        println!("skipped: ZOO_MIRROR is not set");
    }
    mirror
}

fn yesno() -> RecognitionDataSpec {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../recipes/catalog/speech-recognition/yesno-tdnn.toml");
    let recipe: toml::Value = toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    recipe["data"].clone().try_into().unwrap()
}

#[test]
fn yesno_is_the_published_split_with_its_copies() {
    let Some(mirror) = mirror() else { return };
    let (home, data) = (Home::new(mirror), yesno());
    let corpus = CorpusDefinition::find("yesno").unwrap();
    let (prepared, listed) = home.prepare(&corpus, &data).unwrap();
    assert_eq!(listed, 2);
    assert_eq!(prepared.classes.names(), ["SIL", "N", "Y"]);
    let train = prepared.train().unwrap();
    let test = prepared.eval_set("test", &data.eval["test"]).unwrap();
    assert_eq!((train.len(), test.len(), test.statistics.words), (30, 30, 240));
    assert_eq!((&*train.utterances[0].id, &*test.utterances[0].id), ("0_0_0_0_1_1_1_1", "0_0_0_1_0_0_0_1"));
    assert_eq!(train.references[0], "NO NO NO NO YES YES YES YES");
    assert_eq!(train.labels(0), [0, 1, 0, 1, 0, 1, 0, 1, 0, 2, 0, 2, 0, 2, 0, 2, 0]);
    let seconds = train.statistics.seconds + test.statistics.seconds;
    assert!((seconds - 367.7).abs() < 0.1, "{seconds}");

    let batches = SpeechBatches::training(&prepared, &data, 1).unwrap();
    assert_eq!(batches.examples(), 90);
    // 90 utterances of 5.6 to 6.8 seconds: four or five per batch of 30 seconds.
    assert!((18..=24).contains(&batches.per_epoch(0)), "{}", batches.per_epoch(0));
    assert!((0.0..0.2).contains(&batches.padding()), "{}", batches.padding());
    let mut heard = vec![0; 30];
    for made in batches.ahead(0, 0, |_| true) {
        let (index, batch) = made.unwrap();
        assert_eq!(batch, batches.batch(0, index as usize).unwrap());
        assert!(batch.seconds <= 30.0 && batch.width == 23 && batch.skipped.is_empty());
        assert_eq!(batch.features.len(), batch.ids.len() * batch.longest() * 23);
        assert!(batch.features.iter().all(|value| value.is_finite()));
        batch.ids.iter().for_each(|id| heard[*id as usize] += 1);
    }
    assert_eq!(heard, [3; 30]);

    // The second time, no recording is checked again.
    let (again, listed) = home.prepare(&corpus, &data).unwrap();
    assert_eq!((listed, again.train().unwrap().fingerprint()), (0, train.fingerprint()));

    // Evaluation uses all utterances, and their frames do not depend on the batch.
    let mut seen = vec![None; 30];
    for batch in evaluation_batches(&prepared, test, 30.0) {
        let batch = batch.unwrap();
        let longest = batch.longest() * batch.width;
        for (at, id) in batch.ids.iter().enumerate() {
            let own = &batch.features[at * longest..][..batch.lengths[at] * batch.width];
            assert!(seen[*id as usize].replace(own.to_vec()).is_none());
        }
    }
    for batch in evaluation_batches(&prepared, test, 0.0) {
        let batch = batch.unwrap();
        assert_eq!(batch.ids.len(), 1);
        assert_eq!(seen[batch.ids[0] as usize].as_ref(), Some(&batch.features));
    }
}

#[test]
fn fsdd_is_its_official_split_and_can_be_joined() {
    let Some(mirror) = mirror() else { return };
    let home = Home::new(mirror);
    let text = |join: &str, train: u32, lines: u32| {
        let text = format!(
            r#"{{"corpus": "fsdd", "reader": {{"kind": "audio-manifest", "sample_rate_hz": 8000, "strict": true{join}}},
            "tokenizer": {{"kind": "characters", "alphabet": " efghinorstuvwxz"}},
            "features": {{"kind": "librosa", "output": "log-mel", "features": 40, "dither": 1e-5}},
            "batching": {{"kind": "utterances", "utterances": {train}}},
            "eval": {{"valid": {{"split": "test", "lines": {lines}}}}}}}"#
        );
        serde_json::from_str::<RecognitionDataSpec>(&text).unwrap()
    };
    let corpus = CorpusDefinition::find("fsdd").unwrap();
    let data = text("", 32, 300);
    let (prepared, _) = home.prepare(&corpus, &data).unwrap();
    let (train, test) = (prepared.train().unwrap(), &prepared.splits["test"]);
    assert_eq!((train.len(), test.len()), (2_700, 300));
    assert_eq!((&*test.utterances[0].id, test.references[0].as_str()), ("0_george_0", "zero"));
    let seconds = train.statistics.seconds + test.statistics.seconds;
    assert!((seconds - 1312.0).abs() < 1.0, "{seconds}");
    assert_eq!(SpeechBatches::training(&prepared, &data, 1).unwrap().per_epoch(3), 84);

    let join = r#", "join": {"least": 1, "most": 5, "gap_ms": 100.0, "utterances": {"train": 500, "test": 60}, "seed": 3}"#;
    let data = text(join, 8, 60);
    let (prepared, listed) = home.prepare(&corpus, &data).unwrap();
    assert_eq!(listed, 0, "the lists are the same");
    let (train, test) = (prepared.train().unwrap(), &prepared.splits["test"]);
    assert_eq!((train.len(), test.len()), (500, 60));
    let mut counts = [0; 6];
    for (utterance, text) in train.utterances.iter().zip(&train.references) {
        let files = train.files(utterance);
        counts[files.len()] += 1;
        let names: Vec<Vec<String>> = files
            .iter()
            .map(|file| file.file_stem().unwrap().to_str().unwrap().split('_').map(String::from).collect())
            .collect();
        assert!(names.iter().all(|name| name[1] == names[0][1]), "one speaker");
        assert!(names.iter().all(|name| name[2].parse::<u32>().unwrap() >= 5), "of the training takes");
        assert_eq!(text.split(' ').count(), files.len());
    }
    assert!(counts[1..].iter().all(|count| *count > 60), "{counts:?}");
    assert_eq!(home.prepare(&corpus, &data).unwrap().0.train().unwrap().fingerprint(), train.fingerprint());
    let batches = SpeechBatches::training(&prepared, &data, 1).unwrap();
    let batch = batches.batch(0, 0).unwrap();
    let frames = |id: &u32| prepared.front_end().frames(train.utterances[*id as usize].samples as usize);
    assert_eq!(batch.lengths, batch.ids.iter().map(frames).collect::<Vec<_>>());
}

#[test]
fn librispeech_is_read_from_its_layout() {
    let Some(samples) = std::env::var_os("ZOO_SAMPLES") else {
        println!("skipped: ZOO_SAMPLES is not set");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let archive = std::fs::File::open(Path::new(&samples).join("librispeech_hubert.tar.xz")).unwrap();
    let archive = lzma_rust2::XzReader::new(std::io::BufReader::new(archive), false);
    tar::Archive::new(archive).unpack(folder.path()).unwrap();
    let own = |name: &str| std::fs::read(folder.path().join("librispeech_hubert").join(name)).unwrap();
    let (flac, trans) = (own("6313-76958-0021.flac"), own("6313-76958.trans.txt"));
    let mut builder =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let mut add = |path: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, bytes).unwrap();
    };
    for split in ["train-clean-100", "dev-clean"] {
        add(&format!("LibriSpeech/{split}/6313/76958/6313-76958-0021.flac"), &flac);
        add(&format!("LibriSpeech/{split}/6313/76958/6313-76958.trans.txt"), &trans);
    }
    add("LibriSpeech/README.TXT", b"not wanted");
    let archive = builder.into_inner().unwrap().finish().unwrap();
    let mirror = folder.path().join("mirror");
    std::fs::create_dir_all(mirror.join("example.invalid")).unwrap();
    std::fs::write(mirror.join("example.invalid/ls.tar.gz"), &archive).unwrap();
    let split = |name: &str| {
        format!(
            "[split.{name}]\nlines = 1\n[split.{name}.recordings]\nsuffix = \".flac\"\ntranscripts = {{ kind = \"trans-txt\" }}\n\
             folders = [{{ file = \"all\", folder = \"LibriSpeech/{}\" }}]\n",
            if name == "train" { "train-clean-100" } else { name }
        )
    };
    let definition = format!(
        "name = \"ls\"\nsummary = \"s\"\nhomepage = \"h\"\nlicence = {{ terms = \"t\", source = \"s\" }}\n{}{}\
         [file.all]\nunpack = \"tar.gz\"\nsource.urls = [\"https://example.invalid/ls.tar.gz\"]\nsource.sha256 = \"{}\"\n",
        split("train"),
        split("dev-clean"),
        sha256_of(&archive)
    );
    let corpus = CorpusDefinition::parse(&definition, "ls.toml").unwrap();
    let data: RecognitionDataSpec = serde_json::from_str(
        r#"{"corpus": "ls", "reader": {"kind": "audio-manifest", "sample_rate_hz": 16000},
            "tokenizer": {"kind": "characters", "alphabet": " abcdefghijklmnopqrstuvwxyz'", "normalize": ["lowercase"]},
            "features": {"kind": "librosa", "output": "log-mel", "features": 64, "normalize": "per-feature"},
            "batching": {"kind": "utterances", "utterances": 1},
            "eval": {"valid": {"split": "dev-clean", "lines": 1}}}"#,
    )
    .unwrap();
    let home = Home::new(&mirror);
    let (prepared, _) = home.prepare(&corpus, &data).unwrap();
    let dev = &prepared.splits["dev-clean"];
    let text = String::from_utf8(trans.clone()).unwrap();
    assert_eq!(dev.raw[0], text.trim_end().split_once(' ').unwrap().1);
    assert_eq!(dev.references[0], dev.raw[0].to_lowercase());
    assert_eq!((&*dev.utterances[0].id, dev.utterances[0].samples), ("6313-76958-0021", 190_800));
    let unpacked = home.data().corpus_dir("ls").join("all/LibriSpeech");
    assert!(unpacked.join("train-clean-100/6313/76958/6313-76958-0021.flac").is_file());
    assert!(!unpacked.join("README.TXT").exists(), "only what a split uses is unpacked");
    assert!(corpus.verify(&home.data(), &Silent).iter().all(|check| check.result.is_ok()));

    // The number of recordings differs from the stated one.
    let more = CorpusDefinition::parse(&definition.replace("lines = 1", "lines = 2"), "ls.toml").unwrap();
    let error = Home::new(&mirror).prepare(&more, &data).unwrap_err().to_string();
    assert!(error.contains("has 1 recordings where 2 were due"), "{error}");

    // Damage that only decoding finds: training continues without the recording if it can;
    // evaluation does not.
    let file = unpacked.join("dev-clean/6313/76958/6313-76958-0021.flac");
    std::fs::write(&file, &flac[..flac.len() / 2]).unwrap();
    let error = evaluation_batches(&prepared, dev, 30.0).next().unwrap().unwrap_err().to_string();
    assert!(error.contains("6313-76958-0021") && error.contains("must not lose an utterance"), "{error}");
}
