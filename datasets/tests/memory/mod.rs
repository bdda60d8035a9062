//! Counts the allocations of a test's process.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all calls are forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(now, Relaxed);
        // SAFETY: the caller fulfils the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `place` is from `alloc` above, with this layout.
        unsafe { System.dealloc(place, layout) }
    }
}

pub fn allocated() -> usize {
    NOW.load(Relaxed)
}

/// Returns the result of `run`, and the peak of its allocated bytes.
pub fn peak_of<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = allocated();
    PEAK.store(before, Relaxed);
    let result = run();
    (result, PEAK.load(Relaxed) - before)
}
