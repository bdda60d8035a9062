//! Convolution of sequences and images, channels last.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::Init;
use crate::Pass;
use crate::ops::{self, Axis, Geometry};

/// Initialisation of a convolution's weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ConvInit {
    /// Xavier uniform times a gain: bound gain * sqrt(6 / (fan in + fan out)). Zero bias.
    Xavier(f64),
    /// Xavier normal: standard deviation sqrt(2 / (fan in + fan out)). Zero bias.
    XavierNormal,
    /// Normal with standard deviation sqrt(2.6 / (fan in + fan out)), truncated at two standard
    /// deviations. The truncated distribution has the standard deviation of `XavierNormal`
    /// (TensorFlow's `xavier_initializer(uniform=False)`). Zero bias.
    XavierTruncatedNormal,
    /// Kaiming uniform for ReLU: bound sqrt(6 / fan in). Zero bias.
    Kaiming,
    /// Kaiming normal for ReLU over the fan out: standard deviation sqrt(2 / fan out) (ResNets).
    /// Zero bias.
    KaimingNormalFanOut,
    /// PyTorch's default: weights and bias uniform with bound 1 / sqrt(fan in).
    Torch,
    /// Uniform with this bound. Zero bias.
    Uniform(f64),
    /// Normal with this standard deviation. Zero bias.
    Normal(f64),
}

impl ConvInit {
    /// Draws the weight `[out, in, kernel...]` and the bias, with the fans of one group.
    fn draw<const D: usize>(
        self,
        init: &Init,
        shape: [usize; D],
        groups: usize,
        bias: bool,
    ) -> (Param<Tensor<D>>, Option<Param<Tensor<1>>>) {
        let taps: usize = shape[2..].iter().product();
        let fan_in = (shape[1] * taps) as f64;
        let fan_out = (shape[0] / groups * taps) as f64;
        let at = init.at("weight");
        let weight = match self {
            Self::Xavier(gain) => at.uniform(shape, gain * (6.0 / (fan_in + fan_out)).sqrt()),
            Self::XavierNormal => at.normal(shape, (2.0 / (fan_in + fan_out)).sqrt()),
            Self::XavierTruncatedNormal => at.truncated_normal(shape, (2.6 / (fan_in + fan_out)).sqrt()),
            Self::Kaiming => at.uniform(shape, (6.0 / fan_in).sqrt()),
            Self::KaimingNormalFanOut => at.normal(shape, (2.0 / fan_out).sqrt()),
            Self::Torch => at.uniform(shape, fan_in.powf(-0.5)),
            Self::Uniform(bound) => at.uniform(shape, bound),
            Self::Normal(deviation) => at.normal(shape, deviation),
        };
        let bias = bias.then(|| match self {
            Self::Torch => init.at("bias").uniform([shape[0]], fan_in.powf(-0.5)),
            _ => init.at("bias").constant([shape[0]], 0.0),
        });
        (weight, bias)
    }
}

/// Channels of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// Number of input channels.
    pub input: usize,
    /// Number of output channels.
    pub output: usize,
    /// Number of independent groups. As many groups as channels make a depthwise convolution.
    pub groups: usize,
}

impl Channels {
    /// One group: every output depends on all inputs.
    pub fn new(input: usize, output: usize) -> Self {
        Self { input, output, groups: 1 }
    }
}

/// Convolution over time. The weight is `[out, in / groups, kernel]`, PyTorch's layout.
///
/// The layer reads the values after a sequence's end. A model with sequences of different lengths
/// must zero those steps before it.
#[derive(Module, Debug)]
pub struct Conv1d {
    /// Shape `[out, in / groups, kernel]`.
    pub weight: Param<Tensor<3>>,
    /// Shape `[out]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    time: Axis,
    #[module(skip)]
    groups: usize,
}

impl Conv1d {
    /// Builds a convolution with `kernel` taps.
    ///
    /// # Panics
    /// If the groups do not divide the channels.
    pub fn new(
        init: &Init,
        channels: Channels,
        kernel: usize,
        time: Axis,
        bias: bool,
        start: ConvInit,
    ) -> Self {
        let Channels { input, output, groups } = channels;
        assert!(input.is_multiple_of(groups) && output.is_multiple_of(groups), "groups divide channels");
        let (weight, bias) = start.draw(init, [output, input / groups, kernel], groups, bias);
        Self { weight, bias, time, groups }
    }

    /// Number of output steps for `steps` input steps.
    pub fn steps(&self, steps: usize) -> usize {
        self.time.outputs(steps, self.weight.dims()[2])
    }

