//! What a bundle may ask of the machine that checks it. It comes from somebody else: every limit is
//! looked at before its cost is paid.

use zoo_recipes::{Asked, Recipe};

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
    if !recipe.data().has_eval_set(eval) {
        return Err(format!("the recipe has no evaluation set {eval}"));
    }
    recipe.data().asked(eval).into_iter().try_for_each(within_limits)
}

fn within_limits(asked: Asked) -> Result<(), String> {
    let too_much = |what: &str, asked: String, most: String| {
        Err(format!("the recipe asks for {asked} {what}, and a bundle may ask for {most}"))
    };
    let at_most = |what: &str, asked: u64, most: u64| match asked > most {
        true => too_much(what, asked.to_string(), most.to_string()),
        false => Ok(()),
    };
    match asked {
        Asked::OwnFiles(what) => Err(format!(
            "the recipe reads {what} of its author, which a bundle may not name; give its references"
        )),
        Asked::Characters(count) => at_most("generated characters", count, MAX_CHARACTERS),
        Asked::Joined(count) => at_most("joined recordings", count, MAX_JOINED),
        Asked::Pixels(count) => at_most("generated pixels", count, MAX_PIXELS),
        Asked::Recordings { seconds, longest, rate_hz } => {
            // A length that is not a number is not within a limit either.
            let short = longest <= MAX_UTTERANCE_SECONDS && seconds <= MAX_SECONDS;
            if short && rate_hz <= MAX_RATE_HZ {
                return Ok(());
            }
            let asked = format!("{seconds:.0} s ({longest:.0} s each, {rate_hz} Hz)");
            let most = format!("{MAX_SECONDS:.0} s ({MAX_UTTERANCE_SECONDS:.0} s each, {MAX_RATE_HZ} Hz)");
            too_much("of generated recordings", asked, most)
        }
    }
}

#[cfg(test)]
mod tests {
    use zoo_recipes::tasks::translation::TextReaderSpec;
    use zoo_recipes::{
        DataStatus, Document, ListedTask, RecordingReaderSpec, Selection, SpeechRecognition, Translation,
    };

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
        let RecordingReaderSpec::Tones(spec) = &mut tones.data.reader else {
            panic!("the smoke tier hears tones")
        };
        spec.letter_ms = 1e12;
        assert!(may_derive_references(&tones.into(), &eval).unwrap_err().contains("of generated recordings"));
        let files = recipe("multi30k-lstm", &[]);
        let eval = files.data().eval_sets()[0].to_owned();
        assert_eq!(may_derive_references(&files, &eval), Ok(()));
        let mut files = Translation::take(files).unwrap();
        let TextReaderSpec::ParallelText { files: own, .. } = &mut files.data.reader else { panic!() };
        let pair = serde_json::json!({"source": "/dev/zero", "target": "/dev/zero"});
        own.insert("test".to_owned(), serde_json::from_value(pair).unwrap());
        assert!(may_derive_references(&files.into(), &eval).unwrap_err().contains("files of its author"));
    }
}
