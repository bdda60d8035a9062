#!/usr/bin/env python3
"""Goldens of word and character error rate: jiwer 4.0.

    pip install jiwer==4.0.0
    python tests/reference/wer.py > results/tests/fixtures/wer_goldens.json
    python tests/reference/wer.py --time

Pairs of lines with every kind of white space, empty lines, repeated words, letters of several
scripts; of each the edits that jiwer counts, one letter a unit in runs ("12H1S": twelve hits, a
substitution), by words and by characters, as the text stands and lowered. Long utterances come from
a generator that the test has as well, and only their counts and a digest are kept: RapidFuzz, below
jiwer, cuts a long pair in two, and that decides which of equally short alignments is counted.

`--time` times jiwer on 6,010 pairs of the same generator.
"""

import hashlib
import itertools
import json
import random
import sys
import time

import jiwer

WORDS = "the a cat cat sat sat on on mat The CAT it's don't ÄRGER über ΣΑΣ ΟΔΟΣ İstanbul straße éa e\u0301a 你 好 你好 слово 🙂 👩\u200d👩 \u200b , .".split(" ")
SPACES = [" "] * 12 + ["  ", "   ", "\t", "\t\t", " \t", "\n", "\u00a0", "\u3000 ", "\u2003", "\u001c", "\u0085", "\r\n", "\u000b"]
LETTERS = {"equal": "H", "substitute": "S", "delete": "D", "insert": "I"}
LOWER = {
    False: (jiwer.transformations.wer_default, jiwer.transformations.cer_default),
    True: tuple(jiwer.Compose([jiwer.ToLowerCase(), *t.transforms])
                for t in (jiwer.transformations.wer_default, jiwer.transformations.cer_default)),
}


def script(chunks):
    """Runs of edits, runs of the same kind joined."""
    runs = []
    for chunk in chunks:
        length = max(chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx)
        runs.append((LETTERS[chunk.type], length))
    return "".join(f"{sum(n for _, n in same)}{kind}" for kind, same in itertools.groupby(runs, lambda run: run[0]))


def counts(output):
    return [output.hits, output.substitutions, output.deletions, output.insertions]


def pairs():
    rng = random.Random(6010)

    def joined(words):
        text = "".join(w + rng.choice(SPACES) for w in words)
        if words and rng.random() < 0.8:
            text = text.strip()
        return rng.choice(["", "", "", " ", "\t"]) + text

    def edited(words):
        words = list(words)
        for _ in range(rng.randint(0, 6)):
            i = rng.randrange(len(words) + 1)
            kind = rng.randrange(4)
            if kind == 0:
                words[i:i + 1] = [rng.choice(WORDS)]
            elif kind == 1:
                del words[i:i + 1]
            elif kind == 2:
                words.insert(i, rng.choice(WORDS))
            elif i < len(words):
                words[i] = words[i].swapcase()
        return words

    made = [("", ""), ("", "a b"), ("a b", ""), (" ", "\t"), ("a", "a"), ("a a a a", "a"), ("a", "a a a a"), ("\t", "x")]
    while len(made) < 600:
        words = [rng.choice(WORDS) for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 12]))]
        other = edited(words) if rng.random() < 0.8 else [rng.choice(WORDS) for _ in range(rng.randint(0, 9))]
        made.append((joined(words), joined(other)))
    return made


def generator(seed):
    """Knuth's MMIX generator; the upper 32 bits."""
    while True:
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        yield seed >> 32


def generated(seed, length, kinds, wrong):
    """Words w0, w1, ... and the same with `wrong` of a thousand changed, missing or doubled."""
    draw = generator(seed)
    reference, hypothesis = [], []
    for _ in range(length):
        word = f"w{next(draw) % kinds}"
        reference.append(word)
        fate = next(draw) % 3000
        if fate >= 3 * wrong:
            hypothesis.append(word)
        elif fate < wrong:
            hypothesis.append(f"w{next(draw) % kinds}")
        elif fate < 2 * wrong:
            hypothesis += [word, word]
    return " ".join(reference), " ".join(hypothesis)


# seed, words, kinds of words, wrong ones of a thousand. Tables of 2 bits a cell pass a mebibyte at
# 2,048 by 2,048.
LONG = [(1, 64, 20, 300), (2, 65, 5, 300), (3, 700, 9, 500), (4, 2040, 40, 200), (5, 2200, 3, 600), (6, 3000, 50, 200),
        (7, 6000, 4, 700), (8, 9000, 300, 100), (9, 20000, 2000, 150), (10, 12000, 2, 990)]


def goldens():
    made = pairs()
    result = {"jiwer": "4.0.0", "pairs": made, "sets": [], "long": []}
    references, hypotheses = map(list, zip(*made))
    for lower, (words, characters) in LOWER.items():
        for metric, process, transform in [("wer", jiwer.process_words, words), ("cer", jiwer.process_characters, characters)]:
            output = process(references, hypotheses, transform, transform)
            result["sets"].append({
                "metric": metric, "lower": lower, "rate": getattr(output, metric), "counts": counts(output),
                # The whole scripts of the text as it stands, a digest of them where it is lowered.
                "scripts": [script(a) for a in output.alignments],
            })
            if lower:
                scripts = result["sets"][-1].pop("scripts")
                result["sets"][-1]["sha256"] = hashlib.sha256("\n".join(scripts).encode()).hexdigest()
    for seed, length, kinds, wrong in LONG:
        output = jiwer.process_words(*generated(seed, length, kinds, wrong))
        result["long"].append({
            "seed": seed, "length": length, "kinds": kinds, "wrong": wrong, "counts": counts(output),
            "sha256": hashlib.sha256(script(output.alignments[0]).encode()).hexdigest(),
        })
    return result


def timed():
    references, hypotheses = map(list, zip(*(generated(seed, 5 + seed % 31, 400, 150) for seed in range(6010))))
    for name, process in [("words", jiwer.process_words), ("characters", jiwer.process_characters)]:
        best, output = float("inf"), None
        for _ in range(5):
            start = time.perf_counter()
            output = process(references, hypotheses)
            best = min(best, time.perf_counter() - start)
        print(f"jiwer, 6,010 pairs by {name}: {1000 * best:.1f} ms, {counts(output)}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--time"]:
        timed()
    else:
        json.dump(goldens(), sys.stdout, ensure_ascii=False, separators=(",", ":"))
        print()
