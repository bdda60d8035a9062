//! The quantities of an update that are profiled, and their histograms over several updates.

use serde::{Deserialize, Deserializer, Serialize};

use super::fp16::{SuggestedScale, suggest};
use super::histogram::ExponentHistogram;
use super::layers::{ByLayer, Pattern};

/// A quantity of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Gradients of the outputs of layers.
    ActivationGradients,
    /// Gradients of the parameters, before regularisation and clipping.
    WeightGradients,
    /// Parameters before the update.
    Weights,
    /// New parameters minus old ones.
    Updates,
    /// |parameter| / |update|.
    Ratios,
}

impl Quantity {
    /// All quantities, in the order of the tables.
    pub const ALL: [Self; 5] =
        [Self::ActivationGradients, Self::WeightGradients, Self::Weights, Self::Updates, Self::Ratios];

    /// Name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ActivationGradients => "activation gradients",
            Self::WeightGradients => "weight gradients",
            Self::Weights => "weights",
            Self::Updates => "updates",
            Self::Ratios => "weight / update",
        }
    }

    /// Whether a loss scale multiplies the quantity.
    #[must_use]
    pub fn is_scaled(self) -> bool {
        matches!(self, Self::ActivationGradients | Self::WeightGradients)
    }

    /// Exponent of the ratio from which on an FP16 weight may lose its update: the weight has 11
    /// significant bits, and 2^11 is 2048. From 2^12 on it always does.
    pub const LARGE_RATIO: i32 = 11;
}

fn number_or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// One profiled update.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProfiledUpdate {
    /// Number of the update, from 1.
    pub update: u64,
    /// Loss of the update. JSON has null for a loss that is not finite.
    #[serde(deserialize_with = "number_or_nan")]
    pub loss: f64,
    /// Learning rate of the update.
    pub lr: f64,
    /// Loss scale of the update. The histograms are of gradients divided by it.
    pub loss_scale: f64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Histograms of the activation gradients, by layer.
    pub activation_gradients: ByLayer,
    /// Histograms of the weight gradients, by parameter.
    pub weight_gradients: ByLayer,
    /// Histograms of the weights, by parameter.
    pub weights: ByLayer,
    /// Histograms of the updates, by parameter.
    pub updates: ByLayer,
    /// Histograms of weight / update, by parameter. An unmoved weight counts as not finite.
    pub ratios: ByLayer,
}

impl ProfiledUpdate {
    /// The histograms of a quantity.
    #[must_use]
    pub fn layers(&self, quantity: Quantity) -> &ByLayer {
        match quantity {
            Quantity::ActivationGradients => &self.activation_gradients,
            Quantity::WeightGradients => &self.weight_gradients,
            Quantity::Weights => &self.weights,
            Quantity::Updates => &self.updates,
            Quantity::Ratios => &self.ratios,
        }
    }

    fn layers_mut(&mut self, quantity: Quantity) -> &mut ByLayer {
        match quantity {
            Quantity::ActivationGradients => &mut self.activation_gradients,
            Quantity::WeightGradients => &mut self.weight_gradients,
            Quantity::Weights => &mut self.weights,
            Quantity::Updates => &mut self.updates,
            Quantity::Ratios => &mut self.ratios,
        }
    }
}

/// Profiled updates of one training.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Profile {
    /// The updates in their order.
    pub updates: Vec<ProfiledUpdate>,
}

/// A histogram of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The update; `None` for all profiled updates.
    pub update: Option<u64>,
    /// Path of the layer or parameter; `None` for all.
    pub path: Option<String>,
    /// The histogram.
    pub histogram: ExponentHistogram,
}

impl Profile {
    /// The static loss scale that suits all profiled updates.
    #[must_use]
    pub fn suggested(&self) -> SuggestedScale {
        let gradients = [Quantity::ActivationGradients, Quantity::WeightGradients];
        let highest = gradients.into_iter().filter_map(|quantity| Some(self.all(quantity).ends()?.1)).max();
        suggest(&self.all(Quantity::ActivationGradients), highest)
    }

    /// Keeps only the layers and parameters that a pattern matches.
    #[must_use]
    pub fn matching(mut self, pattern: &Pattern) -> Self {
        for update in &mut self.updates {
            for quantity in Quantity::ALL {
                let layers = update.layers_mut(quantity);
                *layers = std::mem::take(layers).matching(pattern);
            }
        }
        self
    }

