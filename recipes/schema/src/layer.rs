//! An arm or tier as layers over a body.

use crate::diagnostic::Diagnostics;
use crate::origin::Origin;
use crate::overlay;
use crate::tree::Node;

/// A named arm or tier. Its layers are those of the base, then its presets, then those of this
/// file.
#[derive(Debug, Clone)]
pub(crate) struct Overlay {
    pub(crate) name: String,
    pub(crate) layers: Vec<Layer>,
    /// For a tier: how many of the bodies belong to the file that defines it and to that file's
    /// bases.
    pub(crate) bodies: usize,
    /// For a tier with `inherit = true`: where that was written.
    pub(crate) inherit: Option<Origin>,
}

impl Overlay {
    /// Lays all layers over `root`.
    pub(crate) fn apply(&self, root: &mut Node, found: &mut Diagnostics) {
        for layer in &self.layers {
            let mut missing = Diagnostics::default();
            overlay::apply(root, &layer.node, &mut missing);
            if !layer.inherited {
                found.extend(missing);
            }
        }
    }
}

/// One layer of an arm or tier.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) node: Node,
    /// Whether the layer comes from the base or from a preset. Its `without` may then name missing
    /// keys, because the file above may have removed them from the body.
    pub(crate) inherited: bool,
}
