//! The convolution composed of Burn's tensor operations.

use burn::tensor::Tensor;
use burn::tensor::module::conv2d;
use burn::tensor::ops::{ConvOptions, PadMode};

use super::Geometry;
use super::geometry::Shapes;
use crate::Pass;

/// Pads the image with zeros first, because backends differ in their support of asymmetric padding.
pub fn convolution(
    x: Tensor<4>,
    weight: Tensor<4>,
    bias: Option<Tensor<1>>,
    geometry: Geometry,
    pass: &Pass,
) -> Tensor<4> {
    let compute = pass.compute;
    let shapes = Shapes::new(x.dims(), weight.dims(), geometry);
    let [rows, columns] = geometry.axes;
    let [[top, bottom], [left, right]] = [rows.padding, columns.padding];
    if shapes.positions() == 0 {
        // An empty result that is tracked: its gradients are zeros.
        let nothing = weight.sum() * 0.0 + x.sum() * 0.0;
        let nothing = bias.map_or(nothing.clone(), |bias| nothing + bias.sum() * 0.0);
        let device = nothing.device();
        return compute.cast(Tensor::zeros(shapes.output, &device) + nothing.reshape([1, 1, 1, 1]));
    }
    let mut x = compute.cast(x).permute([0, 3, 1, 2]);
    if top + bottom + left + right > 0 {
        x = x.pad((left, right, top, bottom), PadMode::Constant(0.0));
    }
    let options = ConvOptions::new(
        [rows.stride, columns.stride],
        [0, 0],
        [rows.dilation, columns.dilation],
        geometry.groups,
    );
    let out = conv2d(x, compute.cast(weight), bias.map(|bias| compute.cast(bias)), options);
    out.permute([0, 2, 3, 1])
}
