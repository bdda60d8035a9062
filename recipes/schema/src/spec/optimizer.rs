//! The `[train.optimizer]` block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Optimizers. Epsilon is always explicit, because defaults differ between frameworks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum OptimizerSpec {
    /// Adam (Kingma and Ba 2015), bias-corrected, with epsilon outside the root.
    Adam {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Epsilon, added to the root.
        epsilon: f64,
        /// Position of the bias correction relative to epsilon.
        #[serde(default)]
        epsilon_place: EpsilonPlace,
        /// d of the gradient g + d w, for every parameter, biases and norms included.
        /// This is PyTorch's L2 penalty, not decoupled weight decay.
        #[serde(default, skip_serializing_if = "is_zero")]
        weight_decay: f64,
    },
    /// TensorFlow's LazyAdam: embedding rows without a gradient keep their moments and weights.
    /// On a matrix that is also the output projection every row has a gradient, so this is Adam.
    LazyAdam {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Epsilon, added to the root.
        epsilon: f64,
        /// Position of the bias correction relative to epsilon.
        #[serde(default)]
        epsilon_place: EpsilonPlace,
    },
    /// Adam with decoupled weight decay (Loshchilov and Hutter 2019) as in PyTorch: w = (1 - lr d)
    /// w, then a step of Adam, bias-corrected, with epsilon outside the root. The decay is not part
    /// of the gradient, and not of the moments.
    Adamw {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Epsilon, added to the root.
        epsilon: f64,
        /// d: the weight decay, which the learning rate multiplies.
        weight_decay: f64,
        /// Parameters that decay.
        #[serde(default, skip_serializing_if = "DecayedParameters::are_all")]
        decayed: DecayedParameters,
    },
    /// NovoGrad (Ginsburg et al. 2019): momentum of gradients divided by their norm, with one norm
    /// per parameter tensor. Weight decay is added after the division, for every tensor, biases and
    /// norms included.
    Novograd {
        /// beta1: decay of the momentum.
        beta1: f64,
        /// beta2: decay of the squared norm.
        beta2: f64,
        /// Epsilon, added to the norm or to its square: see `variant`.
        epsilon: f64,
        /// d in m = beta1 m + (g / norm + d w).
        #[serde(default)]
        weight_decay: f64,
        /// Whether the term added to the momentum is multiplied by 1 - beta1.
        #[serde(default)]
        grad_averaging: bool,
        /// Formula: that of the paper, or that of the code behind the published scores.
        #[serde(default)]
        variant: NovogradVariant,
    },
    /// Gradient descent with momentum: v = m v + (g + d w), without dampening, and w = w - lr v.
    Sgd {
        /// m: the momentum.
        momentum: f64,
        /// d: the weight decay, for every parameter, biases and norms included (PyTorch).
        #[serde(default, skip_serializing_if = "is_zero")]
        weight_decay: f64,
        /// Nesterov's momentum as in PyTorch: w = w - lr (g + d w + m v).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        nesterov: bool,
        /// Quantity that the momentum accumulates: gradients or steps.
        #[serde(default, skip_serializing_if = "Velocity::is_of_gradients")]
        velocity: Velocity,
    },
    /// RMSProp, which divides gradients by the root of their mean square:
    /// a = rho a + (1 - rho) g^2, w = w - lr g / (sqrt(a) + epsilon), starting from a = 0 (Keras 2;
    /// PyTorch, where rho is `alpha`).
    Rmsprop {
        /// Decay of the mean square.
        rho: f64,
        /// Epsilon, added to the root.
        epsilon: f64,
    },
    /// Adadelta (Zeiler 2012): a = rho a + (1 - rho) g^2,
    /// u = g sqrt(d + epsilon) / sqrt(a + epsilon), d = rho d + (1 - rho) u^2, w = w - lr u,
    /// starting from a = d = 0 (Keras 2, PyTorch).
    Adadelta {
        /// Decay of both mean squares.
        rho: f64,
        /// Epsilon, added under both roots.
        epsilon: f64,
    },
    /// Adagrad (Duchi et al. 2011): a = a + g^2, w = w - lr g / sqrt(a), without an epsilon
    /// (TensorFlow's `AdagradOptimizer`).
    Adagrad {
        /// First value of a, above 0.
        initial_accumulator: f64,
    },
}

/// Parameters that AdamW decays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecayedParameters {
    /// All parameters, biases and norms included.
    #[default]
    All,
    /// Parameters of two or more dimensions: matrices, embeddings and kernels, but no biases and
    /// norms (GPT-2, nanoGPT).
    Matrices,
}

impl DecayedParameters {
    fn are_all(&self) -> bool {
        *self == Self::All
    }
}

/// Quantity that the momentum accumulates. Both give the same result at a constant learning rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Velocity {
    /// Gradients: v = m v + g, w = w - lr v (PyTorch).
    #[default]
    Gradients,
    /// Steps: v = m v + lr g, w = w - v (Caffe).
    Steps,
}

impl Velocity {
    fn is_of_gradients(&self) -> bool {
        *self == Self::Gradients
    }
}

/// Position of the bias correction of Adam relative to epsilon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EpsilonPlace {
    /// m̂ / (sqrt(v̂) + eps): the paper's algorithm 1, and PyTorch.
    #[default]
    CorrectedRoot,
    /// sqrt(1-b2^t)/(1-b1^t) m / (sqrt(v) + eps): TensorFlow and fairseq.
    RawRoot,
}

/// Formula of NovoGrad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NovogradVariant {
    /// The paper's formula: v = beta2 v + (1 - beta2) |g|^2, starting from v = |g|^2.
    /// The gradient is divided by sqrt(v) + eps.
    #[default]
    Published,
    /// OpenSeq2Seq's code, which never stores v.
    /// So v is the |g|^2 of the current update, and beta2 has no effect. The gradient is divided by
    /// sqrt(v + eps).
    AsCoded,
}

fn is_zero(x: &f64) -> bool {
    *x == 0.0
}
