//! A task that does not exist, and a task with the blocks of another task.

use super::{findings, one, one_of};

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
fn the_blocks_of_another_task_are_refused_at_the_task() {
    for (name, task, other) in [
        ("multi30k-transformer-tiny", "translation", "speech-recognition"),
        ("multi30k-convs2s", "translation", "image-classification"),
        ("fsdd-digits", "speech-recognition", "translation"),
        ("ljspeech-32", "speech-synthesis", "speech-recognition"),
        ("mnist-lenet-caffe", "image-classification", "speech-synthesis"),
    ] {
        let (from, to) = (format!("task = \"{task}\""), format!("task = \"{other}\""));
        let message = format!("the task is `{other}`, but the blocks are those of a recipe of `{task}`");
        one_of(name, &from, &to, &format!("\"{other}\""), &message, &from);
        let found = findings(name, &from, &to);
        assert_eq!(found.len(), 1, "{found}");
    }
}

#[test]
fn losses_and_searches_of_another_task_are_unknown_kinds() {
    let kind = |kind: &str| format!("kind = \"{kind}\"");
    let wrong = |name: &str, from: &str, to: &str, message: &str, hint: &str| {
        one_of(name, from, &kind(to), &format!("\"{to}\""), message, hint);
    };
    let guide = "guide = { width = 0.2, weight = 1.0 }";
    wrong(
        "ljspeech-32",
        guide,
        "ctc",
        "`loss` has no kind `ctc`",
        "the task `speech-recognition`; the kinds here: `spectrogram`",
    );
    wrong("ljspeech-32", &kind("teacher-forced"), "beam", "has no kind `beam`", "the task `translation`");
    wrong(
        "wave2letter",
        &kind("ctc-greedy"),
        "greedy",
        "`decode.greedy` has no kind",
        "the task `translation`",
    );
    wrong(
        "iwslt14-lstm",
        &kind("greedy"),
        "ctc-greedy",
        "`decode.greedy` has no kind",
        "the task `speech-recognition`",
    );
}

#[test]
fn the_place_of_a_decoder_of_another_task_is_that_of_its_kind() {
    let from = "[model.decoder]\nkind = \"transformer\"";
    let to = "[model.decoder]\nkind = \"ctc\"";
    let message = "`model.decoder` has no kind `ctc`";
    let hint = "`ctc` is of the task `speech-recognition`; the kinds here: `transformer`, `recurrent`";
    one(from, to, "\"ctc\"", message, hint);
    // A kind of no task is answered with the nearest one.
    let slip = "[model.decoder]\nkind = \"transfomer\"";
    one(from, slip, "\"transfomer\"", "has no kind `transfomer`", "did you mean `transformer`?");
}
