//! Products of tiles with `vdpbf16ps`.

use std::arch::x86_64::*;

use super::{PANEL, TILE};

/// Whether the CPU has AVX512-BF16 and the instructions that packing needs.
pub fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bf16")
}

/// Number of rows of A whose sums stay in registers.
const ROWS: usize = 8;

/// c `[32, stride]` = or += a panel of A times one of B, for at least the first `rows` rows.
///
/// # Safety
/// `available` must have returned true.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub unsafe fn block(c: &mut [f32], stride: usize, a: &[u16], b: &[u16], accumulate: bool, rows: usize) {
    assert!(c.len() >= (PANEL - 1) * stride + PANEL && a.len() == b.len());
    for first in (0..PANEL.min(rows)).step_by(ROWS) {
        let c = c[first * stride..].as_mut_ptr();
        let mut sums = [[_mm512_setzero_ps(); 2]; ROWS];
        if accumulate {
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: rows 0..32 and columns 0..32 are inside `c`, as asserted.
                *sums = unsafe {
                    [_mm512_loadu_ps(c.add(row * stride)), _mm512_loadu_ps(c.add(row * stride + 16))]
                };
            }
        }
        for (a, b) in a.chunks_exact(2 * TILE).zip(b.chunks_exact(2 * TILE)) {
            // SAFETY: two tiles of 16 x 16 pairs each; `first` to `first + ROWS` are in one of A's.
            unsafe {
                let a = a.as_ptr().cast::<i32>().add(first * 16);
                let b = b.as_ptr().cast::<i32>();
                for pair in 0..16 {
                    let left = _mm512_loadu_si512(b.add(pair * 16).cast());
                    let right = _mm512_loadu_si512(b.add(TILE / 2 + pair * 16).cast());
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let a = _mm512_set1_epi32(*a.add(row * 16 + pair));
                        sums[0] = _mm512_dpbf16_ps(sums[0], as_bf16(a), as_bf16(left));
                        sums[1] = _mm512_dpbf16_ps(sums[1], as_bf16(a), as_bf16(right));
                    }
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            // SAFETY: as for the loads.
            unsafe {
                _mm512_storeu_ps(c.add(row * stride), sums[0]);
                _mm512_storeu_ps(c.add(row * stride + 16), sums[1]);
            }
        }
    }
}

#[inline(always)]
fn as_bf16(x: __m512i) -> __m512bh {
    // SAFETY: both types are 64 bytes without invalid patterns.
    unsafe { std::mem::transmute(x) }
}
