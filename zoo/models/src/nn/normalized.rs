//! Weight normalisation (Salimans and Kingma 2016): a weight is g v / |v|, with one length and one
//! direction for each output.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::Init;
use crate::Pass;
use crate::ops::{self, Axis, Geometry};

/// A weight-normalised linear layer on rows.
#[derive(Module, Debug)]
pub struct NormalizedLinear {
    /// v, shape `[out, in]`.
    pub direction: Param<Tensor<2>>,
    /// g, shape `[out]`.
    pub magnitude: Param<Tensor<1>>,
    /// Shape `[out]`.
    pub bias: Param<Tensor<1>>,
}

impl NormalizedLinear {
    /// Initialises v as normal with standard deviation `std`, g as the lengths of v, and the bias
    /// as zero. The initial weight is therefore v.
    pub fn new(init: &Init, input: usize, output: usize, std: f64) -> Self {
        let direction = init.at("direction").normal([output, input], std);
        Self { magnitude: lengths(&direction), direction, bias: init.at("bias").constant([output], 0.0) }
    }

    /// The weight g v / |v|, shape `[out, in]`.
    pub fn weight(&self) -> Tensor<2> {
        normalized(self.direction.val(), self.magnitude.val())
    }

    /// x `[rows, in]` -> `[rows, out]`, in the compute type.
    pub fn forward(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        let weight = self.weight();
        pass.derived(&self.direction.val(), &weight);
        ops::linear(x, weight, Some(self.bias.val()), pass)
    }
}

/// A weight-normalised convolution over time.
#[derive(Module, Debug)]
pub struct NormalizedConv1d {
    /// v, shape `[out, in, kernel]`.
    pub direction: Param<Tensor<3>>,
    /// g, shape `[out]`.
    pub magnitude: Param<Tensor<1>>,
    /// Shape `[out]`.
    pub bias: Param<Tensor<1>>,
    #[module(skip)]
    time: Axis,
}

impl NormalizedConv1d {
    /// Builds a convolution with `kernel` taps, initialised as in [`NormalizedLinear::new`].
    pub fn new(init: &Init, [input, output]: [usize; 2], kernel: usize, time: Axis, std: f64) -> Self {
        let direction = init.at("direction").normal([output, input, kernel], std);
        Self {
            magnitude: lengths(&direction),
            direction,
            bias: init.at("bias").constant([output], 0.0),
            time,
        }
    }

    /// The weight g v / |v|, shape `[out, in, kernel]`.
    pub fn weight(&self) -> Tensor<3> {
        let shape @ [output, input, kernel] = self.direction.dims();
        let flat = self.direction.val().reshape([output, input * kernel]);
        normalized(flat, self.magnitude.val()).reshape(shape)
    }

    /// x `[batch, time, in]` -> `[batch, time, out]`, in the compute type.
    pub fn forward(&self, x: Tensor<3>, pass: &Pass) -> Tensor<3> {
        let [batch, steps, channels] = x.dims();
        let [out, input, kernel] = self.direction.dims();
        let weight = self.weight().reshape([out, input, 1, kernel]);
        pass.derived(&self.direction.val(), &weight);
        let geometry = Geometry { axes: [Axis::default(), self.time], groups: 1 };
        let x = x.reshape([batch, 1, steps, channels]);
        let y = ops::convolution(x, weight, Some(self.bias.val()), geometry, pass);
        let [_, _, steps, out] = y.dims();
        y.reshape([batch, steps, out])
    }
}

/// v `[out, n]`, g `[out]` -> g v / |v|.
fn normalized(direction: Tensor<2>, magnitude: Tensor<1>) -> Tensor<2> {
    let length = (direction.clone() * direction.clone()).sum_dim(1).sqrt();
    direction * (magnitude.unsqueeze_dim::<2>(1) / length)
}

/// The length of each output's direction, as a parameter.
fn lengths<const D: usize>(direction: &Param<Tensor<D>>) -> Param<Tensor<1>> {
    let value = direction.val();
    let tracked = value.device().is_autodiff();
    let [output, rest] = [value.dims()[0], value.dims()[1..].iter().product()];
    let flat = value.detach().reshape([output, rest]);
    let length = (flat.clone() * flat).sum_dim(1).sqrt().reshape([output]).detach();
    Param::from_tensor(if tracked { length.require_grad() } else { length })
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::host_values;

    #[test]
    fn a_weight_starts_as_its_direction() {
        let init = Init::new(1, &Device::flex());
        let layer = NormalizedConv1d::new(&init, [4, 6], 3, Axis::default(), 0.2);
        let (weight, direction) = (host_values(layer.weight()), host_values(layer.direction.val()));
        for (a, b) in weight.iter().zip(direction) {
            assert!((a - b).abs() < 1e-7, "{a} {b}");
        }
        let length = weight[..12].iter().map(|x| x * x).sum::<f32>().sqrt();
        assert!((length - host_values(layer.magnitude.val())[0]).abs() < 1e-6);
    }

    #[test]
    fn lengths_are_learnt() {
        let layer = NormalizedLinear::new(&Init::new(1, &Device::flex().autodiff()), 3, 2, 0.5);
        let grads = layer.weight().sum().backward();
        let of_magnitude = layer.magnitude.val().grad(&grads).expect("a gradient");
        let direction = host_values(layer.direction.val().inner());
        for (gradient, row) in host_values(of_magnitude).iter().zip(direction.chunks(3)) {
            let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
            assert!((gradient - row.iter().sum::<f32>() / length).abs() < 1e-5);
        }
    }
}
