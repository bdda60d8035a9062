//! A recipe file with its bases and parts, as a stack of layers.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::layer::Overlay;
use crate::load_error::LoadError;
use crate::nearest::did_you_mean;
use crate::origin::Origin;
use crate::sources::{Bases, Shelf};
use crate::split::Split;
use crate::tree::{self, Node};

/// Longest chain of bases.
const MOST_BASES: usize = 8;

/// A file together with its base, the base's own base, and so on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stack {
    /// The texts of the bases, nearest base first.
    pub(crate) base_texts: Vec<String>,
    /// The bodies, from the lowest base to this file. Each follows the parts that it uses.
    pub(crate) bodies: Vec<Node>,
    pub(crate) arms: Vec<Overlay>,
    /// The tiers that this file defines.
    pub(crate) tiers: Vec<Overlay>,
    /// The tiers of the bases, each from the nearest base that defines it, and sized for that
    /// base's model and data. A file inherits one with `inherit = true`.
    pub(crate) base_tiers: Vec<Overlay>,
}

impl Stack {
    /// The stack of a file's base. If the base cannot be read, this adds an error and returns
    /// `None`.
    pub(crate) fn of_base(
        (name, origin): (&str, &Origin),
        bases: Bases<'_>,
        depth: usize,
        shelf: &mut Shelf<'_>,
        found: &mut Diagnostics,
    ) -> Option<Self> {
        let mut refuse = |one: Diagnostic| found.push(one);
        if depth > MOST_BASES {
            let message = format!("more than {MOST_BASES} recipes are built upon one another");
            refuse(Diagnostic::new(origin.clone(), message).hint("is one of them its own base?"));
            return None;
        }
        let source = match bases.open(name, depth) {
            Ok(source) => source,
            Err(LoadError::Unknown { name, hint }) => {
                let message = format!("there is no recipe `{name}` to build upon");
                refuse(Diagnostic::new(origin.clone(), message).hint(hint));
                return None;
            }
            Err(other) => {
                refuse(Diagnostic::new(origin.clone(), other.to_string()));
                return None;
            }
        };
        let root = match tree::parse(&source.text, &source.file) {
            Ok(root) => root,
            Err(more) => {
                found.extend(more);
                return None;
            }
        };
        let mut own = Split::of(root, shelf, found);
        let below = match own.base.take() {
            Some((further, at)) => {
                let bases = match bases {
                    Bases::In(_) => Bases::In(&source.folder),
                    given => given,
                };
                Self::of_base((&further, &at), bases, depth + 1, shelf, found)?
            }
            None => Self::default(),
        };
        let mut stack = below.under(own, found);
        stack.base_texts.insert(0, source.text);
        Some(stack)
    }

    /// Adds a file on top.
    pub(crate) fn under(mut self, own: Split, found: &mut Diagnostics) -> Self {
        // A base's claims, its differences from its source, and the size of its vocabulary do not
        // apply to the derived recipe.
        for table in self.bodies.iter_mut().filter_map(Node::table_mut) {
            table.remove("claim");
            if let Some(about) = table.get_mut("recipe").and_then(Node::table_mut) {
                about.remove("differs");
                about.remove("vocabulary_rows");
            }
        }
        self.bodies.extend(own.parts);
        self.bodies.push(own.body);
        let overlays = self.arms.iter_mut().chain(&mut self.tiers);
        overlays.flat_map(|overlay| &mut overlay.layers).for_each(|layer| layer.inherited = true);
        for arm in own.arms {
            match self.arms.iter_mut().find(|known| known.name == arm.name) {
                Some(known) => known.layers.extend(arm.layers),
                None => self.arms.push(arm),
            }
        }
        let stated = |name: &str| self.tiers.iter().any(|tier| tier.name == name);
        self.base_tiers.retain(|tier| !stated(&tier.name));
        self.base_tiers.append(&mut self.tiers);
        self.tiers = own.tiers;
        for tier in &mut self.tiers {
            tier.bodies = self.bodies.len();
            let Some(origin) = &tier.inherit else { continue };
            match pick(&self.base_tiers, "tier", &tier.name, origin.clone()) {
                Ok(below) => tier.layers = below.layers.iter().chain(&tier.layers).cloned().collect(),
                Err(one) => {
                    let message = format!("there is no tier `{}` to inherit: no base states one", tier.name);
                    found.push(Diagnostic { message, ..one });
                }
            }
        }
        self
    }
}

/// The overlay with this name.
pub(crate) fn pick<'o>(
    overlays: &'o [Overlay],
    what: &str,
    name: &str,
    at: Origin,
) -> Result<&'o Overlay, Diagnostic> {
    overlays.iter().find(|overlay| overlay.name == name).ok_or_else(|| {
        let hint =
            did_you_mean(name, overlays.iter().map(|overlay| overlay.name.as_str()), &format!("{what}s"));
        Diagnostic::new(at, format!("the recipe has no {what} `{name}`")).hint(hint)
    })
}
