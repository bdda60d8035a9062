//! Where in a text the speech is.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use zoo_recipes::{LocationAttentionSpec, SynthesisInit};

use crate::contract::Pass;
use crate::nn::{Init, Linear};
use crate::ops::Source;
use crate::precision::{matmul, to_f32};

/// Parameters of an attention that knows where it has been.
#[derive(Module, Debug)]
pub struct LocationAttention {
    /// W [units, hidden]
    pub query: Linear,
    /// U [units, memory]
    pub memory: Linear,
    /// v [units]
    pub vector: Param<Tensor<1>>,
    /// b [units]
    pub bias: Option<Param<Tensor<1>>>,
    /// [filters, channels, kernel]: the last step's weights are the first channel where there are two.
    pub filter: Param<Tensor<3>>,
    /// [filters]
    pub filter_bias: Option<Param<Tensor<1>>>,
    /// [units, filters]
    pub location: Linear,
    #[module(skip)]
    channels: usize,
}

impl LocationAttention {
    /// For queries and rows of memory of these widths.
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
        // NVIDIA's is the matrix of an affine map to one number; TensorFlow takes a vector for a matrix of as many rows as columns.
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

    /// Channels of the filter.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// What is computed once for texts: rows of all, one behind the other [rows, memory] FP32.
    pub fn about(&self, memory: Tensor<2>, lengths: &[u32], pass: &Pass) -> Source {
        let keys = to_f32(self.memory.forward(memory.clone(), pass));
        Source { keys, values: memory, lengths: lengths.to_vec() }
    }

    /// The filters and the map behind them as one filter [units, channels x kernel], and every bias in one [units].
    pub fn joined(&self) -> (Tensor<2>, Tensor<1>) {
        let [filters, channels, kernel] = self.filter.dims();
        let location = self.location.weight.val();
        let [units, _] = location.dims();
        let filter = matmul(location.clone(), self.filter.val().reshape([filters, channels * kernel]));
        let zeros = || Tensor::zeros([units], &filter.device());
        let bias = self.bias.as_ref().map_or_else(zeros, Param::val);
        let bias = match &self.filter_bias {
            // No product with one column: fused on CUDA, that has been wrong.
            Some(of_filter) => {
                bias + (location * of_filter.val().reshape([1, filters])).sum_dim(1).reshape([units])
            }
            None => bias,
        };
        (filter, bias)
    }
}
