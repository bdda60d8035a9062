//! Weights of one model for the parameters of another one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use zoo_models::parameters::{self, ParameterValues};
use zoo_recipes::TakenSpec;

/// Reason why weights could not be taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// The weights have no parameter at a path.
    #[error(
        "the weights have no parameter `{from}`, which `train.transfer` takes\nhint: they have {known}; are they of the recipe that it names?"
    )]
    Missing {
        /// The path.
        from: String,
        /// First names of the paths that there are.
        known: String,
    },
    /// The model has no parameter for one that is taken.
    #[error(
        "`train.transfer` takes `{from}` for `{to}`, which the model does not have\nhint: the model has {known}"
    )]
    Unknown {
        /// Path in the weights.
        from: String,
        /// Path in the model.
        to: String,
        /// First names of the model's paths.
        known: String,
    },
    /// A parameter has another shape.
    #[error(
        "`train.transfer` takes `{from}`, which is {found:?}, for `{to}`, which is {expected:?}\nhint: leave it out of `train.transfer.parameters`, or give both models the same sizes"
    )]
    Shape {
        /// Path in the weights.
        from: String,
        /// Path in the model.
        to: String,
        /// Shape in the weights.
        found: Vec<usize>,
        /// Shape in the model.
        expected: Vec<usize>,
    },
}

/// The parts of a model that have weights of another one, and those that have not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// Paths of the other model and of this one.
    pub taken: Vec<(String, String)>,
    /// Paths of the other model that were not taken.
    pub left: Vec<String>,
    /// Paths of this model that keep their fresh weights.
    pub fresh: Vec<String>,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modules = |paths: &mut dyn Iterator<Item = &String>| {
            let modules: BTreeSet<&str> = paths.map(|path| module_of(path)).collect();
            match modules.is_empty() {
                true => "nothing".to_owned(),
                false => modules.into_iter().collect::<Vec<_>>().join(", "),
            }
        };
        write!(
            f,
            "taken: {} ({} parameters); not taken: {}; fresh here: {}",
            modules(&mut self.taken.iter().map(|(from, _)| from)),
            self.taken.len(),
            modules(&mut self.left.iter()),
            modules(&mut self.fresh.iter())
        )
    }
}

/// The module of a parameter: its path without the last name.
fn module_of(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(module, _)| module)
}

