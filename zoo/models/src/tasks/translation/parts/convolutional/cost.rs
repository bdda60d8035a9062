//! Parameters and operations of gated convolutions and of the layers around them.

use zoo_recipes::tasks::translation::{GatedConvolutionSpec, LearnedPositions};

use crate::Cost;

/// A weight-normalised layer: one direction, one length and one bias for each output.
pub fn normalized(of_source: bool, shape: [u64; 2]) -> Cost {
    Cost::product(of_source, shape) + Cost::held(2 * shape[1])
}

pub fn positions(positions: Option<LearnedPositions>, width: u64) -> Cost {
    Cost::held(positions.map_or(0, |table| u64::from(table.rows) * width))
}

pub fn each(layers: &[GatedConvolutionSpec]) -> impl Iterator<Item = &GatedConvolutionSpec> {
    layers.iter().flat_map(|layer| std::iter::repeat_n(layer, layer.repeat as usize))
}

/// Channels of the first and of the last layer.
pub fn ends(layers: &[GatedConvolutionSpec]) -> (u64, u64) {
    let channels = |layer: Option<&GatedConvolutionSpec>| layer.map_or(0, |layer| u64::from(layer.channels));
    (channels(layers.first()), channels(layers.last()))
}

pub fn layers(of_source: bool, layers: &[GatedConvolutionSpec]) -> Cost {
    let (mut input, _) = ends(layers);
    each(layers)
        .map(|layer| {
            let channels = u64::from(layer.channels);
            let gated = normalized(of_source, [input * u64::from(layer.kernel), 2 * channels]);
            let shortcut =
                if input == channels { Cost::default() } else { normalized(of_source, [input, channels]) };
            input = channels;
            gated + shortcut
        })
        .sum()
}
