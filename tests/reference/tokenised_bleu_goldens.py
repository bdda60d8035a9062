#!/usr/bin/env python3
"""Goldens of tokenised BLEU: Moses' multi-bleu.perl and fairseq's libbleu, both run, neither kept
here.

    g++ -O2 -shared -fPIC -o libbleu.so FAIRSEQ/fairseq/clib/libbleu/libbleu.cpp
    python tests/reference/tokenised_bleu_goldens.py MOSES/scripts/generic/multi-bleu.perl libbleu.so \
        > results/tests/fixtures/tokenised_bleu_goldens.json

For fairseq, the counts come from the library; the dictionary, the lower-casing and the last
formula, which are Python in fairseq-score, are written out below from its description.
"""

import ctypes
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

WORDS = "ein eine der Hund HUND läuft LÄUFT über Über das grüne Gras . , ' @-@ 3 10:30 ß ẞ İ und".split(" ")
ODD = ["<unk>", "<pad>", "</s>", "a\u00a0b", "c\u2003d", "e\u3000f", "g\u0085h", "i\u001cj", "k\u000bl", "m\u000cn", "\tt", "x\r"]
COUNTS = ("reflen", "predlen", "match1", "count1", "match2", "count2", "match3", "count3", "match4", "count4")


class Statistics(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in COUNTS]


def corpora():
    rng = random.Random(4)

    def line(longest, vocabulary):
        return " ".join(rng.choice(vocabulary) for _ in range(rng.randint(0, longest)))

    def edited(text, vocabulary):
        words = text.split(" ")
        for _ in range(rng.randint(0, 3)):
            i = rng.randrange(len(words) + 1)
            words[i:i + rng.randint(0, 1)] = [rng.choice(vocabulary)] * rng.randint(0, 2)
        return " ".join(words)

    made = {}
    for name, lines, longest, vocabulary in [
        ("plain", 40, 25, WORDS), ("odd", 40, 12, WORDS + ODD), ("short", 12, 4, WORDS), ("tiny", 1, 6, WORDS),
        ("markers", 20, 6, ODD),
    ]:
        first = [line(longest, vocabulary) for _ in range(lines)]
        first[0] = first[0] or "und"
        made[name] = [first] + [[edited(l, vocabulary) for l in first] for _ in range(3)]
    made["unmatched"] = [["a b c d e"], ["f g h i"]]
    made["cut"] = [["a b c d e f g h", "a b c d e f g h i j k l"], ["a b c d e", ""]]
    return made


def multi_bleu(script, hypotheses, references, lower):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for i, stream in enumerate(references):
            (folder / f"ref{i}").write_bytes("".join(l + "\n" for l in stream).encode())
        command = ["perl", script] + (["-lc"] if lower else []) + [str(folder / "ref")]
        done = subprocess.run(command, input="".join(l + "\n" for l in hypotheses).encode(), capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def fairseq(library, hypotheses, reference, lower):
    indices = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}

    def encode(text):
        text = text.lower() if lower else text
        return [indices.setdefault(w, len(indices)) for w in text.split()] + [2]

    counts = Statistics()
    for hypothesis, truth in zip(hypotheses, reference):
        h = encode(hypothesis)
        r = [-999 if i == 3 else i for i in encode(truth)]
        library.bleu_add(
            ctypes.byref(counts), ctypes.c_size_t(len(r)), (ctypes.c_int * len(r))(*r),
            ctypes.c_size_t(len(h)), (ctypes.c_int * len(h))(*h), ctypes.c_int(1), ctypes.c_int(2))
    shares = [getattr(counts, f"match{n}") / max(getattr(counts, f"count{n}"), 1) for n in (1, 2, 3, 4)]
    penalty = min(1.0, math.exp(1 - counts.reflen / counts.predlen))
    logs = [math.log(p) if p > 0 else -math.inf for p in shares]
    return {
        "score": 100 * penalty * math.exp(sum(logs) / 4),
        "correct": [getattr(counts, f"match{n}") for n in (1, 2, 3, 4)],
        "total": [getattr(counts, f"count{n}") for n in (1, 2, 3, 4)],
        "lengths": [counts.predlen, counts.reflen],
        "brevity_penalty": penalty,
    }


def main():
    script, library = sys.argv[1], ctypes.CDLL(sys.argv[2])
    made, moses, fair = corpora(), [], []
    for name, streams in made.items():
        for lower in (False, True):
            for n in range(1, len(streams)):
                line = multi_bleu(script, streams[-1], streams[:n], lower)
                moses.append({"corpus": name, "references": n, "lower": lower, "line": line})
            fair.append({"corpus": name, "lower": lower, **fairseq(library, streams[-1], streams[0], lower)})
    json.dump({"corpora": made, "multi_bleu": moses, "fairseq": fair}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
