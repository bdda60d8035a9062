//! Products agree with FP64 sums of the rounded operands.

use super::*;
use crate::random::Key;

fn draw(stream: u64, n: usize) -> Vec<f32> {
    let key = Key::new(21, stream, 0);
    (0..n).map(|i| key.normal(i as u32)).collect()
}

fn rounded(values: &[f32]) -> Vec<bf16> {
    values.iter().map(|&x| bf16::from_f32(x)).collect()
}

fn instructions() -> Vec<Instruction> {
    match instruction() {
        Some(Instruction::Amx) => vec![Instruction::Amx, Instruction::Avx512],
        Some(Instruction::Avx512) => vec![Instruction::Avx512],
        None | Some(Instruction::Emulated) => {
            eprintln!("skipped: this CPU has no instruction for products of bf16");
            vec![]
        }
    }
}

/// The instructions of this CPU, and the emulation if available.
fn ways() -> Vec<Instruction> {
    let emulated = crate::fp32::available().then_some(Instruction::Emulated);
    instructions().into_iter().chain(emulated).collect()
}

/// Edges on every side, one and several blocks of depth, several tasks.
const SHAPES: [(usize, usize, usize); 8] = [
    (1, 1, 1),
    (5, 7, 3),
    (32, 32, 32),
    (33, 65, 31),
    (130, 40, 1057),
    (17, 530, 64),
    (260, 96, 100),
    (1100, 513, 33),
];

#[test]
fn products_of_all_layouts_and_types_agree_with_fp64() {
    for with in ways() {
        for (m, n, k) in SHAPES {
            let (a, b, bias) = (draw(1, m * k), draw(2, k * n), draw(3, n));
            let exact: Vec<f64> = {
                let (a, b, bias) = (rounded(&a), rounded(&b), rounded(&bias));
                let at = |i: usize| (0..n).map(move |j| (i, j));
                (0..m)
                    .flat_map(at)
                    .map(|(i, j)| {
                        let sum: f64 = (0..k).map(|d| a[i * k + d].to_f64() * b[d * n + j].to_f64()).sum();
                        sum + bias[j].to_f64()
                    })
                    .collect()
            };
            let transposed = |x: &[f32], rows: usize, columns: usize| -> Vec<f32> {
                (0..columns).flat_map(|j| (0..rows).map(move |i| x[i * columns + j])).collect()
            };
            let (at, bt) = (transposed(&a, m, k), transposed(&b, k, n));
            let (half_a, half_b, half_at, half_bt) = (rounded(&a), rounded(&b), rounded(&at), rounded(&bt));
            let lefts = [
                Operand::new(Values::F32(&a), m, k),
                Operand::new(Values::Bf16(&half_a), m, k),
                Operand::new(Values::F32(&at), k, m).transpose(),
                Operand::new(Values::Bf16(&half_at), k, m).transpose(),
            ];
            let rights = [
                Operand::new(Values::F32(&b), k, n),
                Operand::new(Values::Bf16(&half_b), k, n),
                Operand::new(Values::F32(&bt), n, k).transpose(),
                Operand::new(Values::Bf16(&half_bt), n, k).transpose(),
            ];
            let mut first: Option<Vec<f32>> = None;
            for left in lefts {
                for right in rights {
                    let out: Vec<f32> = product(with, left, right, Some(&bias));
                    // One rounding to 8 bits, and f32 sums of k products.
                    for (x, exact) in out.iter().zip(&exact) {
                        let limit = exact.abs() / 256.0 + 1e-5 * (k as f64).sqrt();
                        assert!((f64::from(*x) - exact).abs() <= limit, "{with:?} {m} {n} {k}: {x} {exact}");
                    }
                    let half: Vec<bf16> = product(with, left, right, Some(&bias));
                    assert!(half.iter().zip(&out).all(|(half, x)| half.to_f32() == *x));
                    match &first {
                        Some(first) => assert_eq!(first, &out, "layout and type do not change a bit"),
                        None => first = Some(out),
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_the_others() {
    for with in instructions() {
        let (k, n) = (1100, 600);
        let (a, b) = (draw(4, 1030 * k), draw(5, k * n));
        let b = Operand::new(Values::F32(&b), k, n);
        let all: Vec<f32> = product(with, Operand::new(Values::F32(&a), 1030, k), b, None);
        for row in [0, 1, 40, 1029] {
            let alone: Vec<f32> = product(with, Operand::new(Values::F32(&a[row * k..][..k]), 1, k), b, None);
            assert_eq!(alone, all[row * n..][..n]);
        }
    }
}

#[test]
fn strips_of_packed_operands_are_parts_of_the_product() {
    for with in instructions() {
        let (m, n, k) = (45, 110, 1070);
        let (a, b) = (draw(6, m * k), draw(7, k * n));
        let (a, b) = (Operand::new(Values::F32(&a), m, k), Operand::new(Values::F32(&b), k, n));
        let all: Vec<f32> = product(with, a, b, None);
        let (rows, columns) = (Packed::rows(&a), Packed::columns(&b));
        for strip in [0..64, 64..n, 96..n] {
            let mut sums = product_strip(with, &rows, &columns, strip.clone());
            crate::simd::round_in_place(&mut sums);
            let stride = strip.len().next_multiple_of(PANEL);
            for i in 0..m {
                assert_eq!(sums[i * stride..][..strip.len()], all[i * n..][strip.clone()]);
            }
        }
    }
}

#[test]
fn the_first_columns_of_a_matrix_are_an_operand() {
    for with in instructions() {
        let (a, b) = (draw(8, 40 * 70), draw(9, 40 * 33));
        let b = Operand::new(Values::F32(&b), 40, 33);
        let all: Vec<f32> = product(with, Operand::new(Values::F32(&a), 40, 70).transpose(), b, None);
        let part = Operand::part(Values::F32(&a), 40, 50, 70).transpose();
        assert_eq!(product::<f32>(with, part, b, None), all[..50 * 33]);
    }
}

#[test]
fn overflow_and_nan_come_through() {
    for with in instructions() {
        for bad in [f32::NAN, f32::INFINITY] {
            let a = [1.0, bad, 2.0];
            let out: Vec<f32> = product(
                with,
                Operand::new(Values::F32(&a), 1, 3),
                Operand::new(Values::F32(&[1.0, 1.0, 1.0]), 3, 1),
                None,
            );
            assert!(!out[0].is_finite());
        }
    }
}

#[test]
fn nothing_in_nothing_out() {
    for with in instructions() {
        let empty: Vec<f32> = product(
            with,
            Operand::new(Values::F32(&[]), 0, 4),
            Operand::new(Values::F32(&[0.0; 8]), 4, 2),
            None,
        );
        assert!(empty.is_empty());
        let depth: Vec<f32> =
            product(with, Operand::new(Values::F32(&[]), 2, 0), Operand::new(Values::F32(&[]), 0, 3), None);
        assert_eq!(depth, [0.0; 6]);
    }
}
