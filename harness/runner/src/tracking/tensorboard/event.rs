//! TensorBoard events: encoding of scalars and texts, decoding of scalars.
//!
//! Sources of the field numbers, at TensorBoard 2.20: `tensorboard/compat/proto/event.proto`
//! (`Event`), `summary.proto` (`Summary`, `SummaryMetadata`), `tensor.proto` (`TensorProto`),
//! `tensor_shape.proto` and `types.proto` (`DataType`).

use half::{bf16, f16};

use super::wire::{Fields, Message, NotAMessage, Value, array};

/// Version of the format, in the first event of a file.
const VERSION: &str = "brain.Event:2";

/// Fields of `Event`.
mod envelope {
    pub const WALL_TIME: u32 = 1;
    pub const STEP: u32 = 2;
    pub const FILE_VERSION: u32 = 3;
    pub const SUMMARY: u32 = 5;
}

/// The only field of `Summary`, and those of `Summary.Value`.
mod summary {
    pub const VALUE: u32 = 1;
    pub const TAG: u32 = 1;
    pub const SIMPLE_VALUE: u32 = 2;
    pub const TENSOR: u32 = 8;
    pub const METADATA: u32 = 9;
}

/// Fields of `SummaryMetadata` and of its `PluginData`, and values of `DataClass`.
mod metadata {
    pub const PLUGIN_DATA: u32 = 1;
    pub const PLUGIN_NAME: u32 = 1;
    pub const DATA_CLASS: u32 = 4;
    pub const SCALAR: u64 = 1;
    pub const TENSOR: u64 = 2;
}

/// Fields of `TensorProto`, and values of `DataType`.
mod tensor {
    pub const DTYPE: u32 = 1;
    pub const SHAPE: u32 = 2;
    pub const CONTENT: u32 = 4;
    pub const FLOAT_VAL: u32 = 5;
    pub const DOUBLE_VAL: u32 = 6;
    pub const INT_VAL: u32 = 7;
    pub const STRING_VAL: u32 = 8;
    pub const INT64_VAL: u32 = 10;
    pub const HALF_VAL: u32 = 13;
    pub const FLOAT: u64 = 1;
    pub const DOUBLE: u64 = 2;
    pub const INT32: u64 = 3;
    pub const STRING: u64 = 7;
    pub const INT64: u64 = 9;
    pub const BFLOAT16: u64 = 14;
    pub const HALF: u64 = 19;
}

/// The first event of a file. `time` is in seconds since 1970.
pub fn version(time: f64) -> Vec<u8> {
    let event = Message::default().double(envelope::WALL_TIME, time);
    event.bytes(envelope::FILE_VERSION, VERSION.as_bytes()).into_bytes()
}

/// An event with scalars of one step, as `tf.summary.scalar` writes them: FP32.
pub fn scalars<'v>(time: f64, step: u64, values: impl IntoIterator<Item = (&'v str, f64)>) -> Vec<u8> {
    let value = |(tag, value): (&str, f64)| {
        let tensor = Message::default().integer(tensor::DTYPE, tensor::FLOAT);
        let tensor = tensor.bytes(tensor::SHAPE, &[]).bytes(tensor::FLOAT_VAL, &(value as f32).to_le_bytes());
        of_plugin(tag, ("scalars", metadata::SCALAR), tensor)
    };
    of_step(time, step, values.into_iter().map(value))
}

/// An event with texts in Markdown, as `tf.summary.text` writes them.
pub fn texts<'v>(time: f64, step: u64, values: impl IntoIterator<Item = (&'v str, String)>) -> Vec<u8> {
    let value = |(tag, text): (&str, String)| {
        let tensor = Message::default().integer(tensor::DTYPE, tensor::STRING);
        let tensor = tensor.bytes(tensor::SHAPE, &[]).bytes(tensor::STRING_VAL, text.as_bytes());
        of_plugin(tag, ("text", metadata::TENSOR), tensor)
    };
    of_step(time, step, values.into_iter().map(value))
}

