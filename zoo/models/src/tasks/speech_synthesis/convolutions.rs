//! Convolutions over symbols or frames, with batch norm, activation and dropout.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use zoo_recipes::tasks::speech_synthesis::{FrameConvolutionsSpec, SynthesisInit};

use crate::Pass;
use crate::nn::{BatchNorm, BatchNormSpec, Channels, Conv1d, ConvInit, Init, same};
use crate::ops::{self, Rows, Statistics};

/// Activation after a norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// max(x, 0).
    Relu,
    /// Hyperbolic tangent.
    Tanh,
    /// The identity.
    Nothing,
}

impl Behind {
    /// Gain of the initialisation, as in `torch.nn.init.calculate_gain`.
    fn gain(self) -> f64 {
        match self {
            Self::Relu => std::f64::consts::SQRT_2,
            Self::Tanh => 5.0 / 3.0,
            Self::Nothing => 1.0,
        }
    }
}

/// A convolution with its norm, activation and dropout.
#[derive(Module, Debug)]
pub struct FrameConvolution {
    convolution: Conv1d,
    norm: BatchNorm,
    #[module(skip)]
    behind: Behind,
    #[module(skip)]
    dropout: f64,
}

impl FrameConvolution {
    /// Builds one convolution of a spec, between the given numbers of channels.
    pub fn new(
        init: &Init,
        spec: &FrameConvolutionsSpec,
        channels: Channels,
        behind: Behind,
        start: SynthesisInit,
    ) -> Self {
        let kernel = spec.kernel as usize;
        let zoo_recipes::BatchNormSpec { epsilon, momentum, affine, unbiased } = spec.norm;
        let relu = behind == Behind::Relu;
        let norm = BatchNormSpec { epsilon, momentum, unbiased, affine, relu };
        let mut norm = BatchNorm::new(&init.at("norm"), channels.output, norm);
        let at = init.at("convolution");
        let gain = match start {
            SynthesisInit::Nvidia => behind.gain(),
            SynthesisInit::Openseq2seq => 1.0,
        };
        let mut convolution =
            Conv1d::new(&at, channels, kernel, same(1, 1, kernel), spec.bias, ConvInit::Xavier(gain));
        if start == SynthesisInit::Nvidia {
            // PyTorch's default initialisation: biases by the fan-in, and here also the scale of
            // the norm.
            let bound = ((channels.input * kernel) as f64).powf(-0.5);
            convolution.bias = convolution.bias.map(|_| at.at("bias").uniform([channels.output], bound));
            norm.weight = norm.weight.map(|_| unit(&init.at("norm").at("weight"), channels.output));
        }
        Self { convolution, norm, behind, dropout: spec.dropout }
    }

    /// x `[sequences, steps, channels in]` -> `[sequences, steps, channels out]` FP32. With
    /// `lengths`, the output after the end of a sequence is zero; without them all steps count.
    pub fn forward(
        &self,
        x: Tensor<3>,
        lengths: Option<&[usize]>,
        pass: &mut Pass,
        seen: &mut Vec<Statistics>,
    ) -> Tensor<3> {
        let y = self.convolution.forward(x, pass);
        let [sequences, steps, channels] = y.dims();
        let rows = lengths.map_or_else(Rows::all, |lengths| Rows::of_lengths(lengths, steps));
        let (y, statistics) = self.norm.forward(y.reshape([sequences * steps, channels]), rows, pass);
        seen.extend(statistics);
        let y = if self.behind == Behind::Tanh { y.tanh() } else { y };
        let y = ops::stored(y, pass.compute);
        ops::dropout(y, self.dropout, pass).reshape([sequences, steps, channels])
    }

    /// Updates the running statistics of the norm with the next statistics.
    pub fn fold<'s>(self, seen: &mut impl Iterator<Item = &'s Statistics>) -> Self {
        Self { norm: self.norm.fold(seen.next().expect("statistics for every norm")), ..self }
    }
}

/// Uniform in [0, 1).
fn unit(init: &Init, count: usize) -> Param<Tensor<1>> {
    init.uniform([count], 0.5).map(|values| {
        let tracked = values.device().is_autodiff();
        let moved = (values + 0.5).detach();
        if tracked { moved.require_grad() } else { moved }
    })
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, FloatDType, TensorData};
    use serde_json::json;

    use super::*;
    use crate::ops::Islands;
    use crate::parameters::{host_values, take_gradients};
    use crate::precision::Compute;

    /// Output, and gradients of all parameters, with the FP32 islands of an FP16 pass.
    fn trained(norms: bool, behind: Behind) -> Vec<Vec<f32>> {
        let device = Device::flex().autodiff();
        let norm = json!({"epsilon": 1e-5, "momentum": 0.1});
        let spec =
            json!({"layers": 1, "channels": 6, "kernel": 5, "bias": false, "dropout": 0.0, "norm": norm});
        let spec: FrameConvolutionsSpec = serde_json::from_value(spec).unwrap();
        let (init, between) = (Init::new(1, &device), Channels::new(4, 6));
        let layer = FrameConvolution::new(&init, &spec, between, behind, SynthesisInit::Openseq2seq);
        let values: Vec<f32> = (0..2 * 30 * 4).map(|i| (i as f32 * 0.7).sin() + 0.3).collect();
        let x = Tensor::from_data(TensorData::new(values, [2, 30, 4]), &device);
        let islands = Islands { norms, ..Islands::ALL };
        let mut pass = Pass::training(Compute(FloatDType::F16), 1, 0).with_islands(islands);
        let y = layer.forward(x, None, &mut pass, &mut Vec::new());
        let weights = (0..2 * 30 * 6).map(|i| (i as f32 * 0.3).cos()).collect::<Vec<f32>>();
        let weights = Tensor::from_data(TensorData::new(weights, [2, 30, 6]), &device);
        let gradients = take_gradients(&layer, &mut (y.clone() * weights).sum().backward());
        let y = host_values(y.flatten::<1>(0, 2).inner());
        std::iter::once(y).chain(gradients.into_iter().flatten().map(host_values)).collect()
    }

    #[test]
    fn norms_without_fp32_change_the_training_a_little_before_every_activation() {
        for behind in [Behind::Relu, Behind::Tanh, Behind::Nothing] {
            let [exact, found] = [true, false].map(|norms| trained(norms, behind));
            assert_ne!(found, exact, "{behind:?}");
            for (found, exact) in found.iter().zip(&exact) {
                let largest = exact.iter().fold(0f32, |most, x| most.max(x.abs()));
                for (found, exact) in found.iter().zip(exact) {
                    assert!((found - exact).abs() <= 0.03 * largest, "{behind:?}: {found} {exact}");
                }
            }
        }
    }
}
