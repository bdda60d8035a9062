//! Classification: the share of records whose right class is among the first k, or is not.
//!
//! A record is one of
//!
//! | form | meaning |
//! |---|---|
//! | `{"scores": [0.1, 2.5, -1]}` | a score of each class, in the order of classes; the highest is first |
//! | `{"classes": [3, 8, 1]}` | classes from the likeliest on, as numbers from 0 or as names; the writer settled ties |
//! | `3`, `positive` | the one class that the model chose; an empty line is no choice, and wrong |
//!
//! Its reference is the right class: `3`, a name, or `{"label": 3}`. A record may have a `label` too, which then must be the same. Equal
//! scores are settled as `ties:` says: `first` puts the lower class first, as the argmax of NumPy does; `last` the higher, as
//! scikit-learn's `top_k_accuracy_score` does.

mod accuracy;
mod answer;

pub use accuracy::{ACCURACY, AccuracyOptions, ERROR, Share, TOP1, TOP5, Ties};
pub use answer::{Class, ClassRecord};
