//! Kernels launched on a device: their number and their time.

pub use counting::{count, time};

/// All launches of one kind of kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Launched {
    /// Name of the kernel's type, without path and parameters. Kernels that Burn fused from different
    /// operations share a name, and so do matrix products of different shapes.
    pub kernel: String,
    pub launches: usize,
    /// Time on the device in seconds; `None` if the device did not measure every launch.
    pub seconds: Option<f64>,
}

#[cfg(feature = "cubecl")]
mod counting {
    use std::collections::BTreeMap;
    use std::mem;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};

    use cubecl::config::{TypeNameFormatLevel, type_name_format};
    use cubecl::future::block_on;
    use cubecl::logging::{
        Duration, LaunchObservation, LaunchObserver, ProfileDuration, TimingMethod, TimingRequest,
    };

    use super::Launched;

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

    /// Measurement of one launch.
    enum Measured {
        /// To be read after the pass: reading waits for the kernel, and the next one would start late.
        Later(ProfileDuration),
        Seconds(f64),
    }

    #[derive(Default)]
    struct Stopwatch {
        launched: Mutex<Vec<&'static str>>,
        measured: Mutex<Vec<(&'static str, Measured)>>,
    }

    impl LaunchObserver for Stopwatch {
        fn launched(&self, kernel: &'static str) {
            self.launched.lock().unwrap_or_else(PoisonError::into_inner).push(kernel);
        }

        fn timing(&self) -> TimingRequest {
            TimingRequest::Deferred
        }

        fn profiled(&self, kernel: &'static str, profile: ProfileDuration) {
            if profile.timing_method() == TimingMethod::Device {
                self.measure(kernel, Measured::Later(profile));
            }
        }

        // In place of `profiled` if CubeCL's profiling logger reads the measurements.
        fn timed(&self, kernel: &'static str, duration: Duration, method: TimingMethod) {
            if method == TimingMethod::Device {
                self.measure(kernel, Measured::Seconds(duration.as_secs_f64()));
            }
        }
    }

    impl Stopwatch {
        fn measure(&self, kernel: &'static str, measured: Measured) {
            self.measured.lock().unwrap_or_else(PoisonError::into_inner).push((kernel, measured));
        }

        /// The kernels by name. Waits for the device.
        fn kernels(&self) -> Vec<Launched> {
            let launched = mem::take(&mut *self.launched.lock().unwrap_or_else(PoisonError::into_inner));
            let measured = mem::take(&mut *self.measured.lock().unwrap_or_else(PoisonError::into_inner));
            // Launches, measured launches, and the seconds of these.
            let mut kernels = BTreeMap::<String, (usize, usize, f64)>::new();
            let short = |kernel| type_name_format(kernel, TypeNameFormatLevel::Short);
            for kernel in launched {
                kernels.entry(short(kernel)).or_default().0 += 1;
            }
            for (kernel, measured) in measured {
                let seconds = match measured {
                    Measured::Seconds(seconds) => Some(seconds),
                    Measured::Later(profile) => {
                        block_on(profile.resolve()).map(|ticks| ticks.duration().as_secs_f64())
                    }
                };
                if let Some(seconds) = seconds {
                    let (_, count, sum) = kernels.entry(short(kernel)).or_default();
                    *count += 1;
                    *sum += seconds;
                }
            }
            let kernels = kernels.into_iter().map(|(kernel, (launches, measured, seconds))| Launched {
                kernel,
                launches,
                seconds: (measured == launches).then_some(seconds),
            });
            let mut kernels: Vec<_> = kernels.collect();
            kernels.sort_by(|one, other| {
                let seconds = |of: &Launched| of.seconds.unwrap_or(f64::INFINITY);
                seconds(other).total_cmp(&seconds(one)).then(other.launches.cmp(&one.launches))
            });
            kernels
        }
    }

    /// Returns the result of `run`, and the kernels that the process launched meanwhile, those that took
    /// longest first. Empty where nothing is launched. The host makes two more calls a launch.
    pub fn time<T>(run: impl FnOnce() -> T) -> (T, Vec<Launched>) {
        let stopwatch = Arc::new(Stopwatch::default());
        let watching = LaunchObservation::new(stopwatch.clone());
        let out = run();
        drop(watching);
        (out, stopwatch.kernels())
    }

    #[cfg(test)]
    mod tests {
        use cubecl::logging::ProfileTicks;

        use super::*;

        /// A launch that took `millis`, as a device reports it.
        fn launch(stopwatch: &Stopwatch, kernel: &'static str, millis: u64) {
            let start = cubecl::profile::Instant::now();
            let ticks = ProfileTicks::from_start_end(start, start + Duration::from_millis(millis));
            stopwatch.launched(kernel);
            stopwatch.profiled(kernel, ProfileDuration::new_device_time(async move { ticks }));
        }

        #[test]
        fn launches_are_added_by_the_name_of_the_kernel() {
            let stopwatch = Stopwatch::default();
            launch(&stopwatch, "burn::fuse::ElemwiseFuse<f32>", 1);
            launch(&stopwatch, "zoo::norm::LayerNorm<f32, Cuda>", 4);
            launch(&stopwatch, "burn::fuse::ElemwiseFuse<half::f16>", 2);
            let row = |kernel: &str, launches, seconds| Launched { kernel: kernel.into(), launches, seconds };
            assert_eq!(
                stopwatch.kernels(),
                [row("LayerNorm", 1, Some(0.004)), row("ElemwiseFuse", 2, Some(0.003))]
            );
        }

        #[test]
        fn a_kernel_with_a_launch_that_was_not_measured_has_no_time() {
            let stopwatch = Stopwatch::default();
            launch(&stopwatch, "a::Copy", 1);
            launch(&stopwatch, "a::Sum", 1);
            stopwatch.launched("a::Copy");
            // The host's clock includes the wait for other kernels.
            let now = cubecl::profile::Instant::now();
            stopwatch.profiled("a::Copy", ProfileDuration::new_system_time(now, now));
            let row = |kernel: &str, launches, seconds| Launched { kernel: kernel.into(), launches, seconds };
            assert_eq!(stopwatch.kernels(), [row("Copy", 2, None), row("Sum", 1, Some(0.001))]);
        }
    }
}

#[cfg(not(feature = "cubecl"))]
mod counting {
    use super::Launched;

    /// Returns the result of `run`. Without CubeCL, launches are not counted.
    pub fn count<T>(run: impl FnOnce() -> T) -> (T, Option<usize>) {
        (run(), None)
    }

    /// Returns the result of `run`. Without CubeCL, nothing is launched.
    pub fn time<T>(run: impl FnOnce() -> T) -> (T, Vec<Launched>) {
        (run(), Vec::new())
    }
}
