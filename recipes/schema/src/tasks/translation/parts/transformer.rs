//! Transformer stacks that read and write tokens (Vaswani et al. 2017).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DecoderPart, EncoderPart};
use crate::spec::LinearInit;
use crate::tasks::translation::{DecoderStart, TranslationModelSpec};
use crate::validate::Findings;

/// The encoder's stack of Transformer layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransformerSpec {
    /// Number of layers.
    pub layers: u32,
    /// Number of attention heads. It divides the model's width.
    pub heads: u32,
    /// Inner width of the feed-forward part.
    pub ffn: u32,
    /// Position of the norm in a layer. `pre` adds a norm after the last layer.
    pub norm: NormPlace,
    /// Epsilon of the norms, added to the variance.
    pub norm_epsilon: f64,
    /// Whether the four attention projections have biases.
    pub attention_bias: bool,
    /// Initialiser of the projections.
    pub init: LinearInit,
    /// Dropout rate of each sub-layer's output.
    pub dropout: f64,
    /// Dropout rate of the attention weights.
    pub attention_dropout: f64,
    /// Dropout rate after the feed-forward activation.
    pub activation_dropout: f64,
    /// Whether padding is removed before the feed-forward part (OpenSeq2Seq's encoder).
    /// The result is the same, with less computation.
    #[serde(default)]
    pub remove_padding: bool,
}

/// The decoder's stack of Transformer layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransformerDecoderSpec {
    /// Number of layers.
    pub layers: u32,
    /// Number of attention heads. It divides the model's width.
    pub heads: u32,
    /// Inner width of the feed-forward part.
    pub ffn: u32,
    /// Position of the norm in a layer. `pre` adds a norm after the last layer.
    pub norm: NormPlace,
    /// Epsilon of the norms, added to the variance.
    pub norm_epsilon: f64,
    /// Whether the attention projections have biases.
    pub attention_bias: bool,
    /// Initialiser of the projections.
    pub init: LinearInit,
    /// Dropout rate of each sub-layer's output.
    pub dropout: f64,
    /// Dropout rate of the attention weights.
    pub attention_dropout: f64,
    /// Dropout rate after the feed-forward activation.
    pub activation_dropout: f64,
    /// Input before the first target token.
    pub start: DecoderStart,
    /// Whether the target sequence itself begins with the begin token.
    /// The model then learns to write it (OpenSeq2Seq's `use_start_token`).
    #[serde(default)]
    pub begin_token_in_target: bool,
}

/// Position of the norm in a Transformer layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NormPlace {
    /// x + f(norm(x)).
    Pre,
    /// norm(x + f(x)).
    Post,
}

impl EncoderPart for TransformerSpec {
    fn check(&self, width: u32, findings: &mut Findings<'_, '_>) {
        let rates = [self.dropout, self.attention_dropout, self.activation_dropout];
        let sizes = [self.layers, self.heads, self.ffn];
        check("model.encoder", width, sizes, self.norm_epsilon, rates, findings);
    }

    fn keep_kinds(&mut self) {
        (self.layers, self.heads, self.ffn, self.norm_epsilon) = (1, 1, 1, 0.0);
        (self.dropout, self.attention_dropout, self.activation_dropout) = (0.0, 0.0, 0.0);
        self.init = LinearInit::XavierUniform;
        // Removing padding saves computation and does not change the result.
        self.remove_padding = false;
    }
}

impl DecoderPart for TransformerDecoderSpec {
    fn start(&self) -> DecoderStart {
        self.start
    }

    fn begin_token_in_target(&self) -> bool {
        self.begin_token_in_target
    }

    fn check(&self, model: &TranslationModelSpec, findings: &mut Findings<'_, '_>) {
        let rates = [self.dropout, self.attention_dropout, self.activation_dropout];
        let sizes = [self.layers, self.heads, self.ffn];
        check("model.decoder", model.width, sizes, self.norm_epsilon, rates, findings);
    }

    fn keep_kinds(&mut self) {
        (self.layers, self.heads, self.ffn, self.norm_epsilon) = (1, 1, 1, 0.0);
        (self.dropout, self.attention_dropout, self.activation_dropout) = (0.0, 0.0, 0.0);
        self.init = LinearInit::XavierUniform;
        // Whether the target starts with a begin token is a property of the data.
        self.begin_token_in_target = false;
    }
}

fn check(
    part: &str,
    width: u32,
    [layers, heads, ffn]: [u32; 3],
    epsilon: f64,
    rates: [f64; 3],
    findings: &mut Findings<'_, '_>,
) {
    for (value, key) in [(layers, "layers"), (heads, "heads"), (ffn, "ffn")] {
        findings.positive(u64::from(value), &format!("{part}.{key}"));
    }
    findings.require(heads == 0 || width.is_multiple_of(heads), &format!("{part}.heads"), || {
        format!("{heads} heads do not divide the model width {width}")
    });
    findings.above_zero(epsilon, &format!("{part}.norm_epsilon"));
    for (rate, key) in rates.into_iter().zip(["dropout", "attention_dropout", "activation_dropout"]) {
        findings.share(rate, &format!("{part}.{key}"));
    }
}
