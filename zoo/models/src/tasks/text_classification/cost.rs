//! Number of parameters and operations of a classifier of texts, computed from its spec without
//! building it.

use zoo_recipes::tasks::text_classification::{TextClassifierSpec, TextLayerSpec, TextShapeProblem};

use crate::Cost;

/// Counts the parameters and operations of a spec for texts of `positions` positions and an
/// embedding of `rows` rows. Operations ([`Cost::source_token`]) are the multiply-adds of a text.
///
/// # Errors
/// The first layer that does not fit its input.
pub fn cost(spec: &TextClassifierSpec, positions: u32, rows: u64) -> Result<Cost, TextShapeProblem> {
    let shapes = spec.shapes(positions)?;
    let (mut parameters, mut operations) = (0u64, 0u64);
    for ((layer, input), output) in spec.layer.iter().zip(&shapes).zip(shapes.iter().skip(1)) {
        let (positions, width) = (u64::from(input.positions()), u64::from(input.width()));
        // Products of one output, number of biases, and how often the layer is applied to a text.
        let mut add = |products: u64, units: u64, times: u64| {
            let outputs = products.saturating_mul(units);
            parameters = parameters.saturating_add(outputs.saturating_add(units));
            operations = operations.saturating_add(outputs.saturating_mul(times));
        };
        match *layer {
            TextLayerSpec::Embedding { width, .. } => {
                parameters = parameters.saturating_add(rows.saturating_mul(u64::from(width)));
            }
            TextLayerSpec::Convolution { channels, kernel, .. } => {
                add(width * u64::from(kernel), u64::from(channels), u64::from(output.positions()));
            }
            TextLayerSpec::Kernels { channels, ref kernels, .. } => {
                for kernel in kernels.iter().copied().map(u64::from) {
                    add(width * kernel, u64::from(channels), positions + 1 - kernel);
                }
            }
            TextLayerSpec::Lstm { units, bidirectional, .. } => {
                let (units, directions) = (u64::from(units), if bidirectional { 2 } else { 1 });
                // The two matrices of four gates; one bias.
                add(width + units, directions * 4 * units, positions);
            }
            TextLayerSpec::LayerNormLstm { units, width: last, layers, .. } => {
                let (units, last, before) = (u64::from(units), u64::from(last), u64::from(layers) - 1);
                // The first layer, those between, and the last one.
                let sizes = match before {
                    0 => vec![(width, last, 1)],
                    _ => vec![(width, units, 1), (units, units, before - 1), (units, last, 1)],
                };
                for (input, hidden, times) in sizes {
                    // One matrix of four gates, and five norms of two vectors.
                    let products = (input + hidden).saturating_mul(4 * hidden).saturating_mul(times);
                    let norms = (10 * hidden).saturating_mul(times);
                    parameters = parameters.saturating_add(products).saturating_add(norms);
                    operations = operations.saturating_add(products.saturating_mul(positions));
                }
            }
            TextLayerSpec::Dense { units, .. } => add(width, u64::from(units), 1),
            TextLayerSpec::Pool { .. }
            | TextLayerSpec::OverPositions { .. }
            | TextLayerSpec::Relu {}
            | TextLayerSpec::Dropout { .. } => {}
        }
    }
    Ok(Cost { parameters, source_token: operations, target_token: 0 })
}
