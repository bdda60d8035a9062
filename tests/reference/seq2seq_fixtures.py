"""Forward, losses, every gradient and one update of recurrent and convolutional models ->
tests/fixtures/seq2seq_*.safetensors.
"""

import torch

import fixture
from seq2seq import Seq2Seq
from transformer_fixtures import SPECIALS, adam, differences, loss_spec, sentences, step

SPECIALS = SPECIALS | {"gnmt": {"pad": 0, "unknown": 1, "begin": 2, "end": 3}}
WIDTH = 12


def embedding(tied, masked):
    return {"tied": tied, "scale": False, "zero_padding": masked, "positions": "none", "dropout": 0.0}


def recurrent(layers, units, biases, **more):
    init = {"kind": "uniform", "bound": 0.1}
    return {
        "kind": "recurrent", "cell": "lstm", "layers": layers, "units": units, "biases": biases, "init": init,
        "dropout": 0.0, **more,
    }  # fmt: skip


def convolutional(*layers, **more):
    layer = [dict(zip(("channels", "kernel", "repeat"), layer)) for layer in layers]
    return {"kind": "convolutional", "layer": layer, "dropout": 0.0, **more}


def additive(units, normalized=True):
    return {"kind": "additive", "units": units, "normalized": normalized}


PRODUCT = {"kind": "multiplicative"}
TWO_STACKS = recurrent(2, 6, "one-of-zeros", directions="two-stacks")
CONVOLUTIONS = convolutional((10, 3, 2), attentions=2, positions={"rows": 6, "first_is_zero": True})
CONVOLUTIONAL_DECODER = convolutional(
    (10, 3, 2), start="begin", positions={"rows": 5, "first_is_zero": True}, source_length="padded"
)


def model(tied, encoder, decoder, masked=True):
    """`masked`: padding embeds as zeros. OpenSeq2Seq's recurrent parts look it up as any other
    token.
    """
    return {"width": WIDTH, "embedding": embedding(tied, masked), "encoder": encoder, "decoder": decoder}


