//! Recurrent encoders and decoders of tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DecoderPart, EncoderPart};
use crate::spec::{RecurrentBiases, RecurrentCell};
use crate::tasks::translation::{DecoderStart, TranslationModelSpec};
use crate::validate::Findings;

/// A stack of recurrent layers that reads tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecurrentEncoderSpec {
    /// Kind of the recurrent cell.
    pub cell: RecurrentCell,
    /// Number of layers.
    pub layers: u32,
    /// Number of units of a layer, in each direction.
    pub units: u32,
    /// Which layers also read the source backwards.
    pub directions: Directions,
    /// Layers from this one on, counted from 1, add their input to their output. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual_from: Option<u32>,
    /// Bias vectors and their initial values.
    pub biases: RecurrentBiases,
    /// Initial value of the forget gate's first bias. Absent: as `biases` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forget_bias: Option<f64>,
    /// Initialiser of weights.
    pub init: RecurrentInit,
    /// Dropout rate of each layer's input.
    pub dropout: f64,
    /// Dropout rate of the first layer's input. Absent: `dropout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_dropout: Option<f64>,
}

impl RecurrentEncoderSpec {
    /// Whether the outputs of both directions are concatenated.
    pub fn writes_both_directions(&self) -> bool {
        match self.directions {
            Directions::Forward => false,
            Directions::FirstLayerBoth => self.layers == 1,
            Directions::TwoStacks => true,
        }
    }
}

/// Which layers of an encoder also read the source backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// None: all layers read forwards only.
    Forward,
    /// The first layer reads in both directions; the second layer reads both outputs, concatenated
    /// (GNMT).
    FirstLayerBoth,
    /// Two independent stacks, one per direction, whose outputs are concatenated at the end
    /// (OpenSeq2Seq's bidirectional encoder).
    TwoStacks,
}

/// A stack of recurrent layers with attention that writes tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecurrentDecoderSpec {
    /// Kind of the recurrent cell.
    pub cell: RecurrentCell,
    /// Number of layers.
    pub layers: u32,
    /// Number of units of a layer.
    pub units: u32,
    /// Layers from this one on, counted from 1, add their input to their output. Absent: none.
    /// The context is not part of the added input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual_from: Option<u32>,
    /// Bias vectors and their initial values.
    pub biases: RecurrentBiases,
    /// Initial value of the forget gate's first bias. Absent: as `biases` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forget_bias: Option<f64>,
    /// Initialiser of weights, including those of the attention.
    pub init: RecurrentInit,
    /// Dropout rate of each layer's input, including the context.
    pub dropout: f64,
    /// Attention over the source's positions.
    pub attention: AttentionSpec,
    /// How the attention context is used.
    pub context: ContextUse,
    /// Initial states of the layers. Absent: zeros.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_state: Option<InitialState>,
    /// Whether the matrix W of input feeding has a bias, initially 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub combine_bias: bool,
    /// Dropout rate of the input of W in input feeding. Absent: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combine_dropout: Option<f64>,
    /// Whether the output projection has a bias.
    /// Only if `model.embedding.tied` is `none` or `inputs`.
    #[serde(default)]
    pub output_bias: bool,
    /// Input before the first target token.
    pub start: DecoderStart,
    /// Whether the target sequence itself begins with the begin token.
    #[serde(default)]
    pub begin_token_in_target: bool,
}

/// Attention: scores of the source's positions, turned into weights by softmax. The context is the
/// weighted sum of the encoder's outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AttentionSpec {
    /// v · tanh(W query + U memory) (Bahdanau et al. 2015).
    Additive {
        /// Number of rows of W and U.
        units: u32,
        /// Whether to use weight normalisation (Salimans and Kingma 2016), as in GNMT.
        /// The scores are then g v/|v| · tanh(W query + U memory + b). Initially g is units^-0.5
        /// and b is 0.
        normalized: bool,
    },
    /// query · U memory (Luong et al. 2015, "general").
    /// U has as many rows as the query has elements.
    Multiplicative {},
}

/// How a recurrent decoder uses the attention context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContextUse {
    /// The first layer's output is the query. Each layer above reads the context next to its input.
    /// Whole sequences are computed at once (NVIDIA's GNMT v2).
    UpperLayers,
    /// As `upper-layers`.
    /// The first layer also reads the previous step's context next to its input (OpenSeq2Seq's
    /// `gnmt_v2`).
    AllLayers,
    /// The last layer's output is the query, and the context alone is projected to the output.
    /// The first layer reads the previous step's context next to its input (TensorFlow's
    /// AttentionWrapper without an attention layer).
    Output,
    /// Input feeding (Luong et al. 2015): the last layer's output is the query. tanh(W [output;
    /// context]), `units` wide, is projected to the output, and is read by the first layer next to
    /// its following input.
    InputFeeding,
}

/// Initial states of a decoder's layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InitialState {
    /// Outputs and cells of all layers start as the encoder's output at the source's last token.
    /// Where the encoder concatenates both directions, and so is twice as wide, this is the output
    /// of its forward layer (JoeyNMT's `init_hidden: last`).
    LastOfEncoder,
}

/// Initialiser of the weights of recurrent layers and their attention.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RecurrentInit {
    /// Uniform in [-bound, bound).
    Uniform {
        /// Bound of the uniform distribution.
        bound: f64,
    },
    /// Xavier uniform (Glorot and Bengio 2010).
    /// Input and recurrent weights count as one matrix (TensorFlow's default).
    XavierUniform,
    /// Xavier uniform, where each of a gate's two matrices counts separately (JoeyNMT).
    XavierUniformOfGates,
    /// Uniform with bound units^-0.5 (PyTorch's default).
    Torch,
}

