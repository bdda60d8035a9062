//! Masks over features and frames, applied after normalisation, so that 0 is the mean
//! (OpenSeq2Seq's Jasper; Park et al., SpecAugment).

use zoo_recipes::MasksSpec;

use crate::audio::front_end::Features;
use crate::random::RandomStream;

#[derive(Debug, Clone, Copy)]
pub(super) struct Masks(MasksSpec);

impl Masks {
    pub(super) fn new(spec: MasksSpec) -> Self {
        Self(spec)
    }

    pub(super) fn apply(self, features: &mut Features, mut stream: RandomStream) {
        let (width, frames) = (features.width as u32, features.frames() as u32);
        for _ in 0..self.0.frequency_masks {
            if let Some(hidden) = place(&mut stream, self.0.max_features, width) {
                for frame in features.values.chunks_exact_mut(features.width) {
                    frame[hidden.clone()].fill(0.0);
                }
            }
        }
        for _ in 0..self.0.time_masks {
            if let Some(hidden) = place(&mut stream, self.0.max_frames, frames) {
                features.values[hidden.start * features.width..hidden.end * features.width].fill(0.0);
            }
        }
    }
}

/// Draws a mask of 0 to `widest` out of `places` positions. `None` if the mask would cover all of
/// them.
fn place(stream: &mut RandomStream, widest: u32, places: u32) -> Option<std::ops::Range<usize>> {
    let width = stream.below(widest + 1);
    let first = stream.below(places.saturating_sub(width));
    (width < places).then(|| first as usize..(first + width) as usize)
}
