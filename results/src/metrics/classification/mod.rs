//! Classification: the share of records whose correct class is, or is not, among the first k; and
//! F1.
//!
//! A record has one of these forms:
//!
//! | form | meaning |
//! |---|---|
//! | `{"scores": [0.1, 2.5, -1]}` | a score per class, in class order; the highest ranks first |
//! | `{"classes": [3, 8, 1]}` | ranked classes, as numbers from 0 or names; the writer settled ties |
//! | `3`, `positive` | the single class that the model chose; an empty line counts as wrong |
//!
//! The reference is the correct class: `3`, a name, or `{"label": 3}`. A record may have a `label`
//! too, which must then be equal. `ties:` decides between equal scores: `first` ranks the lower
//! class first, as NumPy's argmax does; `last` ranks the higher one first, as scikit-learn's
//! `top_k_accuracy_score` does.

mod accuracy;
mod answer;
mod f1;
mod options;

pub use accuracy::{ACCURACY, ERROR, TOP1, TOP5, read_accuracy, read_error};
pub use answer::{Class, ClassRecord};
pub use f1::{F1, read_f1};
pub use options::{AccuracyOptions, F1Options, Share, Ties};
