//! Keys without a meaning that are written for the sake of hashes.

use std::marker::PhantomData;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A key that can only have the default value of `T`.
///
/// Once, recipes of recordings and of text had one type, whose keys of text were written with their
/// defaults in recipes of recordings. The hash of a recipe covers them, and records in ledgers
/// refer to hashes. Such a key is therefore still written, and read from resolved recipes: its
/// default, or nothing. It must be hidden from the JSON Schema (`#[schemars(skip)]`), so that
/// recipe files cannot have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kept<T>(PhantomData<T>);

impl<T: Default + Serialize> Serialize for Kept<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        T::default().serialize(to)
    }
}

impl<'de, T: Default + PartialEq + Deserialize<'de>> Deserialize<'de> for Kept<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match T::deserialize(from)? == T::default() {
            true => Ok(Self(PhantomData)),
            false => Err(D::Error::custom("recordings have no such setting")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::RecordingFilterSpec;

    #[test]
    fn a_kept_key_is_written_and_read_with_its_one_value() {
        let filter: RecordingFilterSpec = serde_json::from_value(json!({ "max_seconds": 16.7 })).unwrap();
        let written = json!({
            "max_source_tokens": null, "max_target_tokens": null, "too_long": "drop", "max_seconds": 16.7,
        });
        assert_eq!(serde_json::to_value(&filter).unwrap().to_string(), written.to_string());
        assert_eq!(serde_json::from_value::<RecordingFilterSpec>(written).unwrap(), filter);
        for other in [json!({ "too_long": "truncate" }), json!({ "max_source_tokens": 5 })] {
            assert!(serde_json::from_value::<RecordingFilterSpec>(other).is_err());
        }
    }
}
