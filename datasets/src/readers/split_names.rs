//! The splits that a recipe uses.

use std::collections::BTreeSet;

use zoo_recipes::DataBlock;

/// Names of the splits that `data` uses: the training split and those of its evaluation sets.
pub fn split_names(data: &dyn DataBlock) -> BTreeSet<String> {
    let sets = data.eval_sets().into_iter().filter_map(|name| data.eval_set(name));
    sets.map(|set| set.split).chain([data.training()]).map(str::to_owned).collect()
}