fn of_plugin(tag: &str, (plugin, class): (&str, u64), tensor: Message) -> Message {
    let plugin = Message::default().bytes(metadata::PLUGIN_NAME, plugin.as_bytes());
    let metadata =
        Message::default().message(metadata::PLUGIN_DATA, plugin).integer(metadata::DATA_CLASS, class);
    let value = Message::default().bytes(summary::TAG, tag.as_bytes());
    value.message(summary::TENSOR, tensor).message(summary::METADATA, metadata)
}

fn of_step(time: f64, step: u64, values: impl Iterator<Item = Message>) -> Vec<u8> {
    let summary = values.fold(Message::default(), |summary, value| summary.message(summary::VALUE, value));
    let event = Message::default().double(envelope::WALL_TIME, time).integer(envelope::STEP, step);
    event.message(envelope::SUMMARY, summary).into_bytes()
}

/// A scalar of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar<'e> {
    pub tag: &'e str,
    pub value: f64,
}

/// The step of an event and its scalars: both those of `tf.summary.scalar` (tensors with one
/// number) and those of TensorFlow 1, PyTorch and JAX (`simple_value`). Other values are left out.
///
/// # Errors
/// The bytes are not an event.
pub fn read(bytes: &[u8]) -> Result<(u64, Vec<Scalar<'_>>), NotAMessage> {
    let (mut step, mut found) = (0, Vec::new());
    for field in Fields::of(bytes) {
        match field? {
            (envelope::STEP, Value::Integer(number)) => step = number,
            (envelope::SUMMARY, Value::Bytes(summary)) => {
                for value in Fields::of(summary) {
                    if let (summary::VALUE, Value::Bytes(value)) = value? {
                        found.extend(scalar(value)?);
                    }
                }
            }
            _ => {}
        }
    }
    Ok((step, found))
}

fn scalar(bytes: &[u8]) -> Result<Option<Scalar<'_>>, NotAMessage> {
    let (mut tag, mut found) = (None, None);
    for field in Fields::of(bytes) {
        match field? {
            (summary::TAG, Value::Bytes(text)) => tag = std::str::from_utf8(text).ok(),
            (summary::SIMPLE_VALUE, Value::Bits32(bits)) => found = Some(f64::from(f32::from_bits(bits))),
            (summary::TENSOR, Value::Bytes(bytes)) => found = number(bytes)?,
            _ => {}
        }
    }
    Ok(tag.zip(found).map(|(tag, value)| Scalar { tag, value }))
}

/// The number of a tensor that has exactly one.
fn number(bytes: &[u8]) -> Result<Option<f64>, NotAMessage> {
    let (mut dtype, mut content, mut listed) = (0, None, None);
    for field in Fields::of(bytes) {
        match field? {
            (tensor::DTYPE, Value::Integer(number)) => dtype = number,
            (tensor::CONTENT, Value::Bytes(bytes)) => content = Some(bytes),
            (tensor::FLOAT_VAL, Value::Bits32(bits)) => listed = Some(f64::from(f32::from_bits(bits))),
            (tensor::DOUBLE_VAL, Value::Bits64(bits)) => listed = Some(f64::from_bits(bits)),
            (tensor::FLOAT_VAL, Value::Bytes(bytes)) => {
                listed = array(bytes).ok().map(|bytes| f64::from(f32::from_le_bytes(bytes)));
            }
            (tensor::DOUBLE_VAL, Value::Bytes(bytes)) => listed = array(bytes).ok().map(f64::from_le_bytes),
            (tensor::INT_VAL | tensor::INT64_VAL, Value::Integer(number)) => {
                listed = Some(number.cast_signed() as f64);
            }
            (tensor::HALF_VAL, Value::Integer(bits)) => listed = half(dtype, bits),
            (tensor::INT_VAL | tensor::INT64_VAL | tensor::HALF_VAL, Value::Bytes(bytes)) => {
                let mut packed = Fields::of(bytes);
                let bits = packed.varint()?;
                let one = packed.is_empty();
                let number = || match dtype {
                    tensor::HALF | tensor::BFLOAT16 => half(dtype, bits),
                    _ => Some(bits.cast_signed() as f64),
                };
                listed = if one { number() } else { None };
            }
            _ => {}
        }
    }
    Ok(match (dtype, content) {
        (tensor::FLOAT, Some(bytes)) => array(bytes).ok().map(|bytes| f64::from(f32::from_le_bytes(bytes))),
        (tensor::DOUBLE, Some(bytes)) => array(bytes).ok().map(f64::from_le_bytes),
        (tensor::INT32, Some(bytes)) => array(bytes).ok().map(|bytes| f64::from(i32::from_le_bytes(bytes))),
        (tensor::INT64, Some(bytes)) => array(bytes).ok().map(|bytes| i64::from_le_bytes(bytes) as f64),
        (tensor::HALF | tensor::BFLOAT16, Some(bytes)) => {
            array(bytes).ok().and_then(|bytes| half(dtype, u64::from(u16::from_le_bytes(bytes))))
        }
        (tensor::STRING, _) => None,
        _ => listed,
    })
}