    /// Paths of all layers and parameters, each once.
    #[must_use]
    pub fn paths(&self) -> Vec<&str> {
        let mut paths = Vec::new();
        for update in &self.updates {
            for (path, _) in Quantity::ALL.iter().flat_map(|quantity| update.layers(*quantity).iter()) {
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        paths
    }

    /// Histogram of a quantity over all profiled updates and layers.
    #[must_use]
    pub fn all(&self, quantity: Quantity) -> ExponentHistogram {
        self.merged(quantity).all()
    }

    /// Histograms of a quantity over all profiled updates.
    fn merged(&self, quantity: Quantity) -> ByLayer {
        let mut merged = ByLayer::default();
        for update in &self.updates {
            update.layers(quantity).iter().for_each(|(path, histogram)| merged.add(path, histogram));
        }
        merged
    }

    /// Histograms of a quantity: all layers in each update and in all updates, then each layer in all
    /// updates, and with `each` also each layer in each update. Nothing is listed twice if there is
    /// one update only.
    #[must_use]
    pub fn rows(&self, quantity: Quantity, each: bool) -> Vec<Row> {
        let single = match self.updates.as_slice() {
            [one] => Some(one.update),
            _ => None,
        };
        let layers_of = |update: Option<u64>, layers: &ByLayer| -> Vec<Row> {
            let row = |(path, histogram): (&str, &ExponentHistogram)| Row {
                update,
                path: Some(path.to_owned()),
                histogram: histogram.clone(),
            };
            layers.iter().map(row).collect()
        };
        let merged = self.merged(quantity);
        let mut rows = Vec::new();
        if single.is_none() {
            for update in &self.updates {
                let layers = update.layers(quantity);
                rows.push(Row { update: Some(update.update), path: None, histogram: layers.all() });
                if each {
                    rows.extend(layers_of(Some(update.update), layers));
                }
            }
        }
        rows.push(Row { update: single, path: None, histogram: merged.all() });
        rows.extend(layers_of(single, &merged));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Reason;

    fn layers(of: &[(&str, &[f32])]) -> ByLayer {
        let mut layers = ByLayer::default();
        of.iter().for_each(|(path, values)| layers.add(path, &ExponentHistogram::of(values)));
        layers
    }

    fn two_updates() -> Profile {
        let first = ProfiledUpdate {
            update: 1,
            activation_gradients: layers(&[("a", &[1e-9, 1.0]), ("b", &[0.5])]),
            weight_gradients: layers(&[("a.weight", &[2.0])]),
            ..ProfiledUpdate::default()
        };
        let second = ProfiledUpdate {
            update: 10,
            activation_gradients: layers(&[("a", &[0.25, 0.0])]),
            ..ProfiledUpdate::default()
        };
        Profile { updates: vec![first, second] }
    }

    #[test]
    fn rows_have_each_update_and_each_layer() {
        let profile = two_updates();
        let found = |each| -> Vec<(Option<u64>, Option<String>, u64)> {
            let rows = profile.rows(Quantity::ActivationGradients, each).into_iter();
            rows.map(|row| (row.update, row.path, row.histogram.values())).collect()
        };
        let path = |name: &str| Some(name.to_owned());
        let all = [(None, None, 5), (None, path("a"), 4), (None, path("b"), 1)];
        assert_eq!(found(false), [&[(Some(1), None, 3), (Some(10), None, 2)][..], &all].concat());
        let each = [
            (Some(1), None, 3),
            (Some(1), path("a"), 2),
            (Some(1), path("b"), 1),
            (Some(10), None, 2),
            (Some(10), path("a"), 2),
        ];
        assert_eq!(found(true), [&each[..], &all].concat());
    }

    #[test]
    fn a_single_update_is_listed_once() {
        let mut profile = two_updates();
        profile.updates.truncate(1);
        let rows = profile.rows(Quantity::ActivationGradients, true);
        assert_eq!(rows.iter().map(|row| row.update).collect::<Vec<_>>(), [Some(1); 3]);
    }

    #[test]
    fn the_scale_is_limited_by_the_gradients_of_weights_too() {
        // One of four activation gradients, 1e-9, needs 2^6; a weight gradient of 2 allows 2^11.
        let mut profile = two_updates();
        let found = profile.suggested();
        assert_eq!((found.scale, found.highest, found.reason), (64.0, Some(1), Reason::KeepsEnough));
        profile.updates[0].weight_gradients = layers(&[("a.weight", &[4096.0])]);
        assert_eq!(profile.suggested().scale, 1.0);
    }

    #[test]
    fn a_pattern_selects_layers_of_all_quantities() {
        let profile = two_updates();
        assert_eq!(profile.paths(), ["a", "b", "a.weight"]);
        let only = profile.matching(&Pattern::new("weight"));
        assert_eq!(only.paths(), ["a.weight"]);
        assert_eq!(only.all(Quantity::ActivationGradients).values(), 0);
    }
}
