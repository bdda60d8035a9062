//! Recipes: schema, parsing, validation, and the embedded recipes themselves. Nothing in this crate
//! runs a model.
//!
//! ```
//! use zoo_recipes::{Document, Selection};
//! let document = Document::load("reversal-transformer")?;
//! let resolved = document.resolve(&Selection::arm("fp32"))?;
//! assert!(resolved.reproduces());
//! assert_eq!(resolved.recipe.train.max_updates, Some(800));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod atomic;
pub mod spec;
pub mod untrusted;

mod check;
mod diagnostic;
mod document;
mod forms;
mod layer;
mod load_error;
mod nearest;
mod origin;
mod overlay;
mod overrides;
mod registry;
mod resolve;
mod schema;
mod smoke;
mod sources;
mod split;
mod stack;
pub mod tasks;
mod tree;
mod validate;

pub use diagnostic::{Diagnostic, Diagnostics};
pub use document::Document;
pub use load_error::{LoadError, is_path};
pub use nearest::nearest;
pub use origin::Origin;
pub use registry::{Embedded, EmbeddedPart, embedded, find, names, parts};
pub use resolve::{Difference, Resolved, Selection, hash_of_arms};
pub use schema::{schema, schema_text};
pub use spec::*;
pub use tasks::*;
pub use validate::Problem;
