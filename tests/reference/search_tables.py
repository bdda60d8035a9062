"""Searches over tables of logits -> tests/fixtures/search_tables.json.

The decoder is a table: logits of the next token by the last one, the row behind the last being the
start's. It needs no model, so corners can be had that a trained model does not show: padding and an
immediate end that are likely, hardly ever an end.
"""

import numpy as np
import torch

import fixture
from search import search
from search_fixtures import LEAST_GAP, beam, gnmt, joeynmt, length, tensorflow

SIZE = 9
VOCABULARIES = {"openseq2seq": {"pad": 0, "end": 1}, "fairseq": {"pad": 1, "end": 2}}

SEARCHES = {
    "greedy": {"kind": "greedy", "max_length": length(1.0, 3)},
    "tensor2tensor": beam(4, "gnmt", 0.6, "cannot-improve", length(1.0, 3)),
    "tensor2tensor-flat": beam(3, "none", None, "cannot-improve", length(1.5, 1)),
    "tensor2tensor-steep": beam(3, "gnmt", 2.0, "cannot-improve", length(1.0, 6)),
    "fairseq": beam(4, "length-power", 1.0, "beam-finished", length(1.0, 3)),
    "fairseq-flat": beam(3, "length-power", 0.0, "beam-finished", length(2.0, 1)),
    "fairseq-steep": beam(2, "length-power", 2.0, "beam-finished", length(0.5, 4)),
}

# Added to the columns of padding and end, and to the end in the start's row.
CORNERS = {
    "plain": (0.0, 0.0, 0.0),
    "padding-likely": (2.0, 0.0, 0.0),
    "empty-likely": (0.0, 0.0, 3.0),
    "end-rare": (0.0, -4.0, 0.0),
    "end-likely": (0.0, 2.0, 0.0),
}

SEARCHES |= {
    "tensorflow": tensorflow(4, 1.0, length(2.0, 0)),
    "tensorflow-flat": tensorflow(3, 0.0, length(1.0, 3)),
    "tensorflow-steep": tensorflow(3, 2.0, length(2.0, 2)),
    "tensorflow-one": tensorflow(1, 1.0, length(2.0, 0)),
    "gnmt": gnmt(5, 0.6, 0.1, True, length(0.0, 14)),
    "gnmt-short": gnmt(4, 0.6, 0.1, True, length(0.0, 4)),
    "gnmt-mended": gnmt(4, 0.6, 0.4, False, length(0.0, 12)),
    "gnmt-mended-short": gnmt(4, 0.6, 0.4, False, length(0.0, 4)),
    "gnmt-lengths": gnmt(3, 1.0, 0.0, True, length(0.0, 12)),
    "joeynmt": joeynmt(4, 1.0, True, length(1.0, 3)),
    "joeynmt-once": joeynmt(4, 1.0, False, length(1.0, 3)),
    "joeynmt-steep": joeynmt(3, 2.0, True, length(0.0, 5)),
    "joeynmt-one": joeynmt(1, 1.0, True, length(2.0, 0)),
}


def main():
    cases = []
    for corner, (pad, end, first) in CORNERS.items():
        for specials, vocabulary in VOCABULARIES.items():
            draw = np.random.default_rng(600 + len(cases))
            while True:
                logits = torch.from_numpy(1.5 * draw.standard_normal((SIZE + 1, SIZE)))
                logits[:, vocabulary["pad"]] += pad
                logits[:, vocabulary["end"]] += end
                logits[SIZE, vocabulary["end"]] += first
                logits = (logits * 1000).round() / 1000
                log_p = logits.log_softmax(dim=-1)
                source_tokens, gaps = int(draw.integers(2, 6)), []
                weights = torch.from_numpy(draw.standard_normal((SIZE + 1, source_tokens))).softmax(dim=-1)
                # Nothing at all at a place is a corner too; a weight that is exact in FP32 sums
                # alike.
                weights[weights < 0.1] = 0
                weights = weights.float().double()
                found = {
                    name: search(
                        lambda t: log_p[t[-1] if t else SIZE], spec, source_tokens, vocabulary, gaps,
                        lambda t: weights[t[-1] if t else SIZE],
                    )
                    for name, spec in SEARCHES.items()
                }  # fmt: skip
                # A table repeats itself, so permuted hypotheses may be exactly alike; such tables
                # are thrown away.
                if min(gaps) > LEAST_GAP:
                    break
            cases.append({
                "name": f"{corner}-{specials}", "vocabulary": {"size": SIZE, **vocabulary}, "source_tokens": source_tokens,
                "logits": [[round(x, 3) for x in row] for row in logits.tolist()], "attention": weights.tolist(),
                "results": {
                    name: [{"tokens": t, "score": score, "log_p": p} for t, score, p in result]
                    for name, result in found.items()
                },
            })  # fmt: skip
    note = "logits[last] are those of the next token, logits[size] those of the first; so attention; tokens include the end token"
    fixture.save_json("search_tables", {"note": note, "searches": SEARCHES, "cases": cases})


if __name__ == "__main__":
    main()
