//! The three preparations of WMT English-German from end to end: the built-in definitions, small
//! archives with the same layout, and a server that fails on purpose.

use crate::server;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use server::{Agrees, Asked, Reply, Server};
use zoo_datasets::batches::{BatchPlan, Collator, PairSource};
use zoo_datasets::corpora::{CorpusDefinition, CorpusError, FetchedCorpus, Packing, TextFormat};
use zoo_datasets::fetch::{DataHome, Digest, FetchOptions};
use zoo_datasets::tasks::translation::prepare::{
    Place, PrepareError, PrepareOptions, PreparedTranslation, prepare_from_files,
};
use zoo_datasets::text::bpe::undo;
use zoo_recipes::tasks::translation::TextDataSpec;
use zoo_recipes::{Specials, TextTokenizerSpec};

const NAMES: [&str; 3] = ["wmt-en-de-openseq2seq", "wmt16-en-de-nvidia", "wmt17-en-de-nvidia"];

/// Numbered lines of a text member in one language; each contains `stem`.
fn lines(language: &str, stem: &str, count: usize) -> Vec<String> {
    let (start, words) = match language {
        "en" => {
            ("The house", ["is old", "stands by the river", "was sold yesterday", "has a well-known garden"])
        }
        _ => ("Das Haus", ["ist alt", "steht am Fluss", "wurde gestern verkauft", "hat einen Garten"]),
    };
    (0..count).map(|i| format!("{start} {i} {} of {stem}.", words[(i * 7 + count) % 4])).collect()
}

/// The text of the training files, with every kind of line that a preparation treats specially.
fn training(language: &str, member: &str) -> String {
    let mut all = lines(language, member.split(['.', '-']).next().unwrap(), 60);
    let english = language == "en";
    let many = |n: usize| vec!["word"; n].join(" ");
    all.push(String::new());
    all.push(if english { many(81) } else { many(30) });
    all.push(if english { many(300) } else { many(290) });
    all.push(if english { "ratio".into() } else { many(10) });
    all.push(if english { "A ♥ heart".into() } else { "Ein ♥ Herz".into() });
    all.push(if english {
        "He said “it’s a well-known  | thing”".into()
    } else {
        "Er sagt: „ein Ding“".into()
    });
    all.join("\n") + "\n"
}

fn sgm(lines: &[String]) -> String {
    let mut text = String::from("<srcset setid=\"x\">\n<doc docid=\"1\">\n");
    for (id, line) in lines.iter().enumerate() {
        writeln!(text, "<seg id=\"{}\">{line}</seg>", id + 1).unwrap();
    }
    text + "</doc>\n</srcset>\n"
}

/// A corpus whose URLs point to `server`, and the files that the server should have, by path.
fn localized(name: &str, server: &str) -> (CorpusDefinition, BTreeMap<String, Vec<u8>>) {
    let mut corpus = CorpusDefinition::find(name).unwrap();
    // Member -> text, by file.
    let mut members: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (split, definition) in &corpus.splits {
        for (language, parts) in &definition.text {
            for part in parts {
                let count = definition.lines.unwrap_or(40) as usize;
                let text = match (split.as_str(), definition.format) {
                    ("train", _) => training(language, part.member.as_deref().unwrap()),
                    // The last line is one that cleaning drops.
                    ("newstest_dev", _) => {
                        let mut all = lines(language, split, count - 1);
                        all.push("A ♥ heart".into());
                        sgm(&all)
                    }
                    (_, TextFormat::Lines) => lines(language, split, count).join("\n") + "\n",
                    _ => sgm(&lines(language, split, count)),
                };
                let member = part.member.clone().unwrap_or_default();
                members.entry(part.file.clone()).or_default().insert(member, text);
            }
        }
    }
    let mut files = BTreeMap::new();
    for (file, definition) in &mut corpus.files {
        let bytes = match definition.unpack {
            Some(packing) => {
                assert_eq!(packing, Packing::TarGz);
                let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
                let mut add = |path: &str, text: &str| {
                    let mut header = tar::Header::new_gnu();
                    header.set_size(text.len() as u64);
                    header.set_mode(0o644);
                    tar.append_data(&mut header, path, text.as_bytes()).unwrap();
                };
                add("README", "a file that no split uses");
                members[file].iter().for_each(|(path, text)| add(path, text));
                tar.into_inner().unwrap().finish().unwrap()
            }
            None => members[file][""].clone().into_bytes(),
        };
        let place = definition.source.place().unwrap();
        definition.source.urls = vec![format!("{server}/first/{place}"), format!("{server}/second/{place}")];
        definition.source.size = definition.source.size.map(|_| bytes.len() as u64);
        definition.source.digest = match definition.source.digest {
            Digest::Unknown => Digest::Unknown,
            _ => Digest::Sha256(zoo_datasets::fetch::sha256_of(&bytes)),
        };
        files.insert(place, bytes);
    }
    // Numbers of merges and pieces that this small text can give.
    let preparation = corpus.preparation.as_mut().unwrap();
    match &mut preparation.tokenizer {
        TextTokenizerSpec::SubwordNmt { merges, max_vocabulary, .. } => {
            *merges = 60;
            *max_vocabulary = max_vocabulary.map(|_| 90);
        }
        TextTokenizerSpec::SentencePiece { pieces, .. } => *pieces = 150,
        TextTokenizerSpec::Words { .. } => unreachable!("no published preparation is of words"),
    }
    (corpus, files)
}