impl EncoderPart for RecurrentEncoderSpec {
    fn memory_width(&self, _: u32) -> u32 {
        if self.writes_both_directions() { self.units.saturating_mul(2) } else { self.units }
    }

    fn state_width(&self) -> Option<u32> {
        Some(self.units)
    }

    fn check(&self, width: u32, findings: &mut Findings<'_, '_>) {
        let stack = Stack {
            part: "model.encoder",
            cell: self.cell,
            sizes: [self.layers, self.units],
            residual_from: self.residual_from,
            forget_bias: self.forget_bias,
            init: self.init,
            dropout: self.dropout,
        };
        stack.check(width, self.directions == Directions::FirstLayerBoth, findings);
        if let Some(rate) = self.input_dropout {
            findings.share(rate, "model.encoder.input_dropout");
        }
    }

    fn keep_kinds(&mut self) {
        (self.layers, self.units, self.dropout, self.input_dropout) = (1, 1, 0.0, None);
        (self.residual_from, self.forget_bias) = (self.residual_from.map(|_| 1), None);
        (self.biases, self.init) = (self.biases.kind(), RecurrentInit::XavierUniform);
    }
}

impl DecoderPart for RecurrentDecoderSpec {
    fn start(&self) -> DecoderStart {
        self.start
    }

    fn begin_token_in_target(&self) -> bool {
        self.begin_token_in_target
    }

    fn output_bias(&self) -> bool {
        self.output_bias
    }

    fn projected_width(&self, model: &TranslationModelSpec) -> u32 {
        if self.context == ContextUse::Output { model.memory_width() } else { self.units }
    }

    fn context(&self) -> Option<ContextUse> {
        Some(self.context)
    }

    fn check(&self, model: &TranslationModelSpec, findings: &mut Findings<'_, '_>) {
        let stack = Stack {
            part: "model.decoder",
            cell: self.cell,
            sizes: [self.layers, self.units],
            residual_from: self.residual_from,
            forget_bias: self.forget_bias,
            init: self.init,
            dropout: self.dropout,
        };
        stack.check(model.width, false, findings);
        if let AttentionSpec::Additive { units, .. } = self.attention {
            findings.positive(u64::from(units), "model.decoder.attention.units");
        }
        combination(self, findings);
        if self.initial_state.is_some() {
            let path = "model.decoder.initial_state";
            match model.encoder.state_width() {
                Some(units) => findings.require(units == self.units, path, || {
                    format!("the encoder's states are {units} wide, the decoder's {}", self.units)
                }),
                None => findings.report(path, "the encoder has no states; it is not recurrent"),
            }
        }
    }

    fn keep_kinds(&mut self) {
        (self.layers, self.units, self.dropout, self.combine_dropout) = (1, 1, 0.0, None);
        (self.residual_from, self.forget_bias) = (self.residual_from.map(|_| 1), None);
        (self.biases, self.init) = (self.biases.kind(), RecurrentInit::XavierUniform);
        if let AttentionSpec::Additive { units, .. } = &mut self.attention {
            *units = 1;
        }
        self.begin_token_in_target = false;
    }
}

/// Checks the keys about the matrix W of input feeding.
fn combination(decoder: &RecurrentDecoderSpec, findings: &mut Findings<'_, '_>) {
    let feeds = decoder.context == ContextUse::InputFeeding;
    if let Some(rate) = decoder.combine_dropout {
        findings.share(rate, "model.decoder.combine_dropout");
    }
    for (there, key) in
        [(decoder.combine_bias, "combine_bias"), (decoder.combine_dropout.is_some(), "combine_dropout")]
    {
        findings.require(feeds || !there, &format!("model.decoder.{key}"), || {
            "the answer of the attention is combined with nothing; `context` is not \"input-feeding\""
                .to_owned()
        });
    }
}

/// Settings that recurrent encoders and decoders share.
struct Stack {
    part: &'static str,
    cell: RecurrentCell,
    /// Number of layers and of units.
    sizes: [u32; 2],
    residual_from: Option<u32>,
    forget_bias: Option<f64>,
    init: RecurrentInit,
    dropout: f64,
}

impl Stack {
    /// Checks the settings. `doubled`: the second layer's input is twice as wide as its output.
    fn check(&self, width: u32, doubled: bool, findings: &mut Findings<'_, '_>) {
        let Self { part, sizes: [layers, units], .. } = *self;
        findings.positive(u64::from(layers), &format!("{part}.layers"));
        findings.positive(u64::from(units), &format!("{part}.units"));
        findings.share(self.dropout, &format!("{part}.dropout"));
        if let RecurrentInit::Uniform { bound } = self.init {
            findings.above_zero(bound, &format!("{part}.init.bound"));
        }
        let gru = self.cell == RecurrentCell::Gru;
        findings.require(!(gru && self.forget_bias.is_some()), &format!("{part}.forget_bias"), || {
            "gated recurrent units have no forget gate".to_owned()
        });
        let path = format!("{part}.residual_from");
        match self.residual_from {
            Some(1) if width != units => {
                findings
                    .report(&path, format!("the first layer's input is {width} wide, its output {units}"));
            }
            Some(1 | 2) if doubled => {
                findings.report_with(
                    &path,
                    "the first layer writes both directions side by side: its and the second layer's inputs and outputs differ in width",
                    "residual_from = 3",
                );
            }
            Some(from) => findings.require((1..=layers).contains(&from), &path, || {
                format!("`{path}` is {from}; the layers are 1 to {layers}")
            }),
            None => {}
        }
    }
}