/// Whether a path is another one or below it; the rest is what follows it.
fn below<'p>(path: &'p str, of: &str) -> Option<&'p str> {
    path.strip_prefix(of).filter(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The different first names of paths.
fn first_names<'p>(paths: impl Iterator<Item = &'p str>) -> String {
    let names: BTreeSet<&str> = paths.map(|path| path.split('.').next().unwrap_or(path)).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Puts the parameters that `parameters` names into a model. The other ones are not changed.
///
/// # Errors
/// A named parameter is missing on one of the sides, or has another shape.
pub fn transfer<M: Module>(
    model: M,
    weights: &[ParameterValues],
    parameters: &[TakenSpec],
) -> Result<(M, Taken), TransferError> {
    let shapes: BTreeMap<String, Vec<usize>> = parameters::shapes(&model).into_iter().collect();
    let mut values: BTreeMap<String, &ParameterValues> = BTreeMap::new();
    let mut found = Taken::default();
    for TakenSpec { from, to } in parameters {
        let mut any = false;
        for value in weights {
            let Some(rest) = below(&value.path, from) else { continue };
            any = true;
            let target = format!("{to}{rest}");
            let Some(expected) = shapes.get(&target) else {
                let known = first_names(shapes.keys().map(String::as_str));
                return Err(TransferError::Unknown { from: value.path.clone(), to: target, known });
            };
            if *expected != value.shape {
                let (found, expected) = (value.shape.clone(), expected.clone());
                return Err(TransferError::Shape { from: value.path.clone(), to: target, found, expected });
            }
            found.taken.push((value.path.clone(), target.clone()));
            values.insert(target, value);
        }
        if !any {
            let known = first_names(weights.iter().map(|value| value.path.as_str()));
            return Err(TransferError::Missing { from: from.clone(), known });
        }
    }
    let is_taken = |path: &str| found.taken.iter().any(|(from, _)| from == path);
    found.left = weights.iter().map(|value| value.path.clone()).filter(|path| !is_taken(path)).collect();
    found.fresh = shapes.keys().filter(|path| !values.contains_key(*path)).cloned().collect();
    let model = parameters::update(model, |path, old| match values.get(path) {
        Some(value) => {
            let numbers = value.values.clone();
            let count = numbers.len();
            Tensor::from_data(TensorData::new(numbers, [count]), &old.device())
        }
        None => old,
    });
    Ok((model, found))
}

#[cfg(test)]
mod tests {
    use burn::module::Param;
    use burn::tensor::Device;

    use super::*;

    #[derive(Module, Debug)]
    struct Matrix {
        weight: Param<Tensor<2>>,
        bias: Param<Tensor<1>>,
    }

    #[derive(Module, Debug)]
    struct Stack {
        layers: Vec<Matrix>,
        output: Matrix,
    }

    fn stack(value: f32, outputs: usize) -> Stack {
        let device = Device::flex();
        let matrix = |rows: usize| Matrix {
            weight: Param::from_tensor(Tensor::full([rows, 2], value, &device)),
            bias: Param::from_tensor(Tensor::full([rows], value, &device)),
        };
        Stack { layers: vec![matrix(2), matrix(2)], output: matrix(outputs) }
    }

    fn taken(from: &str, to: &str) -> TakenSpec {
        TakenSpec { from: from.into(), to: to.into() }
    }

    fn run(parameters: &[TakenSpec]) -> Result<(Vec<(String, f32)>, Taken), TransferError> {
        let weights = parameters::export(&stack(3.0, 4));
        let (model, found) = transfer(stack(1.0, 5), &weights, parameters)?;
        let values = parameters::export(&model).into_iter().map(|value| (value.path, value.values[0]));
        Ok((values.collect(), found))
    }

    #[test]
    fn named_parameters_are_taken_and_all_others_stay() {
        let (values, found) =
            run(&[taken("layers.0", "layers.1"), taken("layers.1.bias", "layers.0.bias")]).unwrap();
        let due = [
            ("layers.0.weight", 1.0),
            ("layers.0.bias", 3.0),
            ("layers.1.weight", 3.0),
            ("layers.1.bias", 3.0),
            ("output.weight", 1.0),
            ("output.bias", 1.0),
        ];
        assert_eq!(values, due.map(|(path, value)| (path.to_owned(), value)));
        assert_eq!(found.left, ["layers.1.weight", "output.weight", "output.bias"]);
        assert_eq!(
            found.to_string(),
            "taken: layers.0, layers.1 (3 parameters); not taken: layers.1, output; fresh here: layers.0, output"
        );
        let (values, found) = run(&[]).unwrap();
        assert!(values.iter().all(|(_, value)| *value == 1.0));
        assert!(
            found.to_string().starts_with("taken: nothing (0 parameters); not taken: layers.0, "),
            "{found}"
        );
    }

    #[test]
    fn what_cannot_be_taken_is_named_with_its_sizes() {
        for (from, to, due) in [
            ("layers.2", "layers.0", "the weights have no parameter `layers.2`"),
            ("layer", "layers.0", "hint: they have layers, output;"),
            (
                "layers.0",
                "layers.2",
                "takes `layers.0.weight` for `layers.2.weight`, which the model does not have",
            ),
            ("layers.0", "stack", "hint: the model has layers, output"),
            (
                "output",
                "output",
                "takes `output.weight`, which is [4, 2], for `output.weight`, which is [5, 2]",
            ),
        ] {
            let error = run(&[taken(from, to)]).unwrap_err().to_string();
            assert!(error.contains(due), "{error}\n{due}");
        }
    }
}
