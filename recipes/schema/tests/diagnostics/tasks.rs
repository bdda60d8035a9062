//! A task that does not exist, and a model of another task.

use crate::{findings, one};

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
fn a_model_of_another_task_is_refused_with_the_task_that_has_it() {
    for (name, task, other, kind, kinds) in [
        ("multi30k-transformer-tiny", "translation", "speech-recognition", "transformer", "`ctc`"),
        ("multi30k-convs2s", "translation", "speech-synthesis", "convolutional", "`tacotron`"),
        (
            "fsdd-digits",
            "speech-recognition",
            "translation",
            "ctc",
            "`transformer`, `recurrent`, `convolutional`",
        ),
        ("ljspeech-32", "speech-synthesis", "speech-recognition", "tacotron", "`ctc`"),
    ] {
        let found = findings(name, &format!("task = \"{task}\""), &format!("task = \"{other}\""));
        let message = format!("`model.decoder` has no kind `{kind}`");
        let hint = format!("`{kind}` is of the task `{task}`; the kinds here: {kinds}");
        let fits: Vec<_> = found.iter().filter(|one| one.message == message).collect();
        assert_eq!(fits.len(), 1, "{found}");
        assert_eq!(fits[0].hint.as_ref(), Some(&hint), "{found}");
    }
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
