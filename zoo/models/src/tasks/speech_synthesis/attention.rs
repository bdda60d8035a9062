//! Location-sensitive attention.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use zoo_recipes::tasks::speech_synthesis::{LocationAttentionSpec, SynthesisInit};

use crate::Pass;
use crate::nn::{Init, Linear};
use crate::ops::Source;
use crate::precision::{matmul, to_f32};

/// Parameters of a location-sensitive attention, which reads its previous weights.
#[derive(Module, Debug)]
pub struct LocationAttention {
    /// W `[units, hidden]`.
    pub query: Linear,
    /// U `[units, memory]`.
    pub memory: Linear,
    /// v `[units]`.
    pub vector: Param<Tensor<1>>,
    /// b `[units]`.
    pub bias: Option<Param<Tensor<1>>>,
    /// Shape `[filters, channels, kernel]`. With two channels, the first reads the weights of the
    /// last step.
    pub filter: Param<Tensor<3>>,
    /// Shape `[filters]`.
    pub filter_bias: Option<Param<Tensor<1>>>,
    /// Shape `[units, filters]`.
    pub location: Linear,
    #[module(skip)]
    channels: usize,
}

impl LocationAttention {
    /// Builds an attention for queries and memory rows of these widths.
    pub fn new(
        init: &Init,
        spec: &LocationAttentionSpec,
        [hidden, memory]: [usize; 2],
        start: SynthesisInit,
    ) -> Self {
        let (units, filters, kernel) = (spec.units as usize, spec.filters as usize, spec.kernel as usize);
        let channels = if spec.last_weights { 2 } else { 1 };
        let nvidia = start == SynthesisInit::Nvidia;
        let gain = if nvidia { 5.0 / 3.0 } else { 1.0 };
        let linear = |name: &str, input| Linear::new(&init.at(name), input, units, false, gain);
        // NVIDIA's vector is the matrix of an affine map to one number. TensorFlow treats a vector
        // as a matrix with as many rows as columns.
        let of_vector = if nvidia { 6.0 / (units + 1) as f64 } else { 3.0 / units as f64 };
        let of_filter = 6.0 / ((channels + filters) * kernel) as f64;
        Self {
            query: linear("query", hidden),
            memory: linear("memory", memory),
            vector: init.at("vector").uniform([units], of_vector.sqrt()),
            bias: spec.bias.then(|| init.at("bias").uniform([units], of_vector.sqrt())),
            filter: init.at("filter").uniform([filters, channels, kernel], of_filter.sqrt()),
            filter_bias: spec.bias.then(|| init.at("filter_bias").constant([filters], 0.0)),
            location: linear("location", filters),
            channels,
        }
    }

    /// Number of input channels of the filter.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Computes keys once for a batch of texts. `memory` holds the rows of all texts, concatenated:
    /// `[rows, memory]` FP32.
    pub fn about(&self, memory: Tensor<2>, lengths: &[u32], pass: &Pass) -> Source {
        let keys = to_f32(self.memory.forward(memory.clone(), pass));
        Source { keys, values: memory, lengths: lengths.to_vec() }
    }

    /// The filters and the projection after them as one filter `[units, channels x kernel]`, and
    /// the sum of all biases `[units]`.
    pub fn joined(&self) -> (Tensor<2>, Tensor<1>) {
        let [filters, channels, kernel] = self.filter.dims();
        let location = self.location.weight.val();
        let [units, _] = location.dims();
        let filter = matmul(location.clone(), self.filter.val().reshape([filters, channels * kernel]));
        let zeros = || Tensor::zeros([units], &filter.device());
        let bias = self.bias.as_ref().map_or_else(zeros, Param::val);
        let bias = match &self.filter_bias {
            // Avoids a product with one column: fused on CUDA, such a product has given wrong
            // results.
            Some(of_filter) => {
                bias + (location * of_filter.val().reshape([1, filters])).sum_dim(1).reshape([units])
            }
            None => bias,
        };
        (filter, bias)
    }
}
