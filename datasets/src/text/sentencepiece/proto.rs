//! Encodes a model as protocol-buffer bytes, with the fields of `sentencepiece_model.proto` that a
//! model needs.

use super::nmt_nfkc;
use crate::text::vocabulary::SpecialIds;

/// Contents of a trained model.
pub(super) struct ModelText<'m> {
    /// Pieces from id 4 on. Their scores are 0, -1, -2, ...
    pub pieces: &'m [String],
    /// Positions of the special pieces, which have the first four ids.
    pub specials: SpecialIds,
}

const TYPE_UNKNOWN: u64 = 2;
const TYPE_CONTROL: u64 = 3;
const MODEL_TYPE_BPE: u64 = 2;

impl ModelText<'_> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut model = Message::default();
        for id in 0..SpecialIds::COUNT {
            let kind = if id == self.specials.unknown { TYPE_UNKNOWN } else { TYPE_CONTROL };
            let piece = self.specials.symbol(id).unwrap_or("<unk>");
            model.message(1, Message::default().text(1, piece).float(2, 0.0).number(3, kind));
        }
        for (rank, piece) in self.pieces.iter().enumerate() {
            model.message(1, Message::default().text(1, piece).float(2, -(rank as f32)));
        }
        let pieces = self.pieces.len() as u64 + u64::from(SpecialIds::COUNT);
        let mut trainer = Message::default();
        trainer.number(3, MODEL_TYPE_BPE).number(4, pieces).float(10, 1.0);
        let SpecialIds { pad, begin, end, unknown } = self.specials;
        for (field, id) in [(40, unknown), (41, begin), (42, end), (43, pad)] {
            trainer.number(field, u64::from(id));
        }
        model.message(2, &trainer);
        let mut normalizer = Message::default();
        normalizer.text(1, "nmt_nfkc").bytes(2, &nmt_nfkc());
        // Dummy prefix, extra spaces removed, spaces escaped: the defaults, written explicitly.
        normalizer.number(3, 1).number(4, 1).number(5, 1);
        model.message(3, &normalizer);
        model.bytes
    }
}

#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn number(&mut self, field: u64, number: u64) -> &mut Self {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    fn float(&mut self, field: u64, number: f32) -> &mut Self {
        self.varint(field << 3 | 5);
        self.bytes.extend(number.to_le_bytes());
        self
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn text(&mut self, field: u64, text: &str) -> &mut Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(&mut self, field: u64, message: &Message) -> &mut Self {
        self.bytes(field, &message.bytes)
    }
}