    /// x `[batch, time, in]` -> `[batch, time, out]`, in the compute type.
    pub fn forward(&self, x: Tensor<3>, pass: &Pass) -> Tensor<3> {
        let [batch, steps, channels] = x.dims();
        let [out, of_group, kernel] = self.weight.dims();
        let values = self.weight.val();
        let weight = values.clone().reshape([out, of_group, 1, kernel]);
        pass.derived(&values, &weight);
        let geometry = Geometry { axes: [Axis::default(), self.time], groups: self.groups };
        let bias = self.bias.as_ref().map(Param::val);
        let y = ops::convolution(x.reshape([batch, 1, steps, channels]), weight, bias, geometry, pass);
        let [_, _, steps, out] = y.dims();
        y.reshape([batch, steps, out])
    }

    /// x `[batch, time, in]` -> `[batch, out]`: the largest outputs of all steps, in the compute
    /// type.
    ///
    /// # Panics
    /// If the layer has no bias, groups, or another time axis than the default one.
    pub fn forward_maximum(&self, x: Tensor<3>, pass: &Pass) -> Tensor<2> {
        let bias = self.bias.as_ref().expect("a bias");
        assert!(self.groups == 1 && self.time == Axis::default(), "a plain convolution");
        ops::convolution_maximum(x, self.weight.val(), bias.val(), pass)
    }
}

/// Convolution over height and width. The weight is `[out, in / groups, height, width]`, PyTorch's
/// layout.
#[derive(Module, Debug)]
pub struct Conv2d {
    /// Shape `[out, in / groups, kernel height, kernel width]`.
    pub weight: Param<Tensor<4>>,
    /// Shape `[out]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    geometry: Geometry,
}

impl Conv2d {
    /// Builds a convolution with a kernel `[height, width]`. The axes are height and width.
    ///
    /// # Panics
    /// If the groups do not divide the channels.
    pub fn new(
        init: &Init,
        channels: Channels,
        kernel: [usize; 2],
        axes: [Axis; 2],
        bias: bool,
        start: ConvInit,
    ) -> Self {
        let Channels { input, output, groups } = channels;
        assert!(input.is_multiple_of(groups) && output.is_multiple_of(groups), "groups divide channels");
        let shape = [output, input / groups, kernel[0], kernel[1]];
        let (weight, bias) = start.draw(init, shape, groups, bias);
        Self { weight, bias, geometry: Geometry { axes, groups } }
    }

    /// Height and width of the output for an input `[height, width]`.
    pub fn positions(&self, image: [usize; 2]) -> [usize; 2] {
        let [_, _, height, width] = self.weight.dims();
        let [rows, columns] = self.geometry.axes;
        [rows.outputs(image[0], height), columns.outputs(image[1], width)]
    }

    /// x `[batch, height, width, in]` -> `[batch, height, width, out]`, in the compute type.
    pub fn forward(&self, x: Tensor<4>, pass: &Pass) -> Tensor<4> {
        ops::convolution(x, self.weight.val(), self.bias.as_ref().map(Param::val), self.geometry, pass)
    }
}

/// Time axis with zero padding that keeps ceil(frames / stride) frames where the number of frames
/// is a multiple of the stride. It does not depend on the utterance.
pub(crate) fn same(stride: usize, dilation: usize, kernel: usize) -> Axis {
    let long = stride * (dilation * kernel + 1);
    Axis::default().strided(stride).dilated(dilation).same(long, kernel)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::host_values;

    /// Draws weights of `[48, 16 / 2, 3]` in two groups: fan in 24, fan out 72.
    fn drawn(start: ConvInit) -> (Vec<f32>, Vec<f32>) {
        let channels = Channels { input: 16, output: 48, groups: 2 };
        let layer = Conv1d::new(&Init::new(1, &Device::flex()), channels, 3, Axis::default(), true, start);
        (host_values(layer.weight.val()), host_values(layer.bias.unwrap().val()))
    }

    fn largest(values: &[f32]) -> f32 {
        values.iter().fold(0f32, |most, x| most.max(x.abs()))
    }

    #[test]
    fn uniform_weights_fill_their_bound() {
        for (start, bound) in [
            (ConvInit::Xavier(0.5), 0.5 * (6f32 / 96.0).sqrt()),
            (ConvInit::Kaiming, (6f32 / 24.0).sqrt()),
            (ConvInit::Torch, 24f32.sqrt().recip()),
            (ConvInit::Uniform(0.3), 0.3),
        ] {
            let (weights, bias) = drawn(start);
            assert!(largest(&weights) <= bound && largest(&weights) > 0.99 * bound, "{start:?}");
            match start {
                ConvInit::Torch => assert!(largest(&bias) <= bound && largest(&bias) > 0.8 * bound),
                _ => assert_eq!(largest(&bias), 0.0),
            }
        }
    }

    /// The standard deviation of 1,152 draws is within about 2 % of that of the distribution.
    #[test]
    fn normal_weights_have_their_deviation() {
        let (weights, _) = drawn(ConvInit::KaimingNormalFanOut);
        let deviation = (weights.iter().map(|x| x * x).sum::<f32>() / weights.len() as f32).sqrt();
        assert!((deviation / (2f32 / 72.0).sqrt() - 1.0).abs() < 0.08, "{deviation}");
    }
}
