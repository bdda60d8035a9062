//! Tests of the crate's public functions on whole corpora, archives and servers.
//!
//! They are one program, because every program takes seconds to link.

mod archive_corpus;
mod archive_formats;
mod archives;
mod audio_features;
mod audio_librosa;
mod audio_samples;
mod audio_synthesis;
mod corpora;
mod english;
mod fetching;
mod fetching_hostile;
mod fetching_together;
mod language_corpora;
mod leftovers;
mod multi30k_text;
mod pictures;
mod prepare;
mod sentencepiece;
#[path = "../server/mod.rs"]
mod server;
mod speech;
mod speech_corpora;
mod subword_nmt;
mod synthesis;
mod wmt_preparations;
