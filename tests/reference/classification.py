#!/usr/bin/env python3
"""Goldens of classification and likelihood: scikit-learn 1.7.2, NumPy.

    pip install scikit-learn==1.7.2
    python tests/reference/classification.py > results/tests/fixtures/classification_goldens.json

Scores of a few classes with one decimal, so that ties abound; of each case the right answers among
the first k by scikit-learn's `top_k_accuracy_score` (of equal scores the last class is first) and
by NumPy's stable sort (the first class is first, as in its argmax), precision, recall and F1 of
each class that labels or answers have (of equal scores the first class is the answer) and F1's mean
over them, a ranking of the classes by the latter, and the mean negative log-likelihood in nats of
the softmax (`log_loss`), with e to its power.
"""

import json

import numpy as np
import sklearn
from sklearn.metrics import (accuracy_score, f1_score, log_loss, precision_recall_fscore_support, top_k_accuracy_score,
                             zero_one_loss)


def case(name, seed, records, classes, scale):
    random = np.random.default_rng(seed)
    labels = random.integers(classes, size=records)
    scores = np.round(random.normal(size=(records, classes)) * scale, 1)
    scores[np.arange(records), labels] = np.round(scores[np.arange(records), labels] + scale, 1)
    # Equal logits in a tenth of the records.
    scores[::10] = 0.0
    order = np.argsort(-scores, axis=1, kind="stable")
    log_probabilities = scores - scores.max(axis=1, keepdims=True)
    log_probabilities -= np.log(np.exp(log_probabilities).sum(axis=1, keepdims=True))
    every = np.arange(classes)
    found = {
        "name": name,
        "classes": classes,
        "labels": labels.tolist(),
        "scores": (scores + 0.0).tolist(),
        "ranking": order.tolist(),
        "nats": (-log_probabilities[np.arange(records), labels]).tolist(),
        "log_loss": log_loss(labels, np.exp(log_probabilities), labels=every),
        "accuracy": accuracy_score(labels, scores.argmax(axis=1)),
        "error": zero_one_loss(labels, scores.argmax(axis=1)),
        "top": [],
    }
    answers = scores.argmax(axis=1)
    present = np.union1d(labels, answers)
    precision, recall, f1, records = precision_recall_fscore_support(labels, answers, zero_division=0)
    found["f1"] = f1_score(labels, answers, average="macro", zero_division=0)
    found["by_class"] = [
        {"class": int(c), "precision": float(p), "recall": float(r), "f1": float(f), "records": int(n)}
        for c, p, r, f, n in zip(present, precision, recall, f1, records)
    ]
    for k in sorted({1, 2, 5} & set(range(1, classes))):
        first = float((order[:, :k] == labels[:, None]).any(axis=1).mean())
        # Of two classes scikit-learn takes one score a record.
        theirs = None if classes == 2 else top_k_accuracy_score(labels, scores, k=k, labels=every)
        found["top"].append({"k": k, "first": first, "last": theirs})
    found["perplexity"] = float(np.exp(found["log_loss"]))
    return found


print(json.dumps({
    "sklearn": sklearn.__version__,
    "numpy": np.__version__,
    "cases": [case("three", 1, 120, 3, 1.0), case("ten", 2, 150, 10, 0.6), case("two", 3, 60, 2, 1.0),
              # A class has neither record nor answer, others lack one of them.
              case("rare", 5, 45, 20, 0.4)],
}))