/// Serves the files. The first URL of each fails in a way that depends on the file.
fn failing_server(files: Arc<std::sync::Mutex<BTreeMap<String, Vec<u8>>>>) -> Server {
    Server::start(move |asked: &Asked, number| {
        let files = files.lock().unwrap();
        let (which, place) = asked.path[1..].split_once('/').unwrap();
        let Some(bytes) = files.get(place) else { return Reply::new(404, "not here") };
        let etag = format!("\"{}\"", bytes.len());
        let good = Reply::file(asked, bytes, &etag);
        let kind = files.keys().position(|key| key == place).unwrap() % 5;
        match (which, kind) {
            ("second", _) => good,
            // Drops the connection in the middle each time, except at the end of the file.
            (_, 0) => good.cut(bytes.len() / 3 + 1),
            // Replies "busy" every other time.
            (_, 1) if number % 2 == 0 => Reply::new(503, "busy"),
            (_, 1) => good,
            // Breaks off, and then replies with a range that was not requested.
            (_, 2) if asked.range.is_some() => Reply::new(206, &bytes[..bytes.len() / 2])
                .header("Content-Range", &format!("bytes 0-{}/{}", bytes.len() / 2 - 1, bytes.len()))
                .header("ETag", &etag),
            (_, 2) => good.cut(bytes.len() / 2),
            // Sends wrong bytes of the same length.
            (_, 3) => Reply::new(200, vec![b'x'; bytes.len()]),
            // Sends a web page.
            _ => Reply::new(200, "<!DOCTYPE html><html><body>moved</body></html>"),
        }
    })
}

struct Setting {
    dir: tempfile::TempDir,
    server: Server,
    corpus: CorpusDefinition,
}

fn setting(name: &str) -> Setting {
    let files = Arc::new(std::sync::Mutex::new(BTreeMap::new()));
    let server = failing_server(files.clone());
    let (corpus, made) = localized(name, server.url("").trim_end_matches('/'));
    *files.lock().unwrap() = made;
    Setting { dir: tempfile::tempdir().unwrap(), server, corpus }
}

impl Setting {
    fn data(&self) -> TextDataSpec {
        let eval: BTreeMap<&str, serde_json::Value> = self
            .corpus
            .splits
            .iter()
            .filter(|(split, _)| split.as_str() != "train")
            .map(|(split, definition)| {
                let lines = definition.lines.unwrap_or(80);
                (split.as_str(), serde_json::json!({"split": split, "lines": lines, "references": "raw"}))
            })
            .collect();
        serde_json::from_value(serde_json::json!({
            "corpus": self.corpus.name,
            "reader": {"kind": "parallel-text", "source": "en", "target": "de"},
            "tokenizer": self.corpus.preparation.as_ref().unwrap().tokenizer,
            "batching": {"kind": "tokens", "max_tokens": 2000},
            "eval": eval,
        }))
        .unwrap()
    }

    fn fetch(&self) -> Result<FetchedCorpus, CorpusError> {
        let options = FetchOptions {
            consent: &Agrees,
            retries: 3,
            backoff: Duration::from_millis(1),
            stall: Duration::from_secs(10),
            ..FetchOptions::default()
        };
        self.corpus.fetch_all(&DataHome::new(self.dir.path().join("home")), &options)
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("prepared").join("x")
    }

