//! Panels: channels in groups that fill up to two registers.

use super::avx512::HALF;
use crate::fp32::avx512::COLUMNS;

/// Channels in panels of two registers. The last panel has the channels that are left, in as many
/// halves of a register as they need: an idle half costs a multiplication, a register of two halves
/// costs two on many CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panels {
    channels: usize,
}

/// One of the panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panel {
    /// Its first channel.
    pub first: usize,
    /// Number of lanes, in use or idle.
    pub width: usize,
    /// Number of channels.
    pub channels: usize,
}

impl Panels {
    /// The panels of so many channels.
    pub fn of(channels: usize) -> Self {
        Self { channels }
    }

    /// Number of panels.
    pub fn count(self) -> usize {
        self.channels.div_ceil(COLUMNS)
    }

    /// Number of lanes of all panels.
    pub fn lanes(self) -> usize {
        self.channels.next_multiple_of(HALF)
    }

    /// Panel i, which begins at lane `first` of all.
    pub fn panel(self, i: usize) -> Panel {
        let first = i * COLUMNS;
        let [width, channels] = [self.lanes(), self.channels].map(|all| (all - first).min(COLUMNS));
        Panel { first, width, channels }
    }

    /// All panels.
    pub fn all(self) -> impl ExactSizeIterator<Item = Panel> {
        (0..self.count()).map(move |i| self.panel(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_panel_is_as_wide_as_the_channels_that_are_left_need() {
        let widths = |channels| Panels::of(channels).all().map(|panel| panel.width).collect::<Vec<_>>();
        assert_eq!(widths(6), [8]);
        assert_eq!(widths(16), [16]);
        assert_eq!(widths(20), [24]);
        assert_eq!(widths(32), [32]);
        assert_eq!(widths(50), [32, 24]);
        assert!(widths(0).is_empty());
        assert_eq!(Panels::of(50).lanes(), 56);
        assert_eq!(Panels::of(50).panel(1), Panel { first: 32, width: 24, channels: 18 });
    }
}
