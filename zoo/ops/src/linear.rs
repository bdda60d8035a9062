//! Products with a weight matrix.
//!
//! On a CPU with the required instructions the product is a custom operation: it adds the bias to
//! the sums, and does not transpose operands in memory. In a half type, operands are rounded first,
//! and sums are FP32 and rounded once. Gradients are rounded like the gradients of a product in
//! that type.

use std::borrow::Cow;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension, tensor::FloatTensor,
};
use burn::tensor::{DType, FloatDType, Tensor, bf16 as Bf16, f16};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::fp32::{self, Matrix, Start};
use super::halves::{self, Instruction, Operand, Values};
use super::observed::observed;
use super::rounding::Half;
use super::{has_own_kernels, host, simd};
use crate::Pass;
use crate::precision::{Compute, matmul};

/// Arithmetic of the products.
#[derive(Debug, Clone, Copy)]
pub enum Products {
    /// FP32 vector instructions.
    Fp32,
    /// Operands rounded to bf16.
    Bf16(Instruction),
    /// Operands rounded to fp16, in FP32 vectors: no CPU adds products of fp16 in FP32.
    Fp16,
}

impl Products {
    /// The arithmetic for a compute type; `None` if the CPU lacks the instructions.
    pub fn of(compute: Compute) -> Option<Self> {
        match compute.0 {
            FloatDType::F32 => fp32::available().then_some(Self::Fp32),
            FloatDType::BF16 => Instruction::best().map(Self::Bf16),
            FloatDType::F16 => fp32::available().then_some(Self::Fp16),
            _ => None,
        }
    }

    /// Type to which operands and results are rounded.
    pub fn half(self) -> Option<Half> {
        match self {
            Self::Fp32 => None,
            Self::Bf16(_) => Some(Half::Bf16),
            Self::Fp16 => Some(Half::Fp16),
        }
    }

    /// Type of the results.
    pub fn dtype(self) -> DType {
        match self {
            Self::Fp32 => DType::F32,
            Self::Bf16(_) => DType::BF16,
            Self::Fp16 => DType::F16,
        }
    }

    /// Values rounded as operands; unchanged for FP32.
    pub fn rounded(self, mut values: Cow<'_, [f32]>) -> Cow<'_, [f32]> {
        if let Some(half) = self.half() {
            half.round(values.to_mut());
        }
        values
    }

    /// Rounds values as results.
    pub fn round(self, values: &mut [f32]) {
        if let Some(half) = self.half() {
            half.round(values);
        }
    }

    /// Rounds the states of a recurrent layer, if they are stored in fp16. With bf16 only operands
    /// and products are rounded.
    pub fn keep(self, values: &mut [f32]) {
        if matches!(self, Self::Fp16) {
            Half::Fp16.round(values);
        }
    }
}

/// The gradients that are wanted besides the weight's.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The input's gradient; a first layer does not need it.
    pub input: bool,
    /// The bias's gradient.
    pub bias: bool,
}

/// The operation on backends with custom kernels, for CPUs with the required instructions.
#[backend_extension(Flex, Autodiff)]
pub trait LinearOp: Backend {
    /// x `[rows, in]` FP32 or bf16, weight `[out, in]` and bias `[out]` (or `[0]` for none) FP32 ->
    /// `[rows, out]` in the products' type.
    fn affine(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        with: Products,
    ) -> FloatTensor<Self>;

    /// Gradients of x (in x's type; `[0]` if not wanted), weight and bias (FP32; `[0]` if not
    /// wanted). With half-precision products, their values are rounded to that type.
    fn affine_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        wanted: Wanted,
        with: Products,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

impl LinearOp for Flex {
    fn affine(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        with: Products,
    ) -> FloatTensor<Self> {
        let (rows, columns) = (x.shape()[0], weight.shape()[0]);
        let (x, weight) = (x.to_contiguous(), weight.to_contiguous());
        let bias = host::values(&bias);
        let bias = (!bias.is_empty()).then_some(&*bias);
        match with {
            Products::Fp32 => {
                let (x, weight) = (host::values(&x), host::values(&weight));
                let depth = weight.len() / columns.max(1);
                let mut out = host::room(rows * columns);
                let weight = Matrix::rows(&weight, columns, depth, depth);
                let start = bias.map_or(Start::Zero, Start::Bias);
                fp32::product(&mut out, &Matrix::rows(&x, rows, depth, depth), &weight, start);
                host::stored(out, [rows, columns])
            }
            Products::Bf16(with) => {
                let out: Vec<Bf16> = halves::product(with, operand(&x), operand(&weight).transpose(), bias);
                host::stored(out, [rows, columns])
            }
            Products::Fp16 => {
                let weight = operand(&weight).transpose();
                let out = halves::product_in_vectors::<f16, f16>(operand(&x), weight, bias);
                host::stored(out, [rows, columns])
            }
        }
    }