    fn prepare(&self, data: &TextDataSpec) -> Result<PreparedTranslation, PrepareError> {
        let place = Place { base: Path::new(""), definition: Some(&self.corpus), progress: &|_| () };
        prepare_from_files(&self.folder(), data, PrepareOptions::default(), place, || {
            Ok::<_, PrepareError>(Some(self.fetch().unwrap()))
        })
    }

    fn prepared_lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder().join(file)).unwrap();
        text.split_terminator('\n').map(String::from).collect()
    }
}

#[test]
fn every_preparation_comes_through_a_server_that_fails() {
    for name in NAMES {
        let mut s = setting(name);
        // The digests are those of the real text.
        s.corpus.preparation.as_mut().unwrap().md5.clear();
        let data = s.data();
        let prepared = s.prepare(&data).unwrap();
        // Every kind of failure occurred, and was resolved at the same URL or at the next.
        let asked = s.server.asked();
        assert!(asked.iter().any(|a| a.range.is_some()), "{name}: something was resumed");
        assert!(asked.iter().any(|a| a.path.starts_with("/second/")), "{name}: a second URL was needed");
        // Offline, the existing files give the same result.
        let again = s.prepare(&data).unwrap();
        assert_eq!(again.splits, prepared.splits, "{name}");
        assert_eq!(s.server.asked().len(), asked.len(), "{name}: nothing is fetched again");
        assert_eq!(
            fs::read_dir(s.folder().parent().unwrap()).unwrap().count(),
            1,
            "{name}: nothing temporary"
        );

        // The batches of one epoch contain every pair once.
        let train = prepared.train().unwrap()[0];
        let plan = BatchPlan::new(&train.lengths(), &data.batching, 1).unwrap();
        let pad = prepared.pipeline.target.specials().pad;
        let collator = Collator { source_pad: pad, target_pad: pad, pad_length_to: 1 };
        let mut pairs = 0;
        for ids in plan.epoch(0) {
            collator.batch(train.as_ref(), &ids);
            pairs += ids.len();
        }
        assert_eq!(pairs as u64, train.statistics.pairs, "{name}");
        assert!(train.statistics.source_unknown == 0 || name == "wmt17-en-de-nvidia", "{name}");
    }
}

#[test]
fn openseq2seqs_text_is_raw_cleaned_and_shuffled_with_its_pairs_together() {
    let s = setting("wmt-en-de-openseq2seq");
    let prepared = s.prepare(&s.data()).unwrap();
    let statistics = &prepared.train().unwrap()[0].statistics;
    // Each of three files of 66 pairs has one empty line, one of 81 and one of 300 words, and one
    // with ten times the words of its other side.
    assert_eq!(
        (statistics.pairs_read, statistics.skipped_empty, statistics.dropped_by_cleaning, statistics.pairs),
        (198, 3, 9, 186)
    );
    let text = |file: &str| -> Vec<String> {
        let join = |line: &String| line.replace(' ', "").replace('▁', " ").trim_start().to_string();
        s.prepared_lines(file).iter().map(join).collect()
    };
    let (source, target) = (text("train.source"), text("train.target"));
    // The order differs, and pairs stay together.
    assert!(source.contains(&"He said “it’s a well-known thing”".to_string()), "raw but for bars and spaces");
    let number = |line: &str| line.split(' ').find_map(|word| word.parse::<u32>().ok());
    let numbers: Vec<_> = source.iter().map(|line| number(line)).collect();
    assert_eq!(numbers, target.iter().map(|line| number(line)).collect::<Vec<_>>());
    assert!(numbers.windows(2).filter(|w| w[0] > w[1]).count() > 50, "shuffled");
    // A line's ids decode to the raw line again, and the special ids are those of OpenSeq2Seq.
    let test = &prepared.splits["newstest2014"];
    let ids = test.pair(0).1;
    let line = test.references.as_ref().unwrap().raw[0].clone();
    assert_eq!((prepared.undo(ids), *ids.last().unwrap()), (line, 1));
    assert_eq!(prepared.pipeline.target.len(), 150);
    // The two test sets are different splits.
    assert_eq!(prepared.splits["newstest2014"].references.as_ref().unwrap().raw.len(), 2737);
    assert_eq!(prepared.splits["newstest2014-full"].references.as_ref().unwrap().raw.len(), 3003);
    assert_eq!(prepared.splits["newstest2014"].statistics.dropped_by_cleaning, 0);
}

