//! Joins several recordings of one speaker to utterances.

use std::collections::BTreeMap;

use zoo_recipes::JoinSpec;

use super::error::SpeechError;
use super::listing::Listed;
use crate::random::{Purpose, RandomStream};

/// A joined utterance: positions of its recordings in the list.
pub(super) struct Joined {
    pub recordings: Box<[u32]>,
    pub text: String,
}

/// The joined utterances of a split. Speaker, number of recordings and each recording are drawn
/// uniformly, with repetition. Utterance i is a function of seed, split and i.
pub(super) fn join(split: &str, recordings: &[Listed], spec: &JoinSpec) -> Result<Vec<Joined>, SpeechError> {
    let key = |name: &str| format!("reader.join.{name}");
    let Some(utterances) = spec.utterances.get(split) else {
        let problem = format!("it does not say how many utterances `{split}` has");
        return Err(SpeechError::recipe(
            key("utterances"),
            problem,
            "state a number for every split that is used",
        ));
    };
    if spec.least == 0 || spec.least > spec.most {
        let problem = format!("from {} to {} recordings make no utterance", spec.least, spec.most);
        return Err(SpeechError::recipe(key("least"), problem, "1 <= least <= most"));
    }
    let mut speakers: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (place, recording) in (0..).zip(recordings) {
        let Some(speaker) = recording.speaker.as_deref() else {
            let problem = format!("split `{split}`: {} has no speaker", recording.id);
            return Err(SpeechError::recipe("reader.join", problem, "give every recording its \"speaker\""));
        };
        speakers.entry(speaker).or_default().push(place);
    }
    let speakers: Vec<Vec<u32>> = speakers.into_values().collect();
    if speakers.is_empty() {
        let problem = format!("split `{split}` has no recording to join");
        return Err(SpeechError::recipe("reader.join", problem, "check the recordings"));
    }
    let number = split_number(split);
    let one = |utterance: u32| {
        let mut stream = RandomStream::new(spec.seed, Purpose::Join, (number << 32) | u64::from(utterance));
        let own = &speakers[stream.below(speakers.len() as u32) as usize];
        let count = spec.least + stream.below(spec.most - spec.least + 1);
        let drawn: Box<[u32]> = (0..count).map(|_| own[stream.below(own.len() as u32) as usize]).collect();
        let text: Vec<&str> = drawn.iter().map(|place| &*recordings[*place as usize].text).collect();
        Joined { text: text.join(" "), recordings: drawn }
    };
    Ok((0..*utterances).map(one).collect())
}

/// 24 bits of a hash (FNV-1a) of a split's name, so that splits draw different random numbers.
fn split_number(split: &str) -> u64 {
    let hash =
        split.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    u64::from((hash >> 24) ^ (hash & 0x00ff_ffff))
}