    fn affine_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        wanted: Wanted,
        with: Products,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let (x, weight, gradient) = (x.to_contiguous(), weight.to_contiguous(), gradient.to_contiguous());
        let columns = if wanted.bias { weight.shape()[0] } else { 0 };
        let mut db = column_sums(&host::Source::new(&gradient), gradient.shape()[0], columns);
        with.round(&mut db);
        let (dx, dw) = match with {
            Products::Fp32 => fp32_gradients(&x, &weight, &gradient, wanted.input),
            Products::Bf16(with) => {
                let (dy, w) = (operand(&gradient), operand(&weight));
                let dx = match x.dtype() {
                    dtype if !wanted.input => host::tensor(Vec::new(), [0], dtype),
                    DType::F32 => host::stored::<f32>(halves::product(with, dy, w, None), x.shape()),
                    _ => host::stored::<Bf16>(halves::product(with, dy, w, None), x.shape()),
                };
                let dw: Vec<f32> = halves::product(with, dy.transpose(), operand(&x), None);
                (dx, host::stored(dw, weight.shape()))
            }
            Products::Fp16 => fp16_gradients(&x, &weight, &gradient, wanted.input),
        };
        (dx, dw, host::stored(db, [columns]))
    }
}

/// Gradients of x (`[0]` if not wanted) and weight, rounded to fp16; the gradient of the weight is
/// stored as FP32.
fn fp16_gradients(
    x: &FlexTensor,
    weight: &FlexTensor,
    gradient: &FlexTensor,
    input: bool,
) -> (FlexTensor, FlexTensor) {
    let (dy, w) = (operand(gradient), operand(weight));
    let dx = match x.dtype() {
        dtype if !input => host::tensor(Vec::new(), [0], dtype),
        DType::F32 => host::stored(halves::product_in_vectors::<f16, f32>(dy, w, None), x.shape()),
        _ => host::stored(halves::product_in_vectors::<f16, f16>(dy, w, None), x.shape()),
    };
    let dw: Vec<f32> = halves::product_in_vectors::<f16, f32>(dy.transpose(), operand(x), None);
    (dx, host::stored(dw, weight.shape()))
}

/// Gradients of x (`[0]` if not wanted) and weight.
fn fp32_gradients(
    x: &FlexTensor,
    weight: &FlexTensor,
    gradient: &FlexTensor,
    input: bool,
) -> (FlexTensor, FlexTensor) {
    let (rows, columns, depth) = (x.shape()[0], weight.shape()[0], weight.shape()[1]);
    let (values, w, dy) = (host::values(x), host::values(weight), host::values(gradient));
    let dx = if input {
        let mut dx = host::room(rows * depth);
        let by_rows = Matrix::rows(&dy, rows, columns, columns);
        fp32::product(&mut dx, &by_rows, &Matrix::columns(&w, columns, depth, depth), Start::Zero);
        host::tensor(dx, x.shape(), x.dtype())
    } else {
        host::tensor(Vec::new(), [0], x.dtype())
    };
    let mut dw = host::room(columns * depth);
    let by_columns = Matrix::columns(&dy, rows, columns, columns);
    fp32::product(&mut dw, &by_columns, &Matrix::columns(&values, rows, depth, depth), Start::Zero);
    (dx, host::stored(dw, weight.shape()))
}

/// Sums over the rows of a matrix with `columns` columns; empty for 0 columns.
pub fn column_sums(values: &host::Source, rows: usize, columns: usize) -> Vec<f32> {
    /// Number of rows of one partial sum: fixed, so that the order does not depend on the threads.
    const ROWS: usize = 256;
    if columns == 0 {
        return Vec::new();
    }
    let parts: Vec<Vec<f32>> = (0..rows.div_ceil(ROWS))
        .into_par_iter()
        .map(|part| {
            let (mut sums, mut row) = (vec![0f32; columns], vec![0f32; columns]);
            for i in part * ROWS..rows.min((part + 1) * ROWS) {
                values.read(i * columns, &mut row);
                simd::add(&mut sums, &row);
            }
            sums
        })
        .collect();
    let mut sums = vec![0f32; columns];
    parts.iter().for_each(|part| simd::add(&mut sums, part));
    sums
}

/// A contiguous matrix as an operand.
fn operand(matrix: &FlexTensor) -> Operand<'_> {
    let shape = matrix.shape();
    let values = match matrix.dtype() {
        DType::F32 => Values::F32(matrix.as_slice().expect("contiguous f32")),
        DType::BF16 => Values::Bf16(matrix.as_slice().expect("contiguous bf16")),
        DType::F16 => Values::Fp16(matrix.as_slice().expect("contiguous f16")),
        other => panic!("products in a half type take f32 and that type, not {other:?}"),
    };
    Operand::new(values, shape[0], shape[1])
}