#[test]
fn gnmts_text_is_tokenised_cleaned_and_of_latin_1() {
    let s = setting("wmt16-en-de-nvidia");
    let mut data = s.data();
    // The published digests belong to the real text. They are not compared for another tokenizer.
    if let TextTokenizerSpec::SubwordNmt { merges, .. } = &mut data.tokenizer {
        *merges = 61;
    }
    let prepared = s.prepare(&data).unwrap();
    let statistics = &prepared.train().unwrap()[0].statistics;
    // Drops the same pairs as OpenSeq2Seq's, and those with the heart and the curly quotation
    // marks.
    assert_eq!((statistics.dropped_by_cleaning, statistics.pairs), (15, 180));
    let source = s.prepared_lines("train.source");
    assert_eq!(undo(&source[0]), "The house 0 is old of europarl .");
    assert!(source.iter().all(|line| line.chars().all(|c| c <= '\u{ff}')));
    // newstest2015 followed by newstest2016, also cleaned. The number of lines in a recipe is that
    // before cleaning.
    let development = &prepared.splits["newstest_dev"].statistics;
    assert_eq!((development.pairs, development.dropped_by_cleaning), (78, 2));
    assert_eq!(data.eval["newstest_dev"].lines, 80);
    data.eval.get_mut("newstest_dev").unwrap().lines = 78;
    let error = s.prepare(&data).unwrap_err().to_string();
    assert!(error.contains("newstest_dev") && error.contains("80 lines"), "{error}");
    // GNMT's ids: pad 0, unknown 1, begin 2, end 3.
    let specials = prepared.pipeline.target.specials();
    assert_eq!((specials.pad, specials.unknown, specials.begin, specials.end), (0, 1, 2, 3));
    assert_eq!(prepared.pipeline.target.len() % 8, 0);
}

#[test]
fn the_transformers_text_is_normalised_and_its_test_set_is_not() {
    let s = setting("wmt17-en-de-nvidia");
    let prepared = s.prepare(&s.data()).unwrap();
    let statistics = &prepared.train().unwrap()[0].statistics;
    // Pairs with 300 words and with ten times the words are dropped; 81 words are kept.
    assert_eq!((statistics.dropped_by_cleaning, statistics.pairs), (6, 189));
    let source: Vec<String> = s.prepared_lines("train.source").iter().map(|line| undo(line)).collect();
    assert!(
        source.contains(&"He said &quot; it &apos;s a well @-@ known &#124; thing &quot;".to_string()),
        "{:?}",
        source.last()
    );
    assert!(source.iter().any(|line| line == "A ♥ heart"));
    // 33,712 rows for the real text, 90 here, padded to a multiple of 8.
    assert_eq!(prepared.pipeline.target.len(), 96);
    assert_eq!(prepared.splits["newstest2014-full"].statistics.pairs, 3003);
    // Curly quotation marks are normalised in training and validation; in the test set only
    // apostrophes are.
    let treated = |split: &str, line: &str| {
        let preparation = s.corpus.preparation.as_ref().unwrap();
        let TextTokenizerSpec::SubwordNmt { normalize, .. } = &preparation.tokenizer else { unreachable!() };
        let steps = preparation.normalize.get(split).unwrap_or(normalize);
        zoo_datasets::text::moses::Normalizer::new(steps, "en").unwrap().line(line)
    };
    assert_eq!(treated("newstest2013", "“it’s” so."), "&quot; it &apos;s &quot; so .");
    assert_eq!(treated("newstest2014-full", "“it’s” so."), "“ it &apos;s ” so .");
}

