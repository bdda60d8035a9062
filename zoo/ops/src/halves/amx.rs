//! Products of tiles with AMX, in assembly because the intrinsics are not stable yet.

use std::arch::asm;
use std::sync::OnceLock;

use super::{PANEL, STEP, TILE};

/// Whether the CPU has AMX for bf16, and the system permits its use. Linux requires one request in
/// each process.
pub fn available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        let leaf = std::arch::x86_64::__cpuid(0).eax;
        // CPUID 7.0 EDX: bit 22 AMX-BF16, bit 24 AMX-TILE.
        let has = leaf >= 7
            && std::arch::x86_64::__cpuid_count(7, 0).edx & (1 << 22 | 1 << 24) == (1 << 22 | 1 << 24);
        has && permitted()
    })
}

/// Requests the permission: `arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)`.
#[cfg(target_os = "linux")]
fn permitted() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
    const XFEATURE_XTILEDATA: u64 = 18;
    let result: i64;
    // SAFETY: a system call that touches no memory of ours; `syscall` itself clobbers rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XFEATURE_XTILEDATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result == 0
}

#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    false
}

/// Configuration of eight tiles of 16 rows of 64 bytes on this thread. It is released on drop.
pub struct Tiles(());

impl Tiles {
    /// Configures the thread's tiles.
    pub fn configure() -> Self {
        #[repr(C, align(64))]
        struct Configuration {
            palette: u8,
            start_row: u8,
            reserved: [u8; 14],
            bytes: [u16; 16],
            rows: [u8; 16],
        }
        let mut configuration =
            Configuration { palette: 1, start_row: 0, reserved: [0; 14], bytes: [0; 16], rows: [0; 16] };
        configuration.bytes[..8].fill(64);
        configuration.rows[..8].fill(16);
        // SAFETY: `available` was checked before; the configuration is 64 bytes of palette 1.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &configuration, options(nostack, readonly)) };
        Self(())
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: this thread configured the tiles.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// c `[16, stride]` = or += the first lanes of a panel of A times a panel of B. The second lanes of
/// A do not exist.
///
/// # Safety
/// Tiles are configured on this thread.
pub unsafe fn half_block(c: &mut [f32], stride: usize, a: &[u16], b: &[u16], accumulate: bool) {
    debug_assert!(c.len() >= (PANEL / 2 - 1) * stride + PANEL && a.len() == b.len());
    let c0 = c.as_mut_ptr();
    // SAFETY: rows 0..16 and columns 0..32 are inside `c`, as asserted; so are the tiles of a and
    // b.
    unsafe {
        let c1 = c0.add(16);
        let row = stride * size_of::<f32>();
        if accumulate {
            asm!(
                "tileloadd tmm0, [{c0} + {row}*1]",
                "tileloadd tmm1, [{c1} + {row}*1]",
                c0 = in(reg) c0, c1 = in(reg) c1, row = in(reg) row,
                options(nostack, readonly),
            );
        } else {
            asm!("tilezero tmm0", "tilezero tmm1", options(nostack, nomem));
        }
        for (a, b) in a.chunks_exact(2 * TILE).zip(b.chunks_exact(2 * TILE)) {
            asm!(
                "tileloadd tmm4, [{a} + {row}*1]",
                "tileloadd tmm6, [{b} + {row}*1]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b} + {row}*1 + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                a = in(reg) a.as_ptr(), b = in(reg) b.as_ptr(), row = in(reg) STEP * 2,
                options(nostack, readonly),
            );
        }
        asm!(
            "tilestored [{c0} + {row}*1], tmm0",
            "tilestored [{c1} + {row}*1], tmm1",
            c0 = in(reg) c0, c1 = in(reg) c1, row = in(reg) row,
            options(nostack),
        );
    }
}

/// c `[32, stride]` = or += a panel of A times one of B.
///
/// # Safety
/// Tiles are configured on this thread.
pub unsafe fn block(c: &mut [f32], stride: usize, a: &[u16], b: &[u16], accumulate: bool) {
    debug_assert!(c.len() >= (PANEL - 1) * stride + PANEL && a.len() == b.len());
    let c0 = c.as_mut_ptr();
    // SAFETY: rows 0..32 and columns 0..32 are inside `c`, as asserted; so are the tiles of a and
    // b.
    unsafe {
        let (c1, c2) = (c0.add(16), c0.add(16 * stride));
        let c3 = c2.add(16);
        let row = stride * size_of::<f32>();
        if accumulate {
            asm!(
                "tileloadd tmm0, [{c0} + {row}*1]",
                "tileloadd tmm1, [{c1} + {row}*1]",
                "tileloadd tmm2, [{c2} + {row}*1]",
                "tileloadd tmm3, [{c3} + {row}*1]",
                c0 = in(reg) c0, c1 = in(reg) c1, c2 = in(reg) c2, c3 = in(reg) c3, row = in(reg) row,
                options(nostack, readonly),
            );
        } else {
            asm!("tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3", options(nostack, nomem),);
        }
        for (a, b) in a.chunks_exact(2 * TILE).zip(b.chunks_exact(2 * TILE)) {
            asm!(
                "tileloadd tmm4, [{a} + {row}*1]",
                "tileloadd tmm6, [{b} + {row}*1]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b} + {row}*1 + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{a} + {row}*1 + 1024]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                a = in(reg) a.as_ptr(), b = in(reg) b.as_ptr(), row = in(reg) STEP * 2,
                options(nostack, readonly),
            );
        }
        asm!(
            "tilestored [{c0} + {row}*1], tmm0",
            "tilestored [{c1} + {row}*1], tmm1",
            "tilestored [{c2} + {row}*1], tmm2",
            "tilestored [{c3} + {row}*1], tmm3",
            c0 = in(reg) c0, c1 = in(reg) c1, c2 = in(reg) c2, c3 = in(reg) c3, row = in(reg) row,
            options(nostack),
        );
    }
}
