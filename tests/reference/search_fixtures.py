"""Hypotheses of small trained models -> tests/fixtures/search_*.safetensors.

Each model learns for a while to reverse strings of ten symbols; not to the end, so that hypotheses
compete. Arguments are names of fixtures; without any, all are made.
"""

import sys

import numpy as np
import torch

import fixture
from search import search
from seq2seq import Seq2Seq
from seq2seq_fixtures import FIXTURES, SPECIALS
from transformer import Transformer, cross_entropy
from transformer_fixtures import loss_spec, model_spec

SYMBOLS = 10
LONGEST = 7
LEAST_GAP = 1e-4
SENTENCES = 8


def length(factor, extra):
    return {"factor": factor, "extra": extra}


def beam(size, penalty, alpha, stop, max_length):
    rule = {"kind": penalty} if penalty == "none" else {"kind": penalty, "alpha": alpha}
    return {"kind": "beam", "beam": size, "length_penalty": rule, "stop": stop, "max_length": max_length}


# `-short` ones stop at the limit: nothing, or not enough, has finished there.
SEARCHES = {
    "greedy": {"kind": "greedy", "max_length": length(1.0, 4)},
    "greedy-short": {"kind": "greedy", "max_length": length(0.0, 3)},
    "tensor2tensor-4": beam(4, "gnmt", 0.6, "cannot-improve", length(1.0, 5)),
    "tensor2tensor-5": beam(5, "gnmt", 1.0, "cannot-improve", length(1.0, 2)),
    "tensor2tensor-1": beam(1, "gnmt", 0.6, "cannot-improve", length(1.0, 5)),
    "tensor2tensor-short": beam(3, "gnmt", 0.6, "cannot-improve", length(0.0, 3)),
    "fairseq-5": beam(5, "length-power", 1.0, "beam-finished", length(0.0, 20)),
    "fairseq-4": beam(4, "length-power", 0.6, "beam-finished", length(1.5, 4)),
    "fairseq-none": beam(3, "none", None, "beam-finished", length(1.0, 5)),
    "fairseq-short": beam(4, "length-power", 1.0, "beam-finished", length(0.5, 2)),
}


def tensorflow(size, alpha, max_length):
    return {"kind": "tensorflow-beam", "beam": size, "alpha": alpha, "max_length": max_length}


def gnmt(size, alpha, coverage, as_coded, max_length):
    return {
        "kind": "gnmt-beam", "beam": size, "alpha": alpha, "constant": 5.0, "coverage": coverage, "as_coded": as_coded,
        "max_length": max_length,
    }  # fmt: skip


def joeynmt(size, alpha, as_coded, max_length):
    return {"kind": "joeynmt-beam", "beam": size, "alpha": alpha, "as_coded": as_coded, "max_length": max_length}


# Ended hypotheses keep their places. Coverage needs a decoder with one attention.
PLACES = {
    "tensorflow-5": tensorflow(5, 1.0, length(2.0, 0)),
    "tensorflow-short": tensorflow(3, 1.0, length(0.0, 3)),
    "gnmt-lengths": gnmt(4, 0.6, 0.0, True, length(0.0, 16)),
}
COVERAGE = {
    "gnmt-5": gnmt(5, 0.6, 0.1, True, length(0.0, 16)),
    "gnmt-short": gnmt(3, 0.6, 0.1, True, length(0.0, 3)),
    "gnmt-mended": gnmt(5, 0.6, 0.3, False, length(0.0, 16)),
}
# Ended hypotheses are extended.
EXTENDED = {
    "joeynmt-10": joeynmt(10, 1.0, True, length(0.0, 12)),
    "joeynmt-short": joeynmt(4, 1.0, True, length(0.0, 3)),
    "joeynmt-once": joeynmt(5, 0.6, False, length(0.0, 12)),
}
SMALL = {key: SEARCHES[key] for key in ("greedy", "tensor2tensor-4", "fairseq-5")} | PLACES

MODELS = {
    "search_prenorm_openseq2seq": (
        model_spec("pre", 1e-6, False, "zeros", "sinusoid-tensor2tensor", "xavier-uniform"),
        "openseq2seq",
        loss_spec("other-classes", 0.1, "tokens"),
        130,
    ),
    "search_postnorm_fairseq": (
        model_spec("post", 1e-5, True, "end", "sinusoid-fairseq", "fairseq"),
        "fairseq",
        loss_spec("all-classes", 0.1, "tokens"),
        120,
    ),
    "search_gnmt_nvidia": (*FIXTURES["seq2seq_gnmt_nvidia"][:3], 500),
    "search_recurrent_openseq2seq": (*FIXTURES["seq2seq_recurrent_recurrent"][:3], 350),
    "search_convs2s_openseq2seq": (*FIXTURES["seq2seq_convs2s_openseq2seq"][:3], 250),
    "search_lstm_joeynmt": (*FIXTURES["seq2seq_lstm_joeynmt"][:3], 350),
    "search_gnmt_openseq2seq": (*FIXTURES["seq2seq_gnmt_openseq2seq"][:3], 500),
    "search_input_feeding_lstm": (*FIXTURES["seq2seq_input_feeding_lstm"][:3], 500),
}
TRANSFORMERS = ("search_prenorm_openseq2seq", "search_postnorm_fairseq")
FED_BACK = ("search_gnmt_openseq2seq", "search_input_feeding_lstm")