fn half(dtype: u64, bits: u64) -> Option<f64> {
    let bits = u16::try_from(bits).ok()?;
    match dtype {
        tensor::HALF => Some(f16::from_bits(bits).to_f64()),
        tensor::BFLOAT16 => Some(bf16::from_bits(bits).to_f64()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_read_back_in_fp32() {
        let event = scalars(12.5, 7, [("train/loss", 0.1), ("train/lr", 1e-4)]);
        let (step, found) = read(&event).unwrap();
        assert_eq!(step, 7);
        let due = [("train/loss", 0.1_f32), ("train/lr", 1e-4)];
        let due = due.map(|(tag, value)| Scalar { tag, value: f64::from(value) });
        assert_eq!(found, due);
        assert_eq!(read(&texts(0.0, 3, [("note", "text".to_owned())])).unwrap(), (3, Vec::new()));
        assert_eq!(read(&version(0.0)).unwrap(), (0, Vec::new()));
    }

    /// An event with a tensor in this form.
    fn with(tensor: Message) -> Vec<u8> {
        let value = Message::default().bytes(summary::TAG, b"x").message(summary::TENSOR, tensor);
        of_step(0.0, 1, [value].into_iter())
    }

    #[test]
    fn numbers_of_every_usual_type_and_form_are_read() {
        let of = |dtype: u64| Message::default().integer(tensor::DTYPE, dtype);
        let read = |tensor: Message| read(&with(tensor)).unwrap().1.first().map(|scalar| scalar.value);
        let content = |dtype: u64, bytes: &[u8]| read(of(dtype).bytes(tensor::CONTENT, bytes));
        assert_eq!(content(tensor::FLOAT, &1.5_f32.to_le_bytes()), Some(1.5));
        assert_eq!(content(tensor::DOUBLE, &0.1_f64.to_le_bytes()), Some(0.1));
        assert_eq!(content(tensor::INT64, &(-3_i64).to_le_bytes()), Some(-3.0));
        assert_eq!(content(tensor::BFLOAT16, &bf16::from_f32(2.5).to_le_bytes()), Some(2.5));
        assert_eq!(content(tensor::FLOAT, &[0; 8]), None, "two numbers");
        assert_eq!(read(of(tensor::DOUBLE).double(tensor::DOUBLE_VAL, 0.1)), Some(0.1));
        assert_eq!(read(of(tensor::INT32).bytes(tensor::INT_VAL, &[42])), Some(42.0));
        let half_bits = u64::from(f16::from_f32(0.5).to_bits());
        assert_eq!(read(of(tensor::HALF).integer(tensor::HALF_VAL, half_bits)), Some(0.5));
        assert_eq!(read(of(tensor::FLOAT).bytes(tensor::FLOAT_VAL, &[0; 8])), None, "two numbers");
        assert_eq!(read(of(tensor::STRING).bytes(tensor::STRING_VAL, b"text")), None);
    }

    #[test]
    fn damaged_events_are_errors() {
        let event = scalars(0.0, 1, [("x", 1.0)]);
        for cut in 1..event.len() {
            // Fields that end at the cut are an event too.
            if let Ok((_, found)) = read(&event[..cut]) {
                assert_eq!(found, [], "{cut}");
            }
        }
        assert!(read(b"no event").is_err());
    }
}