#[test]
fn prepared_text_that_is_not_as_published_is_refused_and_nothing_is_left() {
    let mut s = setting("wmt16-en-de-nvidia");
    let mut data = s.data();
    // Other ids for the same tokens.
    if let TextTokenizerSpec::SubwordNmt { specials, pad_vocabulary_to, .. } = &mut data.tokenizer {
        (*specials, *pad_vocabulary_to) = (Specials::Fairseq, 1);
    }
    // The published digests are those of the real text, so they do not match.
    let error = s.prepare(&data).unwrap_err().to_string();
    assert!(
        error.contains("split `newstest2014-full`")
            && error.contains("wmt16_en_de.sh")
            && error.contains("hint:"),
        "{error}"
    );
    assert_eq!(fs::read_dir(s.folder().parent().unwrap()).unwrap().count(), 0, "nothing is left");

    // The digests of this text come from a run without published digests.
    let published = std::mem::take(&mut s.corpus.preparation.as_mut().unwrap().md5);
    s.prepare(&data).unwrap();
    let md5 = |bytes: &[u8]| {
        use md5::Digest as _;
        hex::encode(md5::Md5::digest(bytes))
    };
    let mut own = published.clone();
    for (split, files) in &mut own {
        for (file, digest) in files {
            let name = match file.as_str() {
                "en" => format!("{split}.source"),
                "de" => format!("{split}.target"),
                _ => format!("{split}.raw"),
            };
            *digest = md5(&fs::read(s.folder().join(name)).unwrap());
        }
    }
    let raw = lines("de", "newstest2014-full", 3003).join("\n") + "\n";
    assert_eq!(own["newstest2014-full"]["raw.de"], md5(raw.as_bytes()), "the raw text is the segments' own");
    fs::remove_dir_all(s.folder()).unwrap();
    s.corpus.preparation.as_mut().unwrap().md5 = own.clone();
    s.prepare(&data).unwrap();

    // If any one digest differs, the text is refused with the file's name.
    for (split, files) in &published {
        for file in files.keys() {
            fs::remove_dir_all(s.folder()).ok();
            let mut other = own.clone();
            other.get_mut(split).unwrap().insert(file.clone(), published[split][file].clone());
            s.corpus.preparation.as_mut().unwrap().md5 = other;
            let error = s.prepare(&data).unwrap_err().to_string();
            let due = format!("split `{split}`, {file}: its MD5 is {}", own[split][file]);
            assert!(error.starts_with(&due) && error.contains(&published[split][file]), "{error}");
        }
    }
}

#[test]
fn a_test_set_of_another_length_is_refused_before_anything_is_learnt() {
    let mut s = setting("wmt17-en-de-nvidia");
    s.corpus.splits.get_mut("newstest2014-full").unwrap().lines = Some(2737);
    let error = s.prepare(&s.data()).unwrap_err().to_string();
    assert!(
        error.contains("newstest2014-full") && error.contains("3003 lines") && error.contains("2737"),
        "{error}"
    );
    assert_eq!(fs::read_dir(s.folder().parent().unwrap()).unwrap().count(), 0);
}

#[test]
fn a_model_that_is_given_is_used_and_another_one_is_noticed() {
    let s = setting("wmt-en-de-openseq2seq");
    s.prepare(&s.data()).unwrap();
    let model = fs::read(s.folder().join("sentencepiece.model")).unwrap();
    let base = s.dir.path().join("recipe");
    fs::create_dir(&base).unwrap();
    fs::File::create(base.join("m.model")).unwrap().write_all(&model).unwrap();
    let mut data = s.data();
    let TextTokenizerSpec::SentencePiece { model: given, .. } = &mut data.tokenizer else { unreachable!() };
    *given = Some("m.model".into());
    let folder = s.dir.path().join("prepared/given");
    let prepare = |data: &TextDataSpec| {
        let place = Place { base: &base, definition: Some(&s.corpus), progress: &|_| () };
        prepare_from_files(&folder, data, PrepareOptions::default(), place, || {
            Ok::<_, PrepareError>(Some(s.fetch().unwrap()))
        })
    };
    prepare(&data).unwrap();
    assert_eq!(fs::read(folder.join("train.ids")).unwrap(), fs::read(s.folder().join("train.ids")).unwrap());
    assert_eq!(fs::read(folder.join("sentencepiece.model")).unwrap(), model);

    fs::write(base.join("m.model"), &model[..model.len() - 2]).unwrap();
    let error = prepare(&data).unwrap_err().to_string();
    assert!(error.contains("other settings (model_sha256)"), "{error}");
    fs::write(base.join("m.model"), &model).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let TextTokenizerSpec::SentencePiece { pieces, .. } = &mut data.tokenizer else { unreachable!() };
    *pieces = 151;
    let error = prepare(&data).unwrap_err().to_string();
    assert!(error.contains("gives 150 rows") && error.contains("says 151"), "{error}");
}
