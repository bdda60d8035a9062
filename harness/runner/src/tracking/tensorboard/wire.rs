//! Protocol Buffers wire format of the few fields that event files need.
//!
//! Source of the encoding: <https://protobuf.dev/programming-guides/encoding/>.

/// Wire types.
const VARINT: u32 = 0;
const BITS_64: u32 = 1;
const BYTES: u32 = 2;
const BITS_32: u32 = 5;

/// A message that is being encoded. A field with the type's default value is written too.
#[derive(Debug, Default, Clone)]
pub struct Message(Vec<u8>);

impl Message {
    /// The bytes of the message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.raw_varint(u64::from(field << 3 | wire));
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Adds an `int32`, `int64`, `uint64` or enum that is not negative.
    #[must_use]
    pub fn integer(mut self, field: u32, value: u64) -> Self {
        self.key(field, VARINT);
        self.raw_varint(value);
        self
    }

    /// Adds a `double`.
    #[must_use]
    pub fn double(mut self, field: u32, value: f64) -> Self {
        self.key(field, BITS_64);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Adds `bytes` or a `string`.
    #[must_use]
    pub fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        self.key(field, BYTES);
        self.raw_varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Adds a message.
    #[must_use]
    pub fn message(self, field: u32, value: Self) -> Self {
        self.bytes(field, &value.0)
    }
}

/// A value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'m> {
    /// `int32`, `int64`, `uint64`, `bool` or an enum.
    Integer(u64),
    /// `double` or `fixed64`, as bits.
    Bits64(u64),
    /// `float` or `fixed32`, as bits.
    Bits32(u32),
    /// `bytes`, a `string`, a message or packed numbers.
    Bytes(&'m [u8]),
}

/// Error: the bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not a Protocol Buffers message")]
pub struct NotAMessage;

/// The fields of an encoded message, in their order.
#[derive(Debug, Clone)]
pub struct Fields<'m>(&'m [u8]);

impl<'m> Fields<'m> {
    /// The fields in these bytes.
    pub fn of(bytes: &'m [u8]) -> Self {
        Self(bytes)
    }

    fn take(&mut self, count: usize) -> Result<&'m [u8], NotAMessage> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(NotAMessage)?;
        self.0 = rest;
        Ok(taken)
    }

    /// A varint at the start of the bytes.
    pub fn varint(&mut self) -> Result<u64, NotAMessage> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(NotAMessage)
    }

    fn field(&mut self) -> Result<(u32, Value<'m>), NotAMessage> {
        let key = self.varint()?;
        let field = u32::try_from(key >> 3).map_err(|_| NotAMessage)?;
        let value = match (key & 7) as u32 {
            VARINT => Value::Integer(self.varint()?),
            BITS_64 => Value::Bits64(u64::from_le_bytes(array(self.take(8)?)?)),
            BITS_32 => Value::Bits32(u32::from_le_bytes(array(self.take(4)?)?)),
            BYTES => {
                let length = usize::try_from(self.varint()?).map_err(|_| NotAMessage)?;
                Value::Bytes(self.take(length)?)
            }
            _ => return Err(NotAMessage),
        };
        Ok((field, value))
    }

    /// Whether no field is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'m> Iterator for Fields<'m> {
    type Item = Result<(u32, Value<'m>), NotAMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

/// Bytes of a number.
pub fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], NotAMessage> {
    bytes.try_into().map_err(|_| NotAMessage)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the description of the encoding.
    #[test]
    fn messages_have_the_published_bytes() {
        assert_eq!(Message::default().integer(1, 150).into_bytes(), [0x08, 0x96, 0x01]);
        let text = Message::default().bytes(2, b"testing").into_bytes();
        assert_eq!(text, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        let inner = Message::default().message(3, Message::default().integer(1, 150)).into_bytes();
        assert_eq!(inner, [0x1a, 0x03, 0x08, 0x96, 0x01]);
    }

    #[test]
    fn fields_are_read_back() {
        let bytes = Message::default()
            .integer(1, u64::MAX)
            .double(2, -0.5)
            .bytes(300, b"x")
            .integer(4, 0)
            .into_bytes();
        let found: Result<Vec<_>, _> = Fields::of(&bytes).collect();
        assert_eq!(
            found.unwrap(),
            [
                (1, Value::Integer(u64::MAX)),
                (2, Value::Bits64((-0.5_f64).to_bits())),
                (300, Value::Bytes(b"x")),
                (4, Value::Integer(0))
            ]
        );
    }

    #[test]
    fn damaged_bytes_end_with_one_error() {
        for bytes in [&[0x08][..], &[0x12, 0x05, b'a'], &[0x0b], &[0xff; 11], &[0x09, 1, 2]] {
            let found: Vec<_> = Fields::of(bytes).collect();
            assert_eq!(found.last(), Some(&Err(NotAMessage)), "{bytes:?}");
            assert_eq!(found.iter().filter(|one| one.is_err()).count(), 1, "{bytes:?}");
        }
        let huge = [0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Fields::of(&huge).next(), Some(Err(NotAMessage)));
    }
}