FIXTURES = {
    # NVIDIA's GNMT v2.
    "seq2seq_gnmt_nvidia": (
        model(
            "inputs",
            recurrent(4, 10, "second-of-zeros", directions="first-layer-both", residual_from=3),
            recurrent(
                4, 10, "second-of-zeros", residual_from=3, attention=additive(7), context="upper-layers",
                output_bias=True, start="begin",
            ),  # fmt: skip
        ),
        "gnmt",
        loss_spec("all-classes", 0.1, "sentences"),
        adam(0.999, 1e-3, "corrected-root"),
        1.0,
    ),
    # OpenSeq2Seq's GNMT: the context comes back to the first layer.
    "seq2seq_gnmt_openseq2seq": (
        model(
            "none",
            recurrent(3, 10, "one-of-zeros", directions="first-layer-both", residual_from=3),
            recurrent(
                3, 10, "one-of-zeros", residual_from=3, attention=additive(9), context="all-layers", start="begin"
            ),
            masked=False,
        ),
        "openseq2seq",
        loss_spec("all-classes", 0.0, "positions"),
        adam(0.999, 1e-3, "raw-root"),
        None,
    ),
    # Its smallest, of two stacks.
    "seq2seq_nmt_small": (
        model(
            "none",
            TWO_STACKS,
            recurrent(2, 8, "one-of-zeros", attention=additive(9), context="all-layers", start="begin"),
            masked=False,
        ),
        "openseq2seq",
        loss_spec("all-classes", 0.0, "sentences"),
        adam(0.999, 1e-3, "raw-root"),
        None,
    ),
    # Its toys: what is projected is the answer of the attention.
    "seq2seq_recurrent_recurrent": (
        model(
            "none",
            TWO_STACKS,
            recurrent(2, 8, "one-of-zeros", attention=PRODUCT, context="output", start="begin"),
            masked=False,
        ),
        "openseq2seq",
        loss_spec("all-classes", 0.0, "sentences"),
        adam(0.999, 1e-3, "raw-root"),
        0.4,
    ),
    "seq2seq_recurrent_convolutional": (
        model("decoder", TWO_STACKS, CONVOLUTIONAL_DECODER),
        "openseq2seq",
        loss_spec("all-classes", 0.0, "positions"),
        adam(0.999, 1e-3, "raw-root"),
        0.4,
    ),
    "seq2seq_convolutional_convolutional": (
        model("all", CONVOLUTIONS, CONVOLUTIONAL_DECODER),
        "openseq2seq",
        loss_spec("all-classes", 0.0, "positions"),
        adam(0.999, 1e-3, "raw-root"),
        0.4,
    ),
    "seq2seq_convolutional_recurrent": (
        model(
            "none",
            CONVOLUTIONS,
            recurrent(2, 8, "one-of-zeros", attention=PRODUCT, context="output", start="begin"),
        ),
        "openseq2seq",
        loss_spec("all-classes", 0.0, "positions"),
        adam(0.999, 1e-3, "raw-root"),
        0.4,
    ),
    # OpenSeq2Seq's large one: widths change, positions in the encoder alone.
    "seq2seq_convs2s_openseq2seq": (
        model(
            "all",
            convolutional(
                (8, 3, 2), (14, 3, 1), (18, 1, 1), attentions=4, positions={"rows": 9, "first_is_zero": True}
            ),
            convolutional((8, 3, 2), (14, 3, 1), (18, 1, 1), start="begin", source_length="padded"),
        ),
        "openseq2seq",
        loss_spec("all-classes", 0.0, "positions"),
        adam(0.999, 1e-3, "raw-root"),
        0.1,
    ),
    # The paper's and fairseq's: nothing is tied, what is projected has a width of its own.
    "seq2seq_convs2s_fairseq": (
        model(
            "none",
            convolutional((8, 3, 2), (14, 3, 1), (18, 1, 1), attentions=4, positions={"rows": 9}),
            convolutional(
                (8, 3, 2), (14, 3, 1), (18, 1, 1), positions={"rows": 9}, output_width=11, output_bias=True, start="end"
            ),
        ),
        "fairseq",
        loss_spec("all-classes", 0.1, "tokens"),
        {"kind": "sgd", "momentum": 0.9},
        0.1,
    ),
    # Luong's input feeding, GRUs one way, scores without normalisation.
    "seq2seq_input_feeding": (
        model(
            "none",
            recurrent(2, 9, "two", directions="forward") | {"cell": "gru"},
            recurrent(2, 8, "two", attention=additive(6, False), context="input-feeding", start="begin")
            | {"cell": "gru"},
        ),
        "fairseq",
        loss_spec("all-classes", 0.0, "tokens"),
        adam(0.999, 1e-3, "corrected-root"),
        None,
    ),
    # The same of LSTMs with a bias behind the projection, by SGD.
    "seq2seq_input_feeding_lstm": (
        model(
            "none",
            recurrent(3, 9, "one-of-zeros", directions="forward"),
            recurrent(
                3, 8, "one-of-zeros", attention=additive(6, False), context="input-feeding", output_bias=True,
                start="begin",
            ),  # fmt: skip
            masked=False,
        ),
        "openseq2seq",
        loss_spec("all-classes", 0.0, "tokens"),
        {"kind": "sgd", "momentum": 0.0},
        0.5,
    ),
    # JoeyNMT's: states begin at the encoder's last forward output, the combination has a bias. Its
    # initialisers are no part of a fixture.
    "seq2seq_lstm_joeynmt": (
        model(
            "none",
            recurrent(1, 8, "two-of-zeros", directions="two-stacks"),
            recurrent(
                2, 8, "two-of-zeros", attention=PRODUCT, context="input-feeding", initial_state="last-of-encoder",
                combine_bias=True, start="begin",
            ),  # fmt: skip
        ),
        "openseq2seq",
        loss_spec("all-classes", 0.0, "sentences"),
        adam(0.999, 1e-3, "corrected-root"),
        None,
    ),
    # Not published: the same start where the context goes up too, of gated units and an encoder of
    # one direction.
    "seq2seq_initial_state_all_layers": (
        model(
            "none",
            recurrent(2, 8, "two", directions="first-layer-both") | {"cell": "gru"},
            recurrent(
                3, 8, "two", attention=additive(6, False), context="all-layers", initial_state="last-of-encoder",
                start="begin",
            )
            | {"cell": "gru"},
        ),
        "fairseq",
        loss_spec("all-classes", 0.0, "tokens"),
        adam(0.999, 1e-3, "corrected-root"),
        None,
    ),
}
# The loss of input feeding over sentences instead of tokens.
FIXTURES["seq2seq_input_feeding_lstm_sentences"] = (
    *FIXTURES["seq2seq_input_feeding_lstm"][:2],
    loss_spec("all-classes", 0.0, "sentences"),
    *FIXTURES["seq2seq_input_feeding_lstm"][3:],
)


def main():
    for number, (name, (spec, specials, loss, optimizer, clip)) in enumerate(FIXTURES.items()):
        vocabulary = {"size": 21, **SPECIALS[specials]}
        description = {
            "model": spec, "vocabulary": vocabulary, "loss": loss, "optimizer": optimizer, "learning_rate": 0.01,
            "clip_norm": clip,
        }  # fmt: skip
        seq2seq = Seq2Seq(spec, vocabulary).double()
        fixture.randomize(seq2seq, seed=500 + number)
        source = sentences(vocabulary, seed=600 + number, lengths=(7, 4, 6))
        target = sentences(vocabulary, seed=700 + number, lengths=(5, 8, 3))
        weights = {f"weights/{key}": value.detach().clone() for key, value in seq2seq.named_parameters()}
        exact, counts = step(seq2seq, source, target, description)
        inputs = {
            "inputs/source": source,
            "inputs/target": target,
            "inputs/source_lengths": (source != vocabulary["pad"]).sum(dim=1),
            "inputs/target_lengths": (target != vocabulary["pad"]).sum(dim=1),
        }
        producer = {"producer": f"PyTorch {torch.__version__.split('+')[0]}", "computed_in": "float64"}
        fixture.save(name, weights | inputs | exact | counts, {"layout": 1, **producer, **description})
        single, _ = step(seq2seq.float(), source, target, description)
        print("  FP32 differs by", {key: f"{value:.1e}" for key, value in differences(exact, single).items()})


if __name__ == "__main__":
    main()
