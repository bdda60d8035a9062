//! Checks of text and speech recipes: data and model must fit together.

use super::{Findings, data, model};
use crate::spec::{DataSpec, ModelSpec, RecipeOf, Task, TaskTypes};

/// A task of text or speech.
pub(crate) trait Sequences: TaskTypes<Data = DataSpec, Model = ModelSpec> {}

impl<T: TaskTypes<Data = DataSpec, Model = ModelSpec>> Sequences for T {}

/// The decoders that a task allows: values of `model.decoder.kind`.
fn decoders_of(task: Task) -> &'static [&'static str] {
    match task {
        Task::Translation => &["transformer", "recurrent", "convolutional"],
        Task::SpeechRecognition => &["ctc"],
        Task::SpeechSynthesis => &["tacotron"],
        _ => &[],
    }
}

/// Checks the blocks of a recipe of text or speech.
pub(crate) fn validate<T: Sequences>(recipe: &RecipeOf<T>, findings: &mut Findings<'_, '_>) {
    task(recipe, findings);
    data::validate(&recipe.data, findings);
    model::validate(recipe, findings);
}

/// Checks that the decoder is one that the task allows.
fn task<T: Sequences>(recipe: &RecipeOf<T>, findings: &mut Findings<'_, '_>) {
    let (task, kind) = (T::TASK, recipe.model.decoder.kind());
    if decoders_of(task).contains(&kind) {
        return;
    }
    let decoders: Vec<String> = decoders_of(task).iter().map(|kind| format!("`{kind}`")).collect();
    let decoders = format!("`{task}` needs `model.decoder.kind` to be {}", decoders.join(" or "));
    findings.report_with(
        "recipe.task",
        format!("the task is `{task}`, but a model with the decoder `{kind}` is not a model of this task"),
        match Task::ALL.iter().find(|task| decoders_of(**task).contains(&kind)) {
            Some(fits) => format!("task = \"{fits}\"; {decoders}"),
            None => decoders,
        },
    );
}
