#!/usr/bin/env python3
"""Goldens of sacreBLEU for the metrics of zoo-results.

    pip install sacrebleu==2.6.0 numpy==2.4.6
    python tests/reference/sacrebleu_goldens.py > results/tests/fixtures/sacrebleu_goldens.json

Every case is a corpus, a number of reference streams and a signature; options are not stored apart,
so that the Rust side must get all of them from the signature. Numbers are printed with all their
digits.
"""

import itertools
import json
import random
import sys

import numpy
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

BASE = [
    "The committee adopted the report by 27 votes to 3, with 2 abstentions.",
    "Zwei Hunde laufen über eine grüne Wiese; der kleinere bellt.",
    "\"I can't,\" she said, \"not before 10:30 a.m. on the 3rd.\"",
    "Ein Mann in einem blau-weißen Hemd steht auf einer Leiter und putzt ein Fenster.",
    "Prices rose by 1,234.50 dollars (about 3.2%), the largest rise since 1998-99.",
    "Η γάτα κοιμάται στον ήλιο, όπως κάθε ΠΡΩΪ.",
    "Поезд №7 отправляется в 18.45 с третьего пути – не опоздайте!",
    "他买了3本书，花了59.90元。",
    "東京の気温は25℃です。",
    "أغلق المتجر أبوابه الساعة ٧ مساءً.",
    "यह किताब बहुत अच्छी है।",
    "It's John's dog, isn't it? Yes: it's Mary-Ann's too…",
    "Das kostet 5€, nicht 7 £ oder 9 $.",
    "A person wearing a red helmet rides a bike down a steep, rocky hill.",
    "Two young girls are playing with a kite near the sea.",
]
ODD = [
    "", " ", ".", "a", "a b", "a b c", "The  the\tthe the the", "&quot;x&quot; &amp;amp; &lt;b&gt; <skipped> y",
    "line-\nbreak and\nnext", "no\u00a0break\u2003space\u3000here", "\u200bzero\u200bwidth", "e\u0301 vs \u00e9", "İstanbul ISTANBUL ß ẞ",
    "👩‍👩‍👧 family 👍🏽 ok", "1.000,5 -3 3-4 a-4 4-a .5 5. ,6 6,", "'s it's 's", "((hi)) (hi) hi) \"hi\" ¿qué? «oui»",
    "→ x − y ≤ z … – — ‘q’ “q”", "𠀀𠀁 ext-B 漢字ｶﾅ　全角！", "A" * 40, "x " * 30, "\ufeffbom", "tab\tend \t",
]
SEPARATORS = ["a\u001cb c\u001d", "\u001ed e\u001ff", "g h\u001c i. j", "plain line, here"]


def perturb(rng, line):
    words = line.split(" ")
    for _ in range(rng.randint(0, 4)):
        if not words:
            break
        i = rng.randrange(len(words))
        kind = rng.randrange(6)
        if kind == 0:
            words.insert(i, rng.choice(rng.choice(BASE).split(" ")))
        elif kind == 1:
            del words[i]
        elif kind == 2:
            words[i] = rng.choice(rng.choice(BASE).split(" "))
        elif kind == 3:
            words[i] = words[i].swapcase()
        elif kind == 4:
            j, n = rng.randrange(len(words)), rng.randint(1, 3)
            block = words[i:i + n]
            del words[i:i + n]
            words[j:j] = block
        elif words[i]:
            k = rng.randrange(len(words[i]))
            words[i] = words[i][:k] + words[i][k + 1:]
    return " ".join(words)


def corpora():
    rng = random.Random(20)
    made = {}
    lines = [rng.choice(BASE) for _ in range(30)]
    made["ordinary"] = [lines] + [[perturb(rng, l) for l in lines] for _ in range(4)]
    lines = ODD + [rng.choice(ODD) + " " + rng.choice(ODD) for _ in range(12)]
    shuffled = lines[:]
    rng.shuffle(shuffled)
    made["odd"] = [lines, [perturb(rng, l) for l in lines], shuffled, [perturb(rng, l) for l in lines]]
    made["separators"] = [SEPARATORS, [perturb(rng, l) for l in SEPARATORS], SEPARATORS[::-1]]
    made["short"] = [["a b c", "d e", "f", "g h"], ["a b d", "d", "f e", "g h i"], ["a b c", "e d", "", "h g"]]
    made["disjoint"] = [["x y z w", "u v"], ["a b c d e", "f"], ["g", "h i"]]
    made["empty"] = [["", ""], ["a b", ""], ["", ""]]
    made["one"] = [["The cat sat on the mat."], ["The cat sat on a mat ."], ["the Cat was sitting on the mat."]]
    return made