impl<B: LinearOp, C: CheckpointStrategy> LinearOp for Autodiff<B, C> {
    fn affine(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        with: Products,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Affine;
        impl<B: LinearOp> Backward<B, 3> for Affine {
            type State = (FloatTensor<B>, FloatTensor<B>, bool, Products);
            fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
                let gradient = grads.consume::<B>(&ops.node);
                let (x, weight, bias, with) = ops.state;
                let wanted = Wanted { input: ops.parents[0].is_some(), bias };
                let (dx, dw, db) = B::affine_backward(x, weight, gradient, wanted, with);
                for (parent, gradient) in ops.parents.into_iter().zip([dx, dw, db]) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, gradient);
                    }
                }
            }
        }
        let ((x, x_node), (weight, weight_node)) = (x.into_parts(), weight.into_parts());
        let (bias, bias_node) = bias.into_parts();
        let biased = bias.shape()[0] > 0;
        match Affine.prepare::<C>([x_node, weight_node, bias_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                prep.finish((x.clone(), weight.clone(), biased, with), B::affine(x, weight, bias, with))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::affine(x, weight, bias, with)),
        }
    }

    fn affine_backward(
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: Wanted,
        _: Products,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        unreachable!("first-order autodiff: a backward operation runs on the inner backend")
    }
}

/// x `[rows, in]` times the transposed weight `[out, in]` (PyTorch's layout), plus bias `[out]`; in
/// the compute type of the pass.
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>, pass: &Pass) -> Tensor<2> {
    let site = pass.output("linear", &weight);
    let own = Products::of(pass.compute).filter(|_| has_own_kernels(&x.device()));
    let out = match own {
        Some(with) => {
            let bias = bias.unwrap_or_else(|| Tensor::empty([0], &weight.device()));
            let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
            Tensor::from_dispatch(Dispatch::affine(x, weight, bias, with))
        }
        None => composed(x, weight, bias, pass),
    };
    observed(out, site)
}

