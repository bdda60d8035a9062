#!/usr/bin/env python3
"""Goldens of mel-cepstral distortion: SciPy's DCT, paths by librosa.

    pip install numpy scipy librosa
    python tests/reference/mel_cepstral.py > results/tests/fixtures/mel_cepstral_goldens.json

(Written with numpy 2.4.6, SciPy 1.17.1, librosa 0.11.0.) Spectrograms come from a generator that
the test has as well, in arithmetic that is exact, so that both sides start from the same bits; of
each pair are kept: cepstra of the first frames, the sum over the path of least cost and the path's
length, the distortion with and without warping, the squared error. The path is searched in two
ways, by librosa.sequence.dtw and by a loop that keeps the whole table; they must agree, and the
search must have no second answer.
"""

import json
import sys

import librosa
import numpy as np
from scipy.fft import dct

DECIBELS = 10 / np.log(10) * np.sqrt(2)


class Generator:
    """64-bit congruences (Knuth's MMIX); numbers are the upper 24 bits, exact in f32."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 40) / 2**24


def spectrogram(random, frames, mels):
    """Logarithms from -11.5 to 2, neighbouring frames alike: each is the mean of the last and of
    noise.
    """
    last, rows = [random.next() for _ in range(mels)], []
    for _ in range(frames):
        last = [(x + random.next()) / 2 for x in last]
        rows.append([np.float32(13.5 * x - 11.5) for x in last])
    return np.array(rows, np.float32)


def spoken_again(random, target, length):
    """The same with noise, first slower, then faster: frame t of `length` is that at frames x (t /
    length)^2, give or take 0.5.
    """
    frames = [target[t * t * len(target) // length**2] for t in range(length)]
    noisy = [[np.float32(np.float64(x) + random.next() - 0.5) for x in frame] for frame in frames]
    return np.array(noisy, np.float32)


def cepstra(mel, coefficients):
    return dct(mel.astype(np.float64), type=2, norm="ortho", axis=1)[:, 1 : coefficients + 1]


def table(a, b):
    """(sum, pairs) of the cheapest path to the last pair; of equally cheap ones the shortest."""
    distance = np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))
    best = {}
    for i in range(len(a)):
        for j in range(len(b)):
            before = [best[at] for at in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if at in best]
            cost, pairs = min(before) if before else (0.0, 0)
            best[i, j] = (cost + distance[i, j], pairs + 1)
    return best[len(a) - 1, len(b) - 1]


def case(seed, frames, length, mels, coefficients):
    random = Generator(seed)
    target = spectrogram(random, frames, mels)
    predicted = spoken_again(random, target, length)
    a, b = cepstra(target, coefficients), cepstra(predicted, coefficients)
    cost, pairs = table(a, b)
    costs, path = librosa.sequence.dtw(a.T, b.T, metric="euclidean")
    assert abs(costs[-1, -1] - cost) < 1e-9 * cost and len(path) == pairs, (costs[-1, -1], cost, len(path), pairs)
    found = {
        "seed": seed, "frames": frames, "length": length, "mels": mels, "coefficients": coefficients,
        "first": [a[0].tolist(), b[0].tolist()],
        "cost": cost, "pairs": pairs, "warped": DECIBELS * cost / pairs,
    }
    if frames == length:
        found["straight"] = DECIBELS * float(np.mean(np.sqrt(((a - b) ** 2).sum(-1))))
        found["mel_error"] = float(np.mean((target.astype(np.float64) - predicted) ** 2))
    return found


CASES = [
    (1, 1, 1, 80, 13), (2, 1, 9, 80, 13), (3, 9, 1, 80, 13), (4, 20, 20, 80, 13), (5, 60, 47, 80, 13),
    (6, 47, 60, 80, 13), (7, 120, 131, 80, 24), (8, 33, 33, 40, 12), (9, 50, 90, 20, 19), (10, 25, 25, 2, 1),
    (11, 300, 260, 80, 13),
]

if __name__ == "__main__":
    json.dump([case(*one) for one in CASES], sys.stdout, indent=1)
    print()
