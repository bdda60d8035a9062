//! Converts the bytes of pictures to numbers.

use super::error::ShapeError;
use super::picture::Picture;

/// Divisor of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PixelScale {
    /// No division: numbers from 0 to 255.
    Bytes,
    /// Division by 255, as in torchvision's `ToTensor`: numbers from 0 to 1.
    Unit,
    /// Division by 256, as `scale: 0.00390625` in Caffe's examples: numbers from 0 to below 1.
    Caffe,
}

/// Mean and standard deviation of each channel, in the numbers that [`PixelScale`] gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalization {
    /// Mean of each channel, subtracted first.
    pub mean: Vec<f32>,
    /// Standard deviation of each channel; the divisor after the subtraction.
    pub deviation: Vec<f32>,
}

/// Converts pictures to FP32 numbers, [channels, height, width]. Each step is one FP32 operation,
/// in torchvision's order.
#[derive(Debug, Clone)]
pub struct Pixels {
    /// For each channel, a table with the number for each byte. A single table serves all channels.
    tables: Vec<[f32; 256]>,
}

impl Pixels {
    /// A conversion in a scale, with an optional normalisation.
    ///
    /// # Errors
    /// [`ShapeError::Channels`] if there are not as many means as standard deviations;
    /// [`ShapeError::Number`] for a value that is not finite or a standard deviation that is not
    /// positive.
    pub fn new(scale: PixelScale, normalization: Option<&Normalization>) -> Result<Self, ShapeError> {
        let scaled: [f32; 256] = std::array::from_fn(|byte| match scale {
            PixelScale::Bytes => byte as f32,
            PixelScale::Unit => byte as f32 / 255.0,
            PixelScale::Caffe => byte as f32 / 256.0,
        });
        let Some(Normalization { mean, deviation }) = normalization else {
            return Ok(Self { tables: vec![scaled] });
        };
        if mean.is_empty() || mean.len() != deviation.len() {
            let (actual, channels) = (deviation.len(), mean.len());
            return Err(ShapeError::Channels { name: "deviation", actual, channels });
        }
        let table = |(mean, deviation): (&f32, &f32)| {
            if !mean.is_finite() {
                let (name, value) = ("mean", f64::from(*mean));
                return Err(ShapeError::Number { name, value, expected: "not a finite number" });
            }
            if !(deviation.is_finite() && *deviation > 0.0) {
                let (name, value) = ("deviation", f64::from(*deviation));
                return Err(ShapeError::Number { name, value, expected: "not a positive number" });
            }
            Ok(scaled.map(|number| (number - mean) / deviation))
        };
        Ok(Self { tables: mean.iter().zip(deviation).map(table).collect::<Result<_, _>>()? })
    }

    /// Converts bytes `[pixels, channels]` and appends their numbers to `numbers`, in the same
    /// order.
    ///
    /// # Errors
    /// [`ShapeError::Channels`] if the normalisation has another number of channels.
    pub fn append_bytes(
        &self,
        bytes: &[u8],
        channels: usize,
        numbers: &mut Vec<f32>,
    ) -> Result<(), ShapeError> {
        match self.tables.as_slice() {
            [table] => numbers.extend(bytes.iter().map(|byte| table[usize::from(*byte)])),
            tables if tables.len() == channels => {
                numbers.extend(
                    bytes.iter().zip(tables.iter().cycle()).map(|(byte, table)| table[usize::from(*byte)]),
                );
            }
            tables => {
                let actual = tables.len();
                return Err(ShapeError::Channels { name: "the normalisation", actual, channels });
            }
        }
        Ok(())
    }

    /// Converts a picture and appends its numbers to `numbers`, channel by channel.
    ///
    /// # Errors
    /// [`ShapeError::Channels`] if the normalisation has another number of channels.
    pub fn append(&self, picture: &Picture, numbers: &mut Vec<f32>) -> Result<(), ShapeError> {
        let channels = picture.channels();
        if self.tables.len() != 1 && self.tables.len() != channels {
            let actual = self.tables.len();
            return Err(ShapeError::Channels { name: "the normalisation", actual, channels });
        }
        for (channel, table) in (0..channels).zip(self.tables.iter().cycle()) {
            let bytes = picture.bytes().iter().skip(channel).step_by(channels);
            numbers.extend(bytes.map(|byte| table[usize::from(*byte)]));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_lie_behind_each_other() {
        let picture = Picture::new(1, 2, 3, vec![0, 51, 255, 102, 153, 204]).unwrap();
        let numbers = |scale, normalization: Option<&Normalization>| {
            let mut numbers = Vec::new();
            Pixels::new(scale, normalization).unwrap().append(&picture, &mut numbers).unwrap();
            numbers
        };
        assert_eq!(numbers(PixelScale::Bytes, None), [0.0, 102.0, 51.0, 153.0, 255.0, 204.0]);
        assert_eq!(numbers(PixelScale::Unit, None), [0.0, 0.4, 0.2, 0.6, 1.0, 0.8]);
        assert_eq!(numbers(PixelScale::Caffe, None)[1], 0.398_437_5);
        let halves = Normalization { mean: vec![0.5; 3], deviation: vec![0.5; 3] };
        assert_eq!(numbers(PixelScale::Unit, Some(&halves))[4], 1.0);
    }

    #[test]
    fn a_normalisation_must_fit() {
        let normalization = |mean: &[f32], deviation: &[f32]| {
            Pixels::new(
                PixelScale::Unit,
                Some(&Normalization { mean: mean.into(), deviation: deviation.into() }),
            )
        };
        assert!(normalization(&[0.0], &[]).is_err());
        assert!(normalization(&[], &[]).is_err());
        assert!(normalization(&[0.0], &[0.0]).is_err());
        assert!(normalization(&[f32::NAN], &[1.0]).is_err());
        let three = normalization(&[0.0; 3], &[1.0; 3]).unwrap();
        let grey = Picture::new(1, 1, 1, vec![0]).unwrap();
        assert!(three.append(&grey, &mut Vec::new()).is_err());
    }
}
