//! TFRecord: records with a length and masked CRC-32C checksums.
//!
//! ```text
//! uint64 length | uint32 masked CRC of length | bytes data[length] | uint32 masked CRC of data
//! ```
//!
//! Source: <https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details>.

use std::io::{self, BufRead, Read};

/// Largest record that is kept in memory. The data of larger ones is checked and passed over: the
/// scalars that zoo reads have some hundred bytes, pictures and graphs may have many.
const MOST_KEPT: u64 = 64 << 20;

/// Bytes of a length with its checksum, and of a checksum.
const HEAD: usize = 12;
const TAIL: usize = 4;

/// The checksum of bytes as records have it.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Adds a record to bytes.
pub fn write(out: &mut Vec<u8>, data: &[u8]) {
    let length = (data.len() as u64).to_le_bytes();
    out.extend(length);
    out.extend(masked(crc32c::crc32c(&length)).to_le_bytes());
    out.extend_from_slice(data);
    out.extend(masked(crc32c::crc32c(data)).to_le_bytes());
}

/// Result of [`Records::next`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The data of a record.
    Data(Vec<u8>),
    /// An intact record that is larger than 64 MiB.
    TooLarge,
    /// The file ends within a record: its writer still writes it, or was killed.
    Truncated,
    /// The file ends after a record.
    End,
}

/// Error of a file of records.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A checksum differs. `at` is the place of the record in bytes.
    #[error("the {what} of the record at byte {at} does not have its checksum")]
    Checksum { at: u64, what: &'static str },
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Records of a file.
#[derive(Debug)]
pub struct Records<R> {
    file: R,
    /// Place of the next record, in bytes.
    at: u64,
}

impl<R: BufRead> Records<R> {
    /// The records from the start of a file.
    pub fn of(file: R) -> Self {
        Self { file, at: 0 }
    }

    /// Place of the next record, in bytes.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The next record.
    ///
    /// # Errors
    /// A checksum differs, or the file cannot be read.
    pub fn next(&mut self) -> Result<Found, RecordError> {
        let mut head = [0; HEAD];
        match filled(&mut self.file, &mut head)? {
            0 => return Ok(Found::End),
            HEAD => {}
            _ => return Ok(Found::Truncated),
        }
        let [length, crc] = [&head[..8], &head[8..]];
        let damaged = |what| RecordError::Checksum { at: self.at, what };
        if masked(crc32c::crc32c(length)).to_le_bytes() != crc {
            return Err(damaged("length"));
        }
        let length = length.iter().rev().fold(0_u64, |length, byte| length << 8 | u64::from(*byte));
        let (mut data, mut crc, mut passed) = (Vec::new(), 0, 0_u64);
        let mut chunk = vec![0; 64 << 10];
        while passed < length {
            let wanted = usize::try_from(length - passed).map_or(chunk.len(), |left| left.min(chunk.len()));
            let count = filled(&mut self.file, &mut chunk[..wanted])?;
            if count < wanted {
                return Ok(Found::Truncated);
            }
            crc = crc32c::crc32c_append(crc, &chunk[..count]);
            passed += count as u64;
            if length <= MOST_KEPT {
                data.extend_from_slice(&chunk[..count]);
            }
        }
        let mut tail = [0; TAIL];
        if filled(&mut self.file, &mut tail)? < TAIL {
            return Ok(Found::Truncated);
        }
        if masked(crc).to_le_bytes() != tail {
            return Err(damaged("data"));
        }
        self.at += length + (HEAD + TAIL) as u64;
        Ok(if length > MOST_KEPT { Found::TooLarge } else { Found::Data(data) })
    }
}

/// Fills a buffer. Returns the number of bytes before the end of the file.
fn filled(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read(&mut buffer[count..]) {
            Ok(0) => break,
            Ok(read) => count += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<Result<Found, String>> {
        let mut records = Records::of(bytes);
        let mut found = Vec::new();
        loop {
            let next = records.next().map_err(|error| error.to_string());
            let goes_on = matches!(next, Ok(Found::Data(_) | Found::TooLarge));
            found.push(next);
            if !goes_on {
                return found;
            }
        }
    }

    #[test]
    fn a_record_has_the_bytes_that_tensorflow_writes() {
        let mut out = Vec::new();
        write(&mut out, &[0; 24]);
        // The first record of the event files of TensorFlow has 24 bytes.
        assert_eq!(out[..12], [0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22]);
        // RFC 3720, B.4: 32 bytes of zeros.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn records_are_read_back_and_a_torn_one_is_noticed() {
        let mut bytes = Vec::new();
        let large = vec![7; 200_000];
        for data in [&b"one"[..], b"", &large] {
            write(&mut bytes, data);
        }
        let data = |data: &[u8]| Ok(Found::Data(data.to_vec()));
        let whole = [data(b"one"), data(b""), data(&large), Ok(Found::End)];
        assert_eq!(all(&bytes), whole);
        for cut in [bytes.len() - 1, bytes.len() - 5, bytes.len() - 200_000, 19 + 16 + 3] {
            assert_eq!(all(&bytes[..cut]), [data(b"one"), data(b""), Ok(Found::Truncated)], "{cut}");
        }
    }

    #[test]
    fn a_flipped_bit_is_an_error_with_its_place() {
        let mut bytes = Vec::new();
        write(&mut bytes, b"first");
        let second = bytes.len();
        write(&mut bytes, b"second");
        for (at, what) in [(second, "length"), (second + 9, "length"), (second + 13, "data")] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            let error = all(&damaged).pop().unwrap().unwrap_err();
            assert_eq!(
                error,
                format!("the {what} of the record at byte {second} does not have its checksum")
            );
        }
        // A length beyond the memory of any machine is believed only with its checksum.
        let mut huge = u64::MAX.to_le_bytes().to_vec();
        huge.extend(masked(crc32c::crc32c(&huge)).to_le_bytes());
        huge.extend([0; 100]);
        assert_eq!(all(&huge), [Ok(Found::Truncated)]);
    }
}
