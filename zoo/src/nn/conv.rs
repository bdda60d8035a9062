//! Convolution of sequences and images, channels last.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::Init;
use crate::contract::Pass;
use crate::ops::{self, Axis, Geometry};

/// How a convolution's weights start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ConvInit {
    /// Xavier-uniform times a gain: bound gain * sqrt(6 / (fan in + fan out)). Zero bias.
    Xavier(f64),
    /// Xavier-normal: standard deviation sqrt(2 / (fan in + fan out)). Zero bias.
    XavierNormal,
    /// Normal of deviation sqrt(2.6 / (fan in + fan out)), cut off at two of them, which leaves that of `XavierNormal` (TensorFlow's
    /// `xavier_initializer(uniform=False)`). Zero bias.
    XavierTruncatedNormal,
    /// Kaiming-uniform for ReLU: bound sqrt(6 / fan in). Zero bias.
    Kaiming,
    /// Kaiming-normal for ReLU over the fan out: standard deviation sqrt(2 / fan out) (ResNets). Zero bias.
    KaimingNormalFanOut,
    /// PyTorch's own: weights and bias uniform in 1 / sqrt(fan in).
    Torch,
}

impl ConvInit {
    /// Weight [out, in, kernel...] and bias, of one group's fans.
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
        };
        let bias = bias.then(|| match self {
            Self::Torch => init.at("bias").uniform([shape[0]], fan_in.powf(-0.5)),
            _ => init.at("bias").constant([shape[0]], 0.0),
        });
        (weight, bias)
    }
}

/// Channels in and out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// Of the input.
    pub input: usize,
    /// Of the output.
    pub output: usize,
    /// Groups that do not see each other; as many as channels: depthwise.
    pub groups: usize,
}

impl Channels {
    /// All outputs see all inputs.
    pub fn new(input: usize, output: usize) -> Self {
        Self { input, output, groups: 1 }
    }
}

/// Convolution over time. The weight is [out, in / groups, kernel], PyTorch's layout.
///
/// Behind a sequence's end it reads what stands there: a model with sequences of unlike length zeroes those steps before it.
#[derive(Module, Debug)]
pub struct Conv1d {
    /// [out, in / groups, kernel]
    pub weight: Param<Tensor<3>>,
    /// [out]
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    time: Axis,
    #[module(skip)]
    groups: usize,
}

impl Conv1d {
    /// With a kernel of so many taps.
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

    /// Steps out of so many.
    pub fn steps(&self, steps: usize) -> usize {
        self.time.outputs(steps, self.weight.dims()[2])
    }

    /// x [batch, time, in] -> [batch, time, out], in the compute type.
    pub fn forward(&self, x: Tensor<3>, pass: &Pass) -> Tensor<3> {
        let [batch, steps, channels] = x.dims();
        let [out, of_group, kernel] = self.weight.dims();
        let weight = self.weight.val().reshape([out, of_group, 1, kernel]);
        let geometry = Geometry { axes: [Axis::default(), self.time], groups: self.groups };
        let bias = self.bias.as_ref().map(Param::val);
        let y = ops::convolution(x.reshape([batch, 1, steps, channels]), weight, bias, geometry, pass);
        let [_, _, steps, out] = y.dims();
        y.reshape([batch, steps, out])
    }
}

/// Convolution over height and width. The weight is [out, in / groups, height, width], PyTorch's layout.
#[derive(Module, Debug)]
pub struct Conv2d {
    /// [out, in / groups, kernel height, kernel width]
    pub weight: Param<Tensor<4>>,
    /// [out]
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    geometry: Geometry,
}

impl Conv2d {
    /// With a kernel [height, width]; axes are height and width.
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

    /// Height and width out of these.
    pub fn positions(&self, image: [usize; 2]) -> [usize; 2] {
        let [_, _, height, width] = self.weight.dims();
        let [rows, columns] = self.geometry.axes;
        [rows.outputs(image[0], height), columns.outputs(image[1], width)]
    }

    /// x [batch, height, width, in] -> [batch, height, width, out], in the compute type.
    pub fn forward(&self, x: Tensor<4>, pass: &Pass) -> Tensor<4> {
        ops::convolution(x, self.weight.val(), self.bias.as_ref().map(Param::val), self.geometry, pass)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::host_values;

    /// Weights of [48, 16 / 2, 3] in two groups: 24 terms a sum, 72 sums a term.
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
        ] {
            let (weights, bias) = drawn(start);
            assert!(largest(&weights) <= bound && largest(&weights) > 0.99 * bound, "{start:?}");
            match start {
                ConvInit::Torch => assert!(largest(&bias) <= bound && largest(&bias) > 0.8 * bound),
                _ => assert_eq!(largest(&bias), 0.0),
            }
        }
    }

    /// The standard deviation of 1,152 draws is within some 2 % of the distribution's.
    #[test]
    fn normal_weights_have_their_deviation() {
        let (weights, _) = drawn(ConvInit::KaimingNormalFanOut);
        let deviation = (weights.iter().map(|x| x * x).sum::<f32>() / weights.len() as f32).sqrt();
        assert!((deviation / (2f32 / 72.0).sqrt() - 1.0).abs() < 0.08, "{deviation}");
    }
}
