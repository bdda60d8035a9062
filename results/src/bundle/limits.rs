//! What a bundle may ask of the machine that checks it. It comes from somebody else: every limit is looked at before its cost is paid.

use zoo_recipes::tasks::image_classification::{PictureDataSpec, PictureReaderSpec};
use zoo_recipes::{AudioManifestSpec, DataSpec, ReaderSpec, Recipe, TokenizerSpec};

/// Bytes of a bundle's file. The largest of this project has less than 1 MiB.
pub const MAX_BYTES: u64 = 64 << 20;

/// Characters of generated references. The toy has 100,000.
const MAX_CHARACTERS: u64 = 16 << 20;

/// Numbers of generated pictures. A smoke tier has 50,000.
const MAX_PIXELS: u64 = 64 << 20;

/// Seconds of generated recordings: together, and of one. The tones of a smoke tier last a minute.
const MAX_SECONDS: f64 = 4.0 * 3600.0;
const MAX_UTTERANCE_SECONDS: f64 = 120.0;

/// Samples a second of generated recordings.
const MAX_RATE_HZ: u32 = 192_000;

/// Recordings that generated utterances are joined of.
const MAX_JOINED: u64 = 100_000;

/// Whether the references of an evaluation set can be had from the recipe alone, within the limits.
///
/// # Errors
/// Words on what it asks for that it may not have: more than the limits, or a file of this machine.
pub fn may_derive_references(recipe: &Recipe, eval: &str) -> Result<(), String> {
    match recipe {
        Recipe::Translation(recipe) => of_sequences(&recipe.data, eval),
        Recipe::SpeechRecognition(recipe) => of_sequences(&recipe.data, eval),
        Recipe::SpeechSynthesis(recipe) => of_sequences(&recipe.data, eval),
        Recipe::ImageClassification(recipe) => of_pictures(&recipe.data, eval),
    }
}

/// The refusal of a recipe that reads files of its author.
fn own_file(what: &str) -> Result<(), String> {
    Err(format!("the recipe reads {what} of its author, which a bundle may not name; give its references"))
}

fn of_pictures(data: &PictureDataSpec, eval: &str) -> Result<(), String> {
    let set = data.eval.get(eval).ok_or_else(|| format!("the recipe has no evaluation set {eval}"))?;
    match data.reader {
        PictureReaderSpec::Stripes { train, test, .. } => {
            let (size, pictures) = (data.picture, count(&set.split, train, test, test));
            let numbers = [pictures, size.height, size.width, size.channels].into_iter().map(u64::from);
            let bytes = numbers.fold(1, u64::saturating_mul);
            match bytes > MAX_PIXELS {
                true => too_much("generated pixels", bytes.to_string(), MAX_PIXELS.to_string()),
                false => Ok(()),
            }
        }
        _ if data.corpus.is_none() => own_file("pictures"),
        _ => Ok(()),
    }
}

/// The refusal of a recipe that asks for more than a bundle may.
fn too_much(what: &str, asked: String, most: String) -> Result<(), String> {
    Err(format!("the recipe asks for {asked} {what}, and a bundle may ask for {most}"))
}

