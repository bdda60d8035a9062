//! Memory use of processes and GPUs, and free memory of the machine. Values are `None` if Linux or
//! NVIDIA's driver does not report them.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use crate::device::DeviceChoice;

/// Peak memory of this process on a device, in bytes.
///
/// For a GPU it is the memory that all programs use now, because the backend keeps what it
/// allocated.
pub fn peak(device: DeviceChoice) -> Option<u64> {
    match device.settled() {
        DeviceChoice::Cpu => of_process("self", "VmHWM:"),
        DeviceChoice::Cuda(number) => of_card(number),
        _ => None,
    }
}

/// Peak resident memory of another process, in bytes.
pub fn peak_of(process: u32) -> Option<u64> {
    of_process(&process.to_string(), "VmHWM:")
}

/// Bytes that programs can still allocate before swapping or killing starts.
pub fn available() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let machine = kilobytes(&info, "MemAvailable:")?;
    Some(machine.min(left_in_groups().unwrap_or(u64::MAX)))
}

fn of_process(process: &str, key: &str) -> Option<u64> {
    kilobytes(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?, key)
}

/// Bytes in a line `Key:   123 kB`.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Remaining memory of this process's control group (version 2): the minimum over the group and its
/// ancestors. A container may have less memory than the machine.
fn left_in_groups() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let left = |group: &Path| {
        let read =
            |file: &str| std::fs::read_to_string(Path::new("/sys/fs/cgroup").join(group).join(file)).ok();
        let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
        let most = number("memory.max")?;
        // Inactive file pages are released when memory is needed.
        let stat = read("memory.stat")?;
        let idle = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok())?;
        Some(most.saturating_sub(number("memory.current")?.saturating_sub(idle)))
    };
    Path::new(own).ancestors().filter_map(left).min()
}

fn of_card(number: usize) -> Option<u64> {
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").unwrap_or_default();
    let id = visible.split(',').nth(number).map(str::trim).filter(|id| !id.is_empty());
    let id = id.map_or_else(|| number.to_string(), str::to_owned);
    let query = ["--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id"];
    let told = Command::new("nvidia-smi").args(query).arg(id).output().ok()?;
    let mebibytes: u64 = String::from_utf8(told.stdout).ok()?.trim().parse().ok()?;
    Some(mebibytes << 20)
}

/// A number of bytes, written as `600MB` or `1.5GB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (number, unit) = match (text.strip_suffix("GB"), text.strip_suffix("MB")) {
                (Some(number), _) => (number, 1e9),
                (_, Some(number)) => (number, 1e6),
                _ => return None,
            };
            let bytes = number.trim().parse::<f64>().ok()? * unit;
            (1.0..=1e15).contains(&bytes).then_some(Self(bytes as u64))
        };
        read().ok_or_else(|| "give megabytes or gigabytes, e.g. 600MB or 1.5GB".to_owned())
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000_000_000 => write!(f, "{} MB", self.0 / 1_000_000),
            bytes => write!(f, "{:.1} GB", bytes as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_and_written() {
        for (text, bytes, back) in [
            ("600MB", 600_000_000, "600 MB"),
            ("1.5GB", 1_500_000_000, "1.5 GB"),
            ("2 GB", 2_000_000_000, "2.0 GB"),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)));
            assert_eq!(Bytes(bytes).to_string(), back);
        }
        for text in ["600", "MB", "-1GB", "0MB", "infGB", "NaNMB", "1e99GB", "6kB"] {
            assert!(text.parse::<Bytes>().unwrap_err().contains("600MB"), "{text}");
        }
    }

    #[test]
    fn lines_of_the_kernel_are_read() {
        let text = "VmPeak:\t  900 kB\nVmHWM:\t  123 kB\n";
        assert_eq!(kilobytes(text, "VmHWM:"), Some(123 * 1024));
        assert_eq!(kilobytes(text, "VmRSS:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_holds_less_than_there_is() {
        let held = peak(DeviceChoice::Cpu).unwrap();
        assert!(held > 1 << 20);
        assert_eq!(peak_of(std::process::id()).map(|bytes| bytes >= held), Some(true));
        assert!(available().unwrap() > 0);
    }
}
