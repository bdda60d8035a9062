"""The reference against PyTorch's own modules, where PyTorch has them: layers, label smoothing,
Adam, SGD, LazyAdam; and a whole model.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import fixture
import update_rules
from seq2seq import Seq2Seq
from seq2seq_fixtures import FIXTURES, SPECIALS, sentences
from transformer import Layer, cross_entropy


def copied(layer, other):
    """Copies a `Layer`'s weights into `nn.TransformerEncoderLayer` or
    `nn.TransformerDecoderLayer`.
    """
    pairs = [("self_attn", layer.self_attention)]
    norms = [layer.self_attention_norm, layer.feed_forward_norm]
    if layer.cross:
        pairs.append(("multihead_attn", layer.cross_attention))
        norms.insert(1, layer.cross_attention_norm)
    with torch.no_grad():
        for name, ours in pairs:
            theirs = getattr(other, name)
            theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
            theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
            theirs.out_proj.load_state_dict(ours.output.state_dict())
        other.linear1.load_state_dict(layer.feed_forward.input.state_dict())
        other.linear2.load_state_dict(layer.feed_forward.output.state_dict())
        for number, norm in enumerate(norms, start=1):
            getattr(other, f"norm{number}").load_state_dict(norm.state_dict())
    return other


def check_layers():
    for norm in ("pre", "post"):
        spec = {"heads": 4, "ffn": 32, "norm": norm, "norm_epsilon": 1e-5, "attention_bias": True, "dropout": 0.0,
                "attention_dropout": 0.0, "activation_dropout": 0.0}  # fmt: skip
        sizes = {"d_model": 16, "nhead": 4, "dim_feedforward": 32, "dropout": 0.0, "batch_first": True}
        memory, x = torch.randn(3, 6, 16), torch.randn(3, 5, 16)
        padding = torch.tensor([[0] * 6, [0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1]]).bool()
        hidden, future = padding[:, None, None, :], torch.ones(5, 5, dtype=torch.bool).triu(1)

        ours = Layer(16, spec, cross=False)
        fixture.randomize(ours, seed=1)
        theirs = copied(ours, nn.TransformerEncoderLayer(**sizes, norm_first=norm == "pre"))
        expected = theirs(memory, src_key_padding_mask=padding)
        torch.testing.assert_close(ours(memory, hidden)[~padding], expected[~padding])

        ours = Layer(16, spec, cross=True)
        fixture.randomize(ours, seed=2)
        theirs = copied(ours, nn.TransformerDecoderLayer(**sizes, norm_first=norm == "pre"))
        expected = theirs(x, memory, tgt_mask=future, memory_key_padding_mask=padding)
        torch.testing.assert_close(ours(x, future[None, None], memory, hidden), expected)


def check_loss():
    logits, target = torch.randn(3, 4, 7), torch.randint(1, 7, (3, 4))
    target[1, 2:] = 0
    spec = {"label_smoothing": 0.1, "smoothing": "all-classes", "denominator": "positions"}
    smoothed, nll, count = cross_entropy(logits, target, 0, spec)
    for ours, share in ((smoothed, 0.1), (nll, 0.0)):
        theirs = nn.functional.cross_entropy(
            logits.transpose(1, 2), target, ignore_index=0, label_smoothing=share, reduction="sum"
        )
        torch.testing.assert_close(ours, theirs)
    assert count == 12
    # The other definition: 0 for the smoothed target itself, more for anything else.
    truth = torch.full((1, 2, 7), 0.1 / 6)
    truth[0, 0, 3] = truth[0, 1, 5] = 0.9
    spec["smoothing"] = "other-classes"
    perfect = cross_entropy(truth.log(), torch.tensor([[3, 5]]), 0, spec)[0]
    torch.testing.assert_close(perfect, torch.zeros(()))


def check_optimizers():
    cases = [
        ({"kind": "adam", "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-3}, torch.optim.Adam, {"betas": (0.9, 0.98), "eps": 1e-3}),
        ({"kind": "sgd", "momentum": 0.9}, torch.optim.SGD, {"momentum": 0.9}),
        ({"kind": "sgd", "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, torch.optim.SGD,
         {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ]  # fmt: skip
    for spec, theirs, options in cases:
        weight, state = torch.randn(5, 3), {}
        other = nn.Parameter(weight.clone())
        optimizer = theirs([other], lr=0.1, **options)
        for lr in (0.1, 0.03, 0.2):
            gradient = torch.randn(5, 3)
            other.grad = gradient
            optimizer.param_groups[0]["lr"] = lr
            optimizer.step()
            weight = getattr(update_rules, spec["kind"])(weight, gradient, state, lr, spec)
            torch.testing.assert_close(weight, other.detach())
    # torch.optim.SparseAdam is lazy in the same way, with epsilon at the corrected root's place
    # times its correction.
    spec = {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-12}
    weight, state = torch.randn(5, 3), {}
    other = nn.Parameter(weight.clone())
    optimizer = torch.optim.SparseAdam([other], lr=0.1, betas=(0.9, 0.98), eps=1e-12)
    for rows in ([0, 3], [3], [1, 4, 0]):
        values = torch.randn(len(rows), 3)
        gradient = torch.zeros(5, 3).index_copy(0, torch.tensor(rows), values)
        other.grad = torch.sparse_coo_tensor([rows], values, (5, 3))
        optimizer.step()
        weight = update_rules.lazy_adam(weight, gradient, state, 0.1, spec, rows)
        torch.testing.assert_close(weight, other.detach())


def lstm(layers, names, **sizes):
    """`nn.LSTM` with the weights of our layers; `names` are the suffixes that it gives to
    theirs.
    """
    other = nn.LSTM(**sizes, batch_first=True)
    with torch.no_grad():
        for ours, name in zip(layers, names):
            for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(other, f"{part}_{name}").copy_(getattr(ours, part))
    return other


def check_joeynmt():
    """Logits of the recurrent model as JoeyNMT wires PyTorch's modules: packed sequences, final
    states, one step at a time.
    """
    spec, specials = FIXTURES["seq2seq_lstm_joeynmt"][:2]
    vocabulary = {"size": 21, **SPECIALS[specials]}
    model = Seq2Seq(spec, vocabulary)
    fixture.randomize(model, seed=3)
    source = sentences(vocabulary, seed=4, lengths=(7, 6, 4))
    target = sentences(vocabulary, seed=5, lengths=(5, 8, 3))
    ours = model.project(model.decode(target, model.encode(source), source))

    width, units, layers = spec["width"], spec["decoder"]["units"], spec["decoder"]["layers"]
    encoder, decoder = model.encoder, model.decoder
    read = lstm(
        [encoder.layers[0], encoder.backward[0]], ["l0", "l0_reverse"], input_size=width, hidden_size=units,
        bidirectional=True,
    )  # fmt: skip
    write = lstm(
        decoder.layers, [f"l{i}" for i in range(layers)], input_size=width + units, hidden_size=units, num_layers=layers
    )
    lengths = (source != vocabulary["pad"]).sum(dim=1)
    packed = pack_padded_sequence(nn.functional.embedding(source, model.embedding.weight), lengths, batch_first=True)
    memory, (final, _) = read(packed)
    memory, _ = pad_packed_sequence(memory, batch_first=True)
    keys = memory @ decoder.attention.key.T
    # The last forward state, for outputs and cells of every layer.
    state = (final[0].repeat(layers, 1, 1), final[0].repeat(layers, 1, 1))
    fed, logits = torch.zeros(len(source), 1, units), []
    begin = torch.full((len(target), 1), vocabulary["begin"])
    for token in torch.cat([begin, target[:, :-1]], dim=1).split(1, dim=1):
        _, state = write(torch.cat([nn.functional.embedding(token, model.target_embedding.weight), fed], dim=2), state)
        query = state[0][-1].unsqueeze(1)
        scores = (query @ keys.transpose(1, 2)).masked_fill((source == vocabulary["pad"]).unsqueeze(1), -torch.inf)
        context = scores.softmax(dim=-1) @ memory
        fed = decoder.combine(torch.cat([query, context], dim=2)).tanh()
        logits.append(model.output(fed))
    kept = target != vocabulary["pad"]
    torch.testing.assert_close(ours[kept], torch.cat(logits, dim=1)[kept])


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    torch.sparse.check_sparse_tensor_invariants.enable()
    check_layers()
    check_loss()
    check_optimizers()
    check_joeynmt()
    print("the reference agrees with PyTorch's own modules")