fn of_sequences(data: &DataSpec, eval: &str) -> Result<(), String> {
    let set = data.eval.get(eval).ok_or_else(|| format!("the recipe has no evaluation set {eval}"))?;
    if let TokenizerSpec::SentencePiece { model: Some(_), .. } = &data.tokenizer {
        return own_file("a SentencePiece model");
    }
    match &data.reader {
        ReaderSpec::Reversal { max_length, train, valid, test, .. } => {
            let lines = count(&set.split, *train, *valid, *test);
            let characters = u64::from(lines) * 2 * u64::from(*max_length);
            if characters > MAX_CHARACTERS {
                return too_much("generated characters", characters.to_string(), MAX_CHARACTERS.to_string());
            }
        }
        ReaderSpec::Tones(tones) => {
            let letters = f64::from(tones.most_words) * (f64::from(tones.longest_word) + 1.0);
            let one = letters * tones.letter_ms / 1000.0;
            let all = one * f64::from(count(&set.split, tones.train, tones.valid, tones.test));
            // A length that is not a number is not within a limit either.
            if !(one <= MAX_UTTERANCE_SECONDS && all <= MAX_SECONDS) || tones.sample_rate_hz > MAX_RATE_HZ {
                let asked = format!("{all:.0} s ({one:.0} s each, {} Hz)", tones.sample_rate_hz);
                let most =
                    format!("{MAX_SECONDS:.0} s ({MAX_UTTERANCE_SECONDS:.0} s each, {MAX_RATE_HZ} Hz)");
                return too_much("of generated recordings", asked, most);
            }
        }
        ReaderSpec::ParallelText { files, .. } if !files.is_empty() => return own_file("files"),
        ReaderSpec::AudioManifest(AudioManifestSpec { files, folder, join, .. }) => {
            if !files.is_empty() || folder.is_some() {
                return own_file("files");
            }
            if let Some(join) = join {
                let utterances = u64::from(join.utterances.get(&set.split).copied().unwrap_or(0));
                let recordings = utterances * u64::from(join.most);
                if recordings > MAX_JOINED {
                    return too_much("joined recordings", recordings.to_string(), MAX_JOINED.to_string());
                }
            }
        }
        ReaderSpec::ParallelText { .. } => {}
    }
    Ok(())
}

fn count(split: &str, train: u32, valid: u32, test: u32) -> u32 {
    match split {
        "train" => train,
        "valid" => valid,
        _ => test,
    }
}

#[cfg(test)]
mod tests {
    use zoo_recipes::{DataStatus, Document, ListedTask, Selection, SpeechRecognition, Translation};

    use super::*;

    fn recipe(name: &str, overrides: &[&str]) -> Recipe {
        let overrides = overrides.iter().map(|one| (*one).to_owned()).collect();
        let tier = if name == "jasper-10x5" { Some("smoke".to_owned()) } else { None };
        let selection = Selection { tier, overrides, ..Selection::default() };
        Document::load(name).unwrap().resolve(&selection).unwrap().recipe
    }

    #[test]
    fn the_recipes_of_this_project_are_within_the_limits() {
        for name in zoo_recipes::names() {
            let document = Document::load(name).unwrap();
            // What the user brings cannot be had from the recipe alone.
            let brought = matches!(document.data_status(), DataStatus::Gated | DataStatus::Private);
            let tiers = document.tiers().into_iter().map(|tier| Some(tier.to_owned())).chain([None]);
            for tier in tiers {
                let selection = Selection { tier: tier.clone(), ..Selection::default() };
                let recipe = document.resolve(&selection).unwrap().recipe;
                for eval in recipe.data().eval_sets() {
                    match may_derive_references(&recipe, eval) {
                        Err(why) if !brought => panic!("{name} {tier:?}: {why}"),
                        _ => {}
                    }
                }
            }
        }
    }

    #[test]
    fn more_than_the_limits_is_refused_unmade() {
        let asks =
            |name, overrides: &[&str]| may_derive_references(&recipe(name, overrides), "test").unwrap_err();
        let text =
            asks("reversal-transformer", &["data.reader.test=4000000000", "data.eval.test.lines=4000000000"]);
        assert!(text.contains("asks for 400000000000 generated characters"), "{text}");
        let tones = recipe("jasper-10x5", &[]);
        let eval = tones.data().eval_sets()[0].to_owned();
        let mut tones = SpeechRecognition::take(tones).unwrap();
        let ReaderSpec::Tones(spec) = &mut tones.data.reader else { panic!("the smoke tier hears tones") };
        spec.letter_ms = 1e12;
        assert!(may_derive_references(&tones.into(), &eval).unwrap_err().contains("of generated recordings"));
        let files = recipe("multi30k-lstm", &[]);
        let eval = files.data().eval_sets()[0].to_owned();
        assert_eq!(may_derive_references(&files, &eval), Ok(()));
        let mut files = Translation::take(files).unwrap();
        let ReaderSpec::ParallelText { files: own, .. } = &mut files.data.reader else { panic!() };
        let pair = serde_json::json!({"source": "/dev/zero", "target": "/dev/zero"});
        own.insert("test".to_owned(), serde_json::from_value(pair).unwrap());
        assert!(may_derive_references(&files.into(), &eval).unwrap_err().contains("files of its author"));
    }
}
