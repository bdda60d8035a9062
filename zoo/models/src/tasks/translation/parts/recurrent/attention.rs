//! Attention of a recurrent decoder.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use zoo_recipes::tasks::translation::{AttentionSpec, RecurrentInit};

use crate::Pass;
use crate::nn::Init;
use crate::ops::{self, Segments};
use crate::precision::to_f32;
use crate::tasks::translation::Memory;

/// Attention that scores the rows of the source for a query and returns their weighted sum.
#[derive(Module, Debug)]
pub struct RecurrentAttention {
    /// W `[units, query]`, for additive scores.
    pub query: Option<Param<Tensor<2>>>,
    /// U `[units, memory]`.
    pub key: Param<Tensor<2>>,
    /// v `[units]`, for additive scores.
    pub vector: Option<Param<Tensor<1>>>,
    /// g `[1]`, for normalised additive scores.
    pub magnitude: Option<Param<Tensor<1>>>,
    /// b `[units]`, for normalised additive scores.
    pub bias: Option<Param<Tensor<1>>>,
}

/// Keys and values of a source, computed once.
#[derive(Debug, Clone)]
pub struct Asked {
    keys: Tensor<2>,
    values: Tensor<2>,
}

impl RecurrentAttention {
    /// Builds an attention for queries and memory rows of these widths.
    pub fn new(init: &Init, spec: &AttentionSpec, start: RecurrentInit, [query, memory]: [usize; 2]) -> Self {
        let matrix = |name: &str, rows: usize, columns: usize| {
            let bound = match start {
                RecurrentInit::Uniform { bound } => bound,
                RecurrentInit::XavierUniform | RecurrentInit::XavierUniformOfGates => {
                    (6.0 / (rows + columns) as f64).sqrt()
                }
                RecurrentInit::Torch => (columns as f64).powf(-0.5),
            };
            init.at(name).uniform([rows, columns], bound)
        };
        match *spec {
            AttentionSpec::Multiplicative {} => Self {
                query: None,
                key: matrix("key", query, memory),
                vector: None,
                magnitude: None,
                bias: None,
            },
            AttentionSpec::Additive { units, normalized } => {
                let units = units as usize;
                // TensorFlow treats a vector as a matrix with as many rows as columns.
                let bound = match start {
                    RecurrentInit::Uniform { bound } => bound,
                    RecurrentInit::XavierUniform => (3.0 / units as f64).sqrt(),
                    // PyTorch treats it as a matrix of one row.
                    RecurrentInit::XavierUniformOfGates => (6.0 / (units + 1) as f64).sqrt(),
                    RecurrentInit::Torch => (units as f64).powf(-0.5),
                };
                let length = (units as f64).powf(-0.5) as f32;
                Self {
                    query: Some(matrix("query", units, query)),
                    key: matrix("key", units, memory),
                    vector: Some(init.at("vector").uniform([units], bound)),
                    magnitude: normalized.then(|| init.at("magnitude").constant([1], length)),
                    bias: normalized.then(|| init.at("bias").constant([units], 0.0)),
                }
            }
        }
    }

    /// Computes keys and values of a source, once for each source.
    pub fn about(&self, memory: &Memory, pass: &Pass) -> Asked {
        // Kept in FP32, because every step of a loop adds to their gradient.
        let keys = to_f32(ops::linear(memory.keys.clone(), self.key.val(), None, pass));
        // This also holds for a convolutional encoder, whose values contain the tokens: OpenSeq2Seq
        // joins the two this way.
        Asked { keys, values: memory.keys.clone() }
    }

    /// query `[rows, query]` -> contexts `[rows, memory]` FP32, and the weights in the layout of
    /// [`ops::context`].
    pub fn ask(
        &self,
        query: Tensor<2>,
        asked: &Asked,
        segments: &Segments,
        pass: &Pass,
    ) -> (Tensor<2>, Tensor<1>) {
        let Asked { keys, values } = asked.clone();
        let query = match &self.query {
            Some(weight) => ops::linear(query, weight.val(), self.bias.as_ref().map(Param::val), pass),
            None => query,
        };
        let network = self.vector.as_ref().map(|vector| {
            let vector = vector.val();
            match &self.magnitude {
                Some(magnitude) => {
                    let length = (vector.clone() * vector.clone()).sum().sqrt();
                    vector * (magnitude.val() / length)
                }
                None => vector,
            }
        });
        ops::context(query, keys, values, network, segments, pass.compute)
    }
}

impl Asked {
    /// Applies a function to keys and values, such as a change of order.
    pub fn map(self, mut of: impl FnMut(Tensor<2>) -> Tensor<2>) -> Self {
        Self { keys: of(self.keys), values: of(self.values) }
    }
}