fn composed(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>, pass: &Pass) -> Tensor<2> {
    let product = matmul(pass.compute.cast(x), pass.compute.cast(weight).transpose());
    match bias {
        Some(bias) => product + pass.compute.cast(bias).unsqueeze(),
        None => product,
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::parameters::host_values;
    use crate::precision::{Compute, to_f32};
    use crate::random::Key;

    /// Half types with the unit of their fraction.
    const HALVES: [(Compute, f32); 2] =
        [(Compute(FloatDType::BF16), 1.0 / 128.0), (Compute(FloatDType::F16), 1.0 / 1024.0)];

    fn draw<const D: usize>(stream: u64, shape: [usize; D], device: &Device) -> Tensor<D> {
        let key = Key::new(12, stream, 0);
        let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| key.normal(i as u32)).collect();
        Tensor::from_data(TensorData::new(values, shape), device).require_grad()
    }

    /// Output and gradients of x, weight and bias.
    fn run(compute: Compute, own: bool, half_input: bool, with_bias: bool) -> Vec<Vec<f32>> {
        let device = Device::flex().autodiff();
        let (x, weight, bias) =
            (draw(1, [45, 70], &device), draw(2, [37, 70], &device), draw(3, [37], &device));
        let upstream = Tensor::from_inner(draw(4, [45, 37], &device).inner());
        let pass = Pass::evaluation(compute);
        let input = if half_input { compute.cast(x.clone()) } else { x.clone() };
        let used = with_bias.then(|| bias.clone());
        let out = match own {
            true => linear(input, weight.clone(), used, &pass),
            false => composed(input, weight.clone(), used, &pass),
        };
        assert_eq!(out.dtype(), DType::from(compute.0));
        let grads = (to_f32(out.clone()) * upstream).sum().backward();
        let mut values = vec![host_values(out.inner())];
        values.extend([x.grad(&grads), weight.grad(&grads)].into_iter().map(|g| host_values(g.unwrap())));
        values.extend(with_bias.then(|| host_values(bias.grad(&grads).unwrap())));
        values
    }

    #[test]
    fn own_product_and_composition_agree_in_value_and_gradient() {
        for (half_input, (half, unit)) in
            [false, true].into_iter().flat_map(|of| HALVES.map(|half| (of, half)))
        {
            for with_bias in [false, true] {
                let (own, composed) =
                    (run(half, true, half_input, with_bias), run(half, false, half_input, with_bias));
                for (own, composed) in own.iter().zip(&composed) {
                    let largest = composed.iter().fold(0f32, |m, x| m.max(x.abs()));
                    for (a, b) in own.iter().zip(composed) {
                        // The composition rounds once more (product, then bias), and adds in
                        // another order.
                        assert!((a - b).abs() <= (2.0 * b.abs() + largest / 2.0) * unit, "{a} {b}");
                    }
                    let mean = own.iter().zip(composed).map(|(a, b)| f64::from(a - b)).sum::<f64>();
                    assert!(mean.abs() / (own.len() as f64) < f64::from(largest * unit) / 8.0);
                }
            }
        }
    }

    #[test]
    fn own_product_in_fp32_is_the_composition_but_for_the_order_of_sums() {
        for with_bias in [false, true] {
            let of = |own| run(Compute::FP32, own, false, with_bias);
            for (own, composed) in of(true).iter().zip(&of(false)) {
                let largest = composed.iter().fold(0f32, |m, x| m.max(x.abs()));
                for (a, b) in own.iter().zip(composed) {
                    assert!((a - b).abs() <= 1e-6 * largest, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn gradients_of_masters_are_fp32_leaves() {
        let device = Device::flex().autodiff();
        let (x, weight) = (draw(1, [4, 8], &device), draw(2, [3, 8], &device));
        for (half, _) in HALVES {
            let out = linear(x.clone(), weight.clone(), None, &Pass::evaluation(half));
            let grads = to_f32(out).sum().backward();
            assert_eq!(weight.grad(&grads).unwrap().dtype(), DType::F32);
            assert_eq!(x.grad(&grads).unwrap().dtype(), DType::F32);
        }
    }

    #[test]
    fn the_gradient_of_an_untracked_input_is_not_computed() {
        let values = |stream, n: usize| -> Vec<f32> {
            let key = Key::new(12, stream, 0);
            (0..n as u32).map(|i| key.normal(i)).collect()
        };
        let tensor = |stream, shape: [usize; 2], dtype| {
            host::tensor(values(stream, shape[0] * shape[1]), shape.to_vec(), dtype)
        };
        for compute in [Compute::FP32, HALVES[0].0, HALVES[1].0] {
            let with = Products::of(compute).expect("products of this type");
            let of = |input| {
                let (x, weight) = (tensor(1, [4, 8], with.dtype()), tensor(2, [3, 8], DType::F32));
                let wanted = Wanted { input, bias: false };
                let (dx, dw, _) =
                    Flex::affine_backward(x, weight, tensor(3, [4, 3], with.dtype()), wanted, with);
                (dx.shape(), host::values(&dw).into_owned())
            };
            let ((all, dw), (none, same)) = (of(true), of(false));
            assert_eq!((all.to_vec(), none.to_vec()), (vec![4, 8], vec![0]));
            assert_eq!(dw, same);
        }
    }

    /// Arithmetic of a tensor core: operands are rounded to fp16, products and sums are FP32, and
    /// the result is rounded once. Too large values become infinity, subnormals are kept, and
    /// values below half of the smallest become 0.
    #[test]
    fn fp16_is_that_of_tensor_cores() {
        let device = Device::flex();
        let matrix = |values: &[f32]| {
            Tensor::<2>::from_data(TensorData::new(values.to_vec(), [1, values.len()]), &device)
        };
        let product = |x: &[f32], weight: &[f32]| {
            let out = linear(matrix(x), matrix(weight), None, &Pass::evaluation(Compute(FloatDType::F16)));
            assert_eq!(out.dtype(), DType::F16);
            host_values(out)[0]
        };
        let tiny = 2f32.powi(-24);
        assert_eq!(product(&[300.0], &[300.0]), f32::INFINITY);
        assert_eq!(product(&[-300.0], &[300.0]), f32::NEG_INFINITY);
        assert_eq!(product(&[tiny], &[1.0]), tiny);
        assert_eq!(product(&[tiny], &[0.5]), 0.0, "half of the smallest is a tie, and goes to the even 0");
        assert_eq!(product(&[tiny], &[0.75]), tiny);
        assert_eq!(product(&[1.0 + 1.0 / 4096.0], &[1.0]), 1.0, "operands are rounded");
        // With fp16 sums, 2048 + 1 would stay 2048, and the terms of 60,000 would overflow.
        assert_eq!(product(&[2048.0, 1.0, 1.0], &[1.0, 1.0, 1.0]), 2050.0);
        assert_eq!(product(&[60_000.0, 60_000.0, -60_000.0], &[1.0, 1.0, 1.0]), 60_000.0);
        // Each term is 0 in fp16; their FP32 sum is not.
        assert_eq!(product(&[2f32.powi(-14); 2048], &[2f32.powi(-13); 2048]), 2f32.powi(-16));
    }
}
