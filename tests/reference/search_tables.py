"""Searches over tables of logits -> tests/fixtures/search_tables.json.

The decoder is a table: logits of the next token by the last one, the row behind the last being the start's. It needs no model, so
corners can be had that a trained model does not show: padding and an immediate end that are likely, hardly ever an end.
"""

import numpy as np
import torch

import fixture
from search import search
from search_fixtures import LEAST_GAP, beam, length

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
                found = {
                    name: search(lambda t: log_p[t[-1] if t else SIZE], spec, source_tokens, vocabulary, gaps)
                    for name, spec in SEARCHES.items()
                }
                # A table repeats itself, so permuted hypotheses may be exactly alike; such tables are thrown away.
                if min(gaps) > LEAST_GAP:
                    break
            cases.append({
                "name": f"{corner}-{specials}", "vocabulary": {"size": SIZE, **vocabulary}, "source_tokens": source_tokens,
                "logits": [[round(x, 3) for x in row] for row in logits.tolist()],
                "results": {
                    name: [{"tokens": t, "score": score, "log_p": p} for t, score, p in result]
                    for name, result in found.items()
                },
            })  # fmt: skip
    note = "logits[last] are those of the next token, logits[size] those of the first; tokens include the end token"
    fixture.save_json("search_tables", {"note": note, "searches": SEARCHES, "cases": cases})


if __name__ == "__main__":
    main()
