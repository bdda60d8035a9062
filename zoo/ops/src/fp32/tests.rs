use super::*;
use crate::random::Key;

fn draw(stream: u64, n: usize) -> Vec<f32> {
    let key = Key::new(3, stream, 0);
    (0..n).map(|i| key.normal(i as u32)).collect()
}

/// Product in FP64 of a `[m, k]` and b `[k, n]`, row-major.
fn exact(a: &[f32], b: &[f32], (m, n, k): (usize, usize, usize)) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    for i in 0..m {
        for p in 0..k {
            let a = f64::from(a[i * k + p]);
            (0..n).for_each(|j| out[i * n + j] += a * f64::from(b[p * n + j]));
        }
    }
    out
}

fn turned(x: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|j| (0..rows).map(move |i| x[i * columns + j])).collect()
}

/// Shapes with every kind of edge: less than a tile, one more than a tile, several blocks of the
/// depth, several strips.
const SHAPES: [(usize, usize, usize); 10] = [
    (1, 1, 1),
    (14, 32, 256),
    (15, 33, 257),
    (5, 700, 300),
    (700, 5, 300),
    (129, 65, 1),
    (16, 513, 90),
    (300, 300, 600),
    (2, 3, 5000),
    (31, 16, 17),
];

#[test]
fn products_of_every_layout_and_edge_are_those_of_fp64() {
    if !available() {
        return;
    }
    for shape @ (m, n, k) in SHAPES {
        let (a, b, bias) = (draw(1, m * k), draw(2, k * n), draw(3, n));
        let expected = exact(&a, &b, shape);
        let (a_turned, b_turned) = (turned(&a, m, k), turned(&b, k, n));
        let largest = expected.iter().fold(1e-3f64, |most, x| most.max(x.abs()));
        for a in [Matrix::rows(&a, m, k, k), Matrix::columns(&a_turned, k, m, m)] {
            for b in [Matrix::columns(&b, k, n, n), Matrix::rows(&b_turned, n, k, k)] {
                let check = |out: &[f32], start: &dyn Fn(usize) -> f32| {
                    for (i, (x, expected)) in out.iter().zip(&expected).enumerate() {
                        let expected = expected + f64::from(start(i));
                        assert!(
                            (f64::from(*x) - expected).abs() <= 2e-6 * largest + 1e-6,
                            "{shape:?}: {x} {expected}"
                        );
                    }
                };
                let mut out = vec![f32::NAN; m * n];
                product(&mut out, &a, &b, Start::Zero);
                check(&out, &|_| 0.0);
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                let mut alone = vec![f32::NAN; m * n];
                pool.install(|| product(&mut alone, &a, &b, Start::Zero));
                assert_eq!(out, alone, "a sum does not depend on the threads");
                product(&mut out, &a, &b, Start::Bias(&bias));
                check(&out, &|i| bias[i % n]);
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_the_others() {
    if !available() {
        return;
    }
    let (m, n, k) = (61, 77, 530);
    let (a, b) = (draw(1, m * k), draw(2, k * n));
    let b = Matrix::columns(&b, k, n, n);
    let mut all = vec![0.0; m * n];
    product(&mut all, &Matrix::rows(&a, m, k, k), &b, Start::Zero);
    for row in [0, 13, 14, 60] {
        let mut one = vec![0.0; n];
        product(&mut one, &Matrix::rows(&a[row * k..][..k], 1, k, k), &b, Start::Zero);
        assert_eq!(one, all[row * n..][..n]);
    }
}

#[test]
fn a_part_of_a_matrix_is_read_by_its_stride() {
    if !available() {
        return;
    }
    // Columns 2..5 of a `[4, 7]` matrix.
    let whole = draw(1, 28);
    let part: Vec<f32> = whole.chunks(7).flat_map(|row| row[2..5].to_vec()).collect();
    let b = draw(2, 3 * 40);
    let b = Matrix::columns(&b, 3, 40, 40);
    let (mut one, mut other) = (vec![0.0; 160], vec![0.0; 160]);
    product(&mut one, &Matrix::rows(&whole[2..], 4, 3, 7), &b, Start::Zero);
    product(&mut other, &Matrix::rows(&part, 4, 3, 3), &b, Start::Zero);
    assert_eq!(one, other);
}

#[test]
fn nothing_to_add_leaves_the_start() {
    if !available() {
        return;
    }
    let (a, b) = (Matrix::rows(&[], 2, 0, 0), Matrix::columns(&[], 0, 3, 3));
    let mut out = vec![7.0; 6];
    product(&mut out, &a, &b, Start::Bias(&[1.0, 2.0, 3.0]));
    assert_eq!(out, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    product(&mut out, &a, &b, Start::Zero);
    assert_eq!(out, [0.0; 6]);
}

/// Both kinds of tiles, on a CPU that supports both.
#[cfg(target_arch = "x86_64")]
#[test]
fn tiles_of_avx2_hold_too() {
    if level() == Level::Base {
        return;
    }
    let (m, n, k) = (17, 37, 300);
    let (a, b) = (draw(1, m * k), draw(2, k * n));
    let expected = exact(&a, &b, (m, n, k));
    let kernel = Kernel::Avx2;
    let packed = Packed::new(&Matrix::rows(&a, m, k, k), kernel.rows(m), false);
    let mut out = vec![f32::NAN; m * n];
    by_columns(kernel, &mut out, &packed, &Matrix::columns(&b, k, n, n), Start::Zero, 1);
    for (x, expected) in out.iter().zip(&expected) {
        assert!((f64::from(*x) - expected).abs() < 1e-4, "{x} {expected}");
    }
}
