//! Classifiers of texts: map numbers of words to the scores of classes.

mod batch;
mod cost;
mod folds;
#[cfg(test)]
mod last_state_tests;
mod layer;
mod loss;
#[cfg(test)]
mod tests;

pub use batch::TextBatch;
pub use cost::cost;
pub use folds::{Folds, TextModel};
pub use loss::{TextLoss, scores};

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use zoo_recipes::tasks::text_classification::{NO_WORD, TextClassifierSpec, TextLayerSpec, TextWeightInit};

use self::layer::{Dense, Flow, Layer, Step, fused, layer};
use crate::Pass;
use crate::nn::Init;
use crate::ops;

/// The layers of a spec. The vectors of words are `embedding.weight`; the parameters of layer i of
/// the spec, from 0, are `layers.i.weight`, `layers.i.bias` and so on; those of the last layer are
/// `output.weight` and `output.bias`.
#[derive(Module, Debug)]
pub struct TextClassifier {
    embedding: Table,
    /// The layers of the spec but the last. The first one, the embedding, does nothing here.
    layers: Vec<Layer>,
    output: Dense,
}

/// The vectors of words.
#[derive(Module, Debug)]
struct Table {
    /// Shape `[rows, width]`.
    weight: Param<Tensor<2>>,
    /// Whether padding has the vector 0, without a gradient, instead of row 0.
    #[module(skip)]
    zero_padding: bool,
    /// Dropout of the elements of `weight`.
    #[module(skip)]
    element_dropout: f64,
}

impl TextClassifier {
    /// Builds a model at a place, for texts of `positions` positions, with an embedding of `rows`
    /// rows.
    ///
    /// # Panics
    /// If a layer does not fit its input; [`TextClassifierSpec::shapes`] reports which.
    fn new(spec: &TextClassifierSpec, positions: usize, rows: usize, init: &Init) -> Self {
        // A text with more positions than 32 bits count is too long in any case.
        let shapes = match spec.shapes(u32::try_from(positions).unwrap_or(u32::MAX)) {
            Ok(shapes) => shapes,
            Err(problem) => panic!("{problem}"),
        };
        let (mut embedding, mut output, mut layers) = (None, None, Vec::with_capacity(spec.layer.len()));
        for (i, (of, input)) in spec.layer.iter().zip(&shapes).enumerate() {
            let width = input.width() as usize;
            match *of {
                TextLayerSpec::Embedding { width, weights, zero_padding, element_dropout } => {
                    let (at, shape) = (init.at("embedding.weight"), [rows, width as usize]);
                    let weight = match weights {
                        TextWeightInit::XavierUniform {} => {
                            at.uniform(shape, (6.0 / (rows + width as usize) as f64).sqrt())
                        }
                        TextWeightInit::Uniform { bound } => at.uniform(shape, bound),
                        TextWeightInit::Normal { deviation } => at.normal(shape, deviation),
                    };
                    embedding = Some(Table { weight, zero_padding, element_dropout });
                    layers.push(Step::Done.into());
                }
                TextLayerSpec::Dense { units, weights, row_norm } if i + 1 == spec.layer.len() => {
                    output = Some(Dense::new(&init.at("output"), width, units as usize, weights, row_norm));
                }
                _ => layers.push(layer(&init.at("layers").at(i), width, of)),
            }
        }
        let (Some(embedding), Some(output)) = (embedding, output) else {
            unreachable!("`shapes` requires an embedding at the beginning and a dense layer at the end")
        };
        Self { embedding, layers: fused(layers), output }
    }

    /// Device of the parameters.
    fn device(&self) -> Device {
        self.output.weight.val().device()
    }

    /// Number of classes.
    fn classes(&self) -> usize {
        self.output.weight.dims()[0].max(2)
    }

    /// Logits `[texts, classes]`, in the compute type, of numbers `[texts, positions]`. A model of
    /// one output has two classes: the first one has the score 0.
    ///
    /// # Panics
    /// If a number is outside the embedding, or the texts are shorter than a kernel.
    fn forward(&self, ids: &[u32], texts: usize, pass: &mut Pass) -> Tensor<2> {
        let Table { weight, zero_padding, element_dropout } = &self.embedding;
        let id = |id: u32| (id != NO_WORD && (id > 0 || !zero_padding)).then_some(id);
        let ids: Vec<Option<u32>> = ids.iter().copied().map(id).collect();
        let words: Vec<bool> = ids.iter().map(Option::is_some).collect();
        let x = ops::embedding(ops::dropout(weight.val(), *element_dropout, pass), &ids);
        let [numbers, width] = x.dims();
        let x = x.reshape([texts, numbers / texts.max(1), width]);
        let mut flow = Flow::Steps(x).stored(pass);
        for layer in &self.layers {
            flow = layer.forward(flow, &words, pass);
        }
        let logits = self.output.forward(flow.row(), pass);
        match logits.dims()[1] {
            1 => Tensor::cat(vec![logits.zeros_like(), logits], 1),
            _ => logits,
        }
    }

    /// The model with rows of the norms that its spec sets.
    fn with_row_norms(self) -> Self {
        let layers = self.layers.into_iter().map(Layer::with_row_norm).collect();
        Self { layers, output: self.output.with_row_norm(), ..self }
    }
}
