//! Checks of `[data]` that several tasks share.

use super::Findings;
use crate::spec::{DataBlock, EvalSet, Generated};

fn sets_of(data: &dyn DataBlock) -> impl Iterator<Item = (&str, EvalSet<'_>)> {
    data.eval_sets().into_iter().filter_map(|name| Some((name, data.eval_set(name)?)))
}

/// Checks names and sizes of the evaluation sets. A user's own files (`own`) do not need one.
pub(crate) fn eval_sets(data: &dyn DataBlock, own: bool, findings: &mut Findings<'_, '_>) {
    let some = own || !data.eval_sets().is_empty();
    findings.require(some, "data.eval", || "the recipe has no evaluation set".to_owned());
    for (name, set) in sets_of(data) {
        let path = format!("data.eval.{name}");
        findings.named(name, &path);
        findings.positive(u64::from(set.lines), &format!("{path}.lines"));
    }
}

/// Checks that the user's files include the split to train on and those of all evaluation sets.
pub(crate) fn own_splits<'s>(
    data: &dyn DataBlock,
    splits: impl Iterator<Item = &'s str> + Clone,
    findings: &mut Findings<'_, '_>,
) {
    findings.require(splits.clone().any(|split| split == data.training()), "data.reader.files", || {
        format!("`data.reader.files` has no split `{}`", data.training())
    });
    for (name, set) in sets_of(data) {
        findings.exists(set.split, splits.clone(), &format!("data.eval.{name}.split"), "split");
    }
}

/// Checks that generated data have no corpus, and that sets have as many lines as are generated.
pub(crate) fn generated(data: &dyn DataBlock, made: &Generated, findings: &mut Findings<'_, '_>) {
    if data.corpus().is_some() {
        let hint = "in an overlay: without = [\"data.corpus\"]";
        findings.report_with("data.corpus", "the reader makes its data; no corpus is read", hint);
    }
    let splits = made.splits();
    for (name, set) in sets_of(data) {
        let path = format!("data.eval.{name}");
        let names = splits.iter().map(|(split, _)| *split);
        findings.exists(set.split, names, &format!("{path}.split"), "split");
        if let Some((split, lines)) = splits.iter().find(|(split, _)| *split == set.split) {
            findings.require(*lines == set.lines, &format!("{path}.lines"), || {
                format!(
                    "the evaluation set `{name}` has {} lines, but {lines} are made for `{split}`",
                    set.lines
                )
            });
        }
    }
}
