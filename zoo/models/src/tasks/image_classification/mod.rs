//! Classifiers: map a picture to the scores of classes.

mod batch;
mod cost;
mod layer;
mod loss;
#[cfg(test)]
mod tests;

pub use batch::PictureBatch;
pub use cost::cost;
pub use loss::{ClassifierLoss, scores};

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use zoo_recipes::tasks::image_classification::{
    ClassifierLayerSpec, ClassifierSpec, LayerShape, ShapeProblem,
};

use self::layer::{Flow, Layer, Step, convolution, dense, fused};
use crate::Pass;
use crate::nn::{Init, Linear};

/// The layers of a spec. The parameters of layer i are `layers.i.weight` and `layers.i.bias`; those
/// of the last layer are `output.weight` and `output.bias`.
#[derive(Module, Debug)]
pub struct Classifier {
    layers: Vec<Layer>,
    output: Linear,
}

impl Classifier {
    /// Builds a model for pictures `[height, width, channels]`.
    ///
    /// # Panics
    /// If a layer does not fit its input; [`ClassifierSpec::shapes`] reports which.
    pub fn new(spec: &ClassifierSpec, size: [usize; 3], seed: u64, device: &Device) -> Self {
        let shapes = match shapes(spec, size) {
            Ok(shapes) => shapes,
            Err(problem) => panic!("{problem}"),
        };
        let init = Init::new(seed, device);
        // Input shape of each layer: shapes[0] is the picture.
        let inputs = shapes.iter().map(|shape| numbers(*shape));
        let mut layers: Vec<Layer> = Vec::with_capacity(spec.layer.len());
        let mut output = None;
        for (i, (layer, input)) in spec.layer.iter().zip(inputs).enumerate() {
            let last = i + 1 == spec.layer.len();
            let at = if last { init.at("output") } else { init.at("layers").at(i) };
            match *layer {
                ClassifierLayerSpec::Dense { units, weights, bias } => {
                    let linear = dense(&at, input.all, units as usize, weights, bias);
                    if last {
                        output = Some(linear);
                    } else {
                        layers.push(Layer::Dense(linear));
                    }
                }
                ClassifierLayerSpec::Convolution { .. } => {
                    layers.extend(convolution(&at, input.channels, layer).map(Layer::Convolution));
                }
                _ => layers.push(Step::of(layer).into()),
            }
        }
        let Some(output) = output else { unreachable!("`shapes` requires a dense layer at the end") };
        Self { layers: fused(layers), output }
    }

    /// Device of the parameters.
    pub fn device(&self) -> Device {
        self.output.weight.val().device()
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.output.weight.dims()[0]
    }

    /// Logits `[pictures, classes]`, in the compute type, of pixels
    /// `[pictures, height, width, channels]`.
    ///
    /// # Panics
    /// If the pictures do not have the size that the model was built for.
    pub fn forward(&self, pixels: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        let mut flow = Flow::Picture(pixels);
        for layer in &self.layers {
            flow = layer.forward(flow, pass);
        }
        self.output.forward(flow.row(), pass)
    }
}

/// Shapes from the picture to the scores of the classes: one more than layers.
fn shapes(spec: &ClassifierSpec, size: [usize; 3]) -> Result<Vec<LayerShape>, ShapeProblem> {
    // A side that does not fit in 32 bits has too many numbers in any case.
    let [height, width, channels] = size.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let mut shapes = vec![LayerShape::Picture { height, width, channels }];
    shapes.extend(spec.shapes([height, width, channels])?);
    Ok(shapes)
}

/// Numbers of a shape.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    /// All of a picture.
    all: usize,
    /// Those of a pixel.
    channels: usize,
}

fn numbers(shape: LayerShape) -> Numbers {
    let all = shape.numbers() as usize;
    match shape {
        LayerShape::Picture { channels, .. } => Numbers { all, channels: channels as usize },
        LayerShape::Row { .. } => Numbers { all, channels: all },
    }
}
