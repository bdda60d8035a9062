//! Groups of parameters whose gradients are scaled or clipped separately.

use zoo_recipes::{GradientGroupSpec, begins_with};

use crate::error::TrainError;
use crate::flat::Magnitude;

/// Checks that each of `names`, which the recipe's `key` gives, is the beginning of a parameter's
/// path.
///
/// # Errors
/// A name does not begin the path of any parameter.
pub(crate) fn check_names<'n>(
    key: &str,
    names: impl IntoIterator<Item = &'n String>,
    parameters: &[(String, Vec<usize>)],
) -> Result<(), TrainError> {
    for name in names {
        if !parameters.iter().any(|(path, _)| begins_with(path, name)) {
            let known: Vec<&str> = parameters.iter().map(|(path, _)| path.as_str()).collect();
            return Err(TrainError::Settings(format!(
                "the model has no parameter `{name}`, which `{key}` names; it has {}",
                known.join(", ")
            )));
        }
    }
    Ok(())
}

/// Factor of the gradient of each parameter: 1 outside of the groups.
///
/// # Errors
/// A group has no parameter.
pub(crate) fn group_factors(
    groups: &[GradientGroupSpec],
    paths: &[&str],
    magnitudes: &[Magnitude],
) -> Result<Vec<f64>, TrainError> {
    let mut factors = vec![1.0; paths.len()];
    for group in groups {
        let members = || (0..paths.len()).filter(|at| begins_with(paths[*at], &group.parameters));
        if members().next().is_none() {
            let known = paths.join(", ");
            return Err(TrainError::Settings(format!(
                "the model has no parameter `{}` with a gradient, which `train.groups` names; it has {known}",
                group.parameters
            )));
        }
        let norm = members().map(|at| magnitudes[at].square_sum).sum::<f64>().sqrt();
        let clip = group.clip_norm.map_or(1.0, |limit| if norm > limit { limit / norm } else { 1.0 });
        members().for_each(|at| factors[at] = clip * group.factor.unwrap_or(1.0));
    }
    Ok(factors)
}

/// Whether a parameter is a bias, judged by its name.
pub fn is_bias(path: &str) -> bool {
    path.rsplit('.').next().is_some_and(|name| name.starts_with("bias"))
}

/// Whether a parameter belongs to an LSTM or GRU layer, judged by its name.
pub fn is_recurrent(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or(path);
    ["weight_ih", "weight_hh", "weight_hr", "bias_ih", "bias_hh"].contains(&name)
}

/// Whether a matrix is an `embedding` or its `weight`, judged by its name.
pub fn is_embedding(path: &str) -> bool {
    path.strip_suffix(".weight").unwrap_or(path).rsplit('.').next() == Some("embedding")
}

/// Whether a vector is the scale of a norm: the `weight` of a `norm`, or of one of several `norms`.
pub fn is_norm_scale(path: &str) -> bool {
    let mut names = path.rsplit('.');
    let named = names.next() == Some("weight");
    named && names.take(2).any(|name| name == "norm" || name == "norms")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(parameters: &str, factor: Option<f64>, clip_norm: Option<f64>) -> GradientGroupSpec {
        GradientGroupSpec { parameters: parameters.to_owned(), factor, clip_norm }
    }

    #[test]
    fn each_group_is_clipped_by_its_own_norm() {
        let paths = ["embedding.weight", "layers.0.weight", "layers.1.weight", "layers_norm.weight"];
        let magnitudes = [100.0, 9.0, 16.0, 64.0].map(|square_sum| Magnitude { square_sum, largest: 1.0 });
        let groups = [group("embedding", Some(128.0), None), group("layers", None, Some(1.0))];
        let found = group_factors(&groups, &paths, &magnitudes).unwrap();
        assert_eq!(found, [128.0, 0.2, 0.2, 1.0], "the norm of the layers is 5");
        let wide = [group("layers", Some(2.0), Some(6.0))];
        assert_eq!(group_factors(&wide, &paths, &magnitudes).unwrap(), [1.0, 2.0, 2.0, 1.0]);
        let error = group_factors(&[group("layer", None, Some(1.0))], &paths, &magnitudes).unwrap_err();
        assert!(error.to_string().contains("no parameter `layer`"), "{error}");
    }
}
