//! Number of parameters and operations of a classifier, computed from its spec without building it.

use zoo_recipes::tasks::image_classification::{ClassifierLayerSpec, ClassifierSpec, ShapeProblem};

use super::{numbers, shapes};
use crate::Cost;

/// Counts the parameters and operations of a spec for pictures `[height, width, channels]`.
/// Operations ([`Cost::source_token`]) are the multiply-adds of a picture.
///
/// # Errors
/// The first layer that does not fit its input.
pub fn cost(spec: &ClassifierSpec, size: [usize; 3]) -> Result<Cost, ShapeProblem> {
    let shapes = shapes(spec, size)?;
    let (mut parameters, mut operations) = (0u64, 0u64);
    for ((layer, input), output) in spec.layer.iter().zip(&shapes).zip(shapes.iter().skip(1)) {
        let (input, output) = (numbers(*input), numbers(*output));
        // Products of one output, and number of biases.
        let (products, units) = match *layer {
            ClassifierLayerSpec::Convolution { kernel, .. } => {
                (input.channels as u64 * u64::from(kernel) * u64::from(kernel), output.channels as u64)
            }
            ClassifierLayerSpec::Dense { .. } => (input.all as u64, output.all as u64),
            _ => continue,
        };
        parameters += (products + 1) * units;
        operations += products * output.all as u64;
    }
    Ok(Cost { parameters, source_token: operations, target_token: 0 })
}
