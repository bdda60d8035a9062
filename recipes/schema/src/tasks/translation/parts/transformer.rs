//! Transformer stacks that read and write tokens (Vaswani et al. 2017).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DecoderPart, EncoderPart};
use crate::spec::LinearInit;
use crate::tasks::translation::{DecoderStart, TranslationModelSpec};
use crate::validate::Findings;

/// Writes the struct of a stack: the settings that both sides have, then its own.
/// (`serde(flatten)` would allow unknown keys.)
macro_rules! stacks {
    ($(
        $(#[$about:meta])+
        $name:ident { $($(#[$of_own:meta])+ $own:ident: $type:ty,)+ }
    )+) => {$(
        $(#[$about])+
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
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
            $($(#[$of_own])+ pub $own: $type,)+
        }

        impl $name {
            /// Checks the settings that both sides have. `part` is the block in the recipe, `width`
            /// the width of the model.
            fn check_shared(&self, part: &str, width: u32, findings: &mut Findings<'_, '_>) {
                for (value, key) in [(self.layers, "layers"), (self.heads, "heads"), (self.ffn, "ffn")] {
                    findings.positive(u64::from(value), &format!("{part}.{key}"));
                }
                let heads = self.heads;
                findings.require(heads == 0 || width.is_multiple_of(heads), &format!("{part}.heads"), || {
                    format!("{heads} heads do not divide the model width {width}")
                });
                findings.above_zero(self.norm_epsilon, &format!("{part}.norm_epsilon"));
                for (rate, key) in [
                    (self.dropout, "dropout"),
                    (self.attention_dropout, "attention_dropout"),
                    (self.activation_dropout, "activation_dropout"),
                ] {
                    findings.share(rate, &format!("{part}.{key}"));
                }
            }

            /// Sets the sizes, rates and initialisers that both sides have to fixed values.
            fn keep_shared_kinds(&mut self) {
                (self.layers, self.heads, self.ffn, self.norm_epsilon) = (1, 1, 1, 0.0);
                (self.dropout, self.attention_dropout, self.activation_dropout) = (0.0, 0.0, 0.0);
                self.init = LinearInit::XavierUniform;
            }
        }
    )+};
}

stacks! {
    /// The encoder's stack of Transformer layers.
    TransformerSpec {
        /// Whether padding is removed before the feed-forward part (OpenSeq2Seq's encoder).
        /// The result is the same, with less computation.
        #[serde(default)]
        remove_padding: bool,
    }
    /// The decoder's stack of Transformer layers.
    TransformerDecoderSpec {
        /// Input before the first target token.
        start: DecoderStart,
        /// Whether the target sequence itself begins with the begin token.
        /// The model then learns to write it (OpenSeq2Seq's `use_start_token`).
        #[serde(default)]
        begin_token_in_target: bool,
    }
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
        self.check_shared("model.encoder", width, findings);
    }

    fn keep_kinds(&mut self) {
        self.keep_shared_kinds();
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
        self.check_shared("model.decoder", model.width, findings);
    }

    fn keep_kinds(&mut self) {
        self.keep_shared_kinds();
        // Whether the target starts with a begin token is a property of the data.
        self.begin_token_in_target = false;
    }
}
