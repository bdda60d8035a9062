//! Number of kernels launched on a device.

pub use counting::count;

#[cfg(feature = "cubecl")]
mod counting {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use cubecl::logging::{LaunchObservation, LaunchObserver};

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl LaunchObserver for Counter {
        fn launched(&self, _: &'static str) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the result of `run`, and the number of kernels that the process launched meanwhile.
    /// `None` where launches are not counted.
    pub fn count<T>(run: impl FnOnce() -> T) -> (T, Option<usize>) {
        let counter = Arc::new(Counter::default());
        let watching = LaunchObservation::new(counter.clone());
        let out = run();
        drop(watching);
        (out, Some(counter.0.load(Ordering::Relaxed)))
    }
}

#[cfg(not(feature = "cubecl"))]
mod counting {
    /// Returns the result of `run`. Without CubeCL, launches are not counted.
    pub fn count<T>(run: impl FnOnce() -> T) -> (T, Option<usize>) {
        (run(), None)
    }
}
