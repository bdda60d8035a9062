//! Products with a weight matrix, and what stands right behind them.

use burn::tensor::{Tensor, activation};

use super::dropout;
use crate::contract::Pass;
use crate::precision::matmul;

/// x [rows, in] times weight [out, in] (PyTorch's layout) transposed, plus bias [out]; in the pass's compute type.
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>, pass: &Pass) -> Tensor<2> {
    let product = matmul(pass.compute.cast(x), pass.compute.cast(weight).transpose());
    match bias {
        Some(bias) => product + pass.compute.cast(bias).unsqueeze(),
        None => product,
    }
}

/// ReLU and dropout of what `linear` gave.
pub fn relu_dropout(x: Tensor<2>, rate: f64, pass: &mut Pass) -> Tensor<2> {
    dropout(activation::relu(x), rate, pass)
}