def run(metric, name, streams, references, samples=1):
    score = metric.corpus_score(streams[-1], streams[:references], n_bootstrap=samples)
    case = {"corpus": name, "signature": str(metric.get_signature()), "score": score.score}
    if isinstance(metric, BLEU):
        case["verbose"] = score._verbose
    if samples > 1:
        case["mean"], case["half_width"] = float(score._mean), float(score._ci)
    return case


def metrics():
    """Every option at least once on every corpus; smoothing and effective order in full."""
    cases, tokenizers = (False, True), ("13a", "intl", "char", "none", "zh")
    for lowercase, tokenize in itertools.product(cases, tokenizers):
        yield lambda l=lowercase, t=tokenize: BLEU(lowercase=l, tokenize=t, force=True)
    smoothings = [("none", None), ("floor", None), ("floor", 0.5), ("add-k", None), ("add-k", 0.5), ("add-k", 2), ("exp", None)]
    for (method, value), effective in itertools.product(smoothings, cases):
        yield lambda m=method, v=value, e=effective: BLEU(
            smooth_method=m, smooth_value=v, effective_order=e, tokenize="none", force=True)
    for words, lowercase, whitespace, eps in itertools.product((0, 1, 2), cases, cases, cases):
        yield lambda w=words, l=lowercase, s=whitespace, e=eps: CHRF(
            char_order=6 if not l else 4, word_order=w, lowercase=l, whitespace=s, eps_smoothing=e)
    for normalized, no_punct, sensitive in itertools.product(cases, cases, cases):
        yield lambda n=normalized, p=no_punct, c=sensitive: TER(normalized=n, no_punct=p, case_sensitive=c)


def paired(name, streams, references):
    """Systems: the last stream, the hypotheses of a neighbouring stream, and the last stream itself
    again.
    """
    systems = [("base", streams[-1]), ("other", streams[-2]), ("same", streams[-1])]
    made = {"BLEU": BLEU(force=True), "chrF": CHRF(word_order=2), "TER": TER()}
    signatures, results = PairedTest(systems, made, streams[:references], test_type="bs", n_samples=500)()
    out = []
    for metric, values in results.items():
        if metric == "System":
            continue
        base, *others = values
        # Built anew: the test's own signature lacks the options of the resampled score.
        signature = "|".join(p for p in str(signatures[metric]).split("|") if not p.startswith(("bs:", "seed:")))
        for stream, result in zip((-2, -1), others):
            out.append({
                "corpus": name, "signature": signature, "samples": 500, "system": len(streams) + stream,
                "baseline": len(streams) - 1, "p_value": result.p_value,
                "scores": [base.score, result.score],
                "means": [float(base.mean), float(result.mean)],
                "half_widths": [float(base.ci), float(result.ci)],
            })
    return out


def main():
    assert sacrebleu.__version__ == "2.6.0" and numpy.__version__.startswith("2."), "see the head of this file"
    made = corpora()
    cases = []
    for name, streams in made.items():
        for references in range(1, len(streams)):
            for build in metrics():
                if references in (1, len(streams) - 1):
                    cases.append(run(build(), name, streams, references))
    for name in ("ordinary", "odd", "short"):
        streams = made[name]
        for references in (1, len(streams) - 1):
            for metric in (BLEU(force=True), BLEU(force=True, smooth_method="floor", effective_order=True),
                           BLEU(force=True, smooth_method="add-k", smooth_value=0.5, tokenize="intl"),
                           CHRF(), CHRF(word_order=2, eps_smoothing=True), TER()):
                cases.append(run(metric, name, streams, references, samples=400))
    tests = [t for name in ("ordinary", "odd") for n in (1, 2) for t in paired(name, made[name], n)]
    document = {"sacrebleu": sacrebleu.__version__, "numpy": numpy.__version__, "corpora": made, "cases": cases,
                "paired": tests}
    json.dump(document, sys.stdout, ensure_ascii=True, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