def searches_of(name, spec):
    if name in TRANSFORMERS:
        return SEARCHES
    if name == "search_lstm_joeynmt":
        return {"greedy": SEARCHES["greedy"]} | EXTENDED
    if name in FED_BACK:
        return {"greedy": SEARCHES["greedy"]} | PLACES
    return SMALL | (COVERAGE if spec["decoder"]["kind"] == "recurrent" else {})


def strings(draw, count, vocabulary):
    rows = [draw.integers(4, 4 + SYMBOLS, draw.integers(1, LONGEST + 1)).tolist() for _ in range(count)]
    end, pad = vocabulary["end"], vocabulary["pad"]
    source = fixture.padded([[*row, end] for row in rows], pad)
    return source, fixture.padded([[*row[::-1], end] for row in rows], pad)


def train(model, vocabulary, loss, updates, draw):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.98))
    for update in range(updates):
        source, target = strings(draw, 64, vocabulary)
        total, nll, count = cross_entropy(model(source, target), target, vocabulary["pad"], loss)
        optimizer.zero_grad()
        (total / count).backward()
        optimizer.step()
        if update % 40 == 0 or update == updates - 1:
            print(f"  update {update}: nll {nll.item() / count:.3f}")


def hypotheses(model, source, vocabulary, searches):
    """Every search on one sentence, and the least gap between choices in any of them."""
    with torch.no_grad():
        memory = model.encode(source)
        known = {}

        def after(prefix):
            key = tuple(prefix)
            if key not in known:
                # The last column is not read: the target is shifted behind its start.
                target = torch.tensor([[*prefix, vocabulary["end"]]])
                logits = model.project(model.decode(target, memory, source))
                weights = model.decoder.attention.weights[0] if hasattr(model.decoder, "attention") else None
                known[key] = logits[0, -1].log_softmax(dim=-1), weights
            return known[key]

        gaps = []
        found = {
            name: search(
                lambda prefix: after(prefix)[0], spec, source.shape[1], vocabulary, gaps, lambda prefix: after(prefix)[1]
            )
            for name, spec in searches.items()
        }
    return found, min(gaps)


def tensors(name, results):
    """[batch, hypotheses, length] and [batch, hypotheses]; absent hypotheses have length 0."""
    most = max(len(r) for r in results)
    longest = max(len(tokens) for r in results for tokens, _, _ in r)
    ids = torch.full((len(results), most, longest), -1)
    lengths = torch.zeros(len(results), most, dtype=torch.long)
    scores, log_p = torch.zeros(2, len(results), most, dtype=torch.float64)
    for row, result in enumerate(results):
        for rank, (tokens, score, total) in enumerate(result):
            ids[row, rank, : len(tokens)] = torch.tensor(tokens)
            lengths[row, rank], scores[row, rank], log_p[row, rank] = len(tokens), score, total
    path = f"searches/{name}"
    return {
        f"{path}/tokens": ids, f"{path}/lengths": lengths, f"{path}/scores": scores, f"{path}/log_probabilities": log_p,
    }  # fmt: skip


def main():
    torch.manual_seed(0)
    for number, (name, (spec, specials, loss, updates)) in enumerate(MODELS.items()):
        if name not in (sys.argv[1:] or MODELS):
            continue
        vocabulary = {"size": 4 + SYMBOLS, **SPECIALS[specials]}
        draw = np.random.default_rng(400 + number)
        model = (Transformer if name in TRANSFORMERS else Seq2Seq)(spec, vocabulary)
        searches = searches_of(name, spec)
        fixture.randomize(model, seed=500 + number)
        train(model, vocabulary, loss, updates, draw)
        model = model.double()

        chosen, found = [], []
        while len(chosen) < SENTENCES:
            source = strings(draw, 1, vocabulary)[0]
            if any(source.shape == other.shape for other in chosen) and len(chosen) < LONGEST:
                continue
            result, gap = hypotheses(model, source, vocabulary, searches)
            single, _ = hypotheses(model.float(), source, vocabulary, searches)
            model.double()
            same = all(
                [t for t, _, _ in result[key]] == [t for t, _, _ in single[key]] for key in searches
            )
            if gap < LEAST_GAP:
                continue
            assert same, "FP32 must find the same hypotheses where no choice is near"
            off = max(abs(a[1] - b[1]) for key in searches for a, b in zip(result[key], single[key]))
            print(f"  {source[0].tolist()} gap {gap:.1e}, FP32 scores off by {off:.1e}")
            for key in list(searches)[-2:]:
                print(f"    {key}: {[(tokens, round(score, 3)) for tokens, score, _ in result[key][:3]]}")
            chosen.append(source)
            found.append(result)

        rows = fixture.padded([source[0].tolist() for source in chosen], vocabulary["pad"])
        out = {f"weights/{key}": value for key, value in model.named_parameters()}
        out |= {"inputs/source": rows, "inputs/source_lengths": (rows != vocabulary["pad"]).sum(dim=1)}
        for key in searches:
            out |= tensors(key, [result[key] for result in found])
        fixture.save(name, out, {
            "layout": 1, "producer": f"PyTorch {torch.__version__.split('+')[0]}", "computed_in": "float64",
            "model": spec, "vocabulary": vocabulary, "loss": loss, "searches": searches,
        })  # fmt: skip


if __name__ == "__main__":
    main()
