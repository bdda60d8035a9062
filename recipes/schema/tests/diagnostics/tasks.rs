//! A task that does not exist, and a task that does not allow the model.

use crate::{findings, one, one_of};

#[test]
fn an_unknown_task_is_named_with_the_nearest_one() {
    let task = "task = \"translation\"";
    one(
        task,
        "task = \"translaton\"",
        "\"translaton\"",
        "`recipe.task` does not accept `translaton`",
        "did you mean `translation`?",
    );
    one(
        task,
        "task = \"zzz\"",
        "\"zzz\"",
        "does not accept `zzz`",
        "the choices here: `translation`, `speech-recognition`, `speech-synthesis`",
    );
    one(task, "task = 1", "1\nsummary", "`recipe.task` is an integer; expected a string", "");
}

#[test]
fn a_task_with_a_model_of_another_task_is_refused_at_the_task() {
    for (name, task, other, kind) in [
        ("multi30k-transformer-tiny", "translation", "speech-recognition", "transformer"),
        ("multi30k-convs2s", "translation", "speech-synthesis", "convolutional"),
        ("fsdd-digits", "speech-recognition", "translation", "ctc"),
        ("ljspeech-32", "speech-synthesis", "speech-recognition", "tacotron"),
    ] {
        let (from, to) = (format!("task = \"{task}\""), format!("task = \"{other}\""));
        let message = format!("the task is `{other}`, but a model with the decoder `{kind}`");
        one_of(
            name,
            &from,
            &to,
            &format!("\"{other}\""),
            &message,
            &format!("task = \"{task}\"; `{other}` needs"),
        );
        let found = findings(name, &from, &to);
        assert_eq!(found.iter().filter(|one| one.message.contains("the task is")).count(), 1, "{found}");
    }
}
