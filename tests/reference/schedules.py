"""Learning rates by update, from the published formulas -> tests/fixtures/schedules.json.

`s` is the number of updates done before (of a plateau: of validations, whose losses are given): the
first update has s = 0. `total` is the number of updates of the run, which a decay without a length
of its own ends at. Python floats are FP64.
"""

import math

import torch

import fixture


def decay_span(spec, total):
    """Begin and length of a decay. One that is told no length begins after the warm-up and ends
    with the run.
    """
    begin = spec.get("begin_decay_at", 0)
    if spec.get("decay_updates") is not None:
        return begin, spec["decay_updates"]
    begin = max(begin, spec.get("warmup_updates", 0))
    return begin, total - begin


def warmed(spec, s):
    """The first value, climbing from 0 in a straight line over the warm-up, or from one step above
    0 (nanoGPT, train.py, `get_lr`).
    """
    warmup = spec.get("warmup_updates", 0)
    if s >= warmup:
        return spec["lr"]
    return spec["lr"] * (s + 1) / (warmup + 1) if spec.get("warmup_start") == "step" else spec["lr"] * s / warmup


def fixed(spec, s, total):
    return spec["lr"]


def transformer_policy(spec, s, total):
    w = spec["warmup_updates"]
    rate = spec.get("coefficient", 1.0) * spec["lr"] * spec["width"] ** -0.5
    rate *= min((s + 1) * w**-1.5, (s + 1) ** -0.5)
    return min(rate, spec["max_lr"]) if spec.get("max_lr") is not None else rate


def inverse_sqrt(spec, s, total):
    w, first = spec["warmup_updates"], spec["warmup_init_lr"]
    if s < w:
        return first + s * (spec["lr"] - first) / w
    return spec["lr"] * math.sqrt(w) / math.sqrt(s)


def exp_decay(spec, s, total):
    """The warm-up is NVIDIA's (Jasper, `lr_policy`): there step 1 is the first, and the rate of a
    step is (step + 1) / (w + 1).
    """
    begin, step = spec.get("begin_decay_at", 0), s + 1
    if step < spec.get("warmup_updates", 0):
        return max(spec.get("min_lr", 0.0), spec["lr"] * (step + 1) / (spec["warmup_updates"] + 1))
    length = spec["decay_updates"] if spec.get("decay_updates") is not None else total
    if s < begin:
        return max(spec.get("min_lr", 0.0), spec["lr"])
    exponent = (s - begin) / length
    if spec.get("staircase", False):
        exponent = math.floor(exponent)
    return max(spec.get("min_lr", 0.0), spec["lr"] * spec["decay_rate"] ** exponent)


def poly_decay(spec, s, total):
    begin, length = decay_span(spec, total)
    lr, least = warmed(spec, s), spec.get("min_lr", 0.0)
    if s < begin:
        return lr
    left = 1 - min(s - begin, length) / length
    return (lr - least) * left ** spec.get("power", 1.0) + least


def cosine_decay(spec, s, total):
    begin, length = decay_span(spec, total)
    lr, share = warmed(spec, s), spec.get("min_lr_ratio", 0.0)
    if s < begin:
        return lr
    wave = 0.5 * (1 + math.cos(math.pi * min(s - begin, length) / length))
    return lr * ((1 - share) * wave + share)


def inv_poly_decay(spec, s, total):
    length = spec["decay_updates"] if spec.get("decay_updates") is not None else total
    least, power = max(spec["min_lr"], 1e-8), spec.get("power", 1.0)
    scale = ((spec["lr"] / least) ** (1 / power) - 1) / length
    return spec["lr"] / (1 + scale * s) ** power


def inv(spec, s, total):
    """Caffe, src/caffe/solvers/sgd_solver.cpp, `GetLearningRate`: its `iter` is 0 at the first
    update.
    """
    return spec["lr"] * (1 + spec["gamma"] * s) ** -spec["power"]


def warmup_steps(spec, s, total):
    """NVIDIA's GNMT: a hundredth to all of it, all of it, and then factors at equal distances up to
    the end.
    """
    w, hold = spec["warmup_updates"], int(spec["hold"] * total)
    if w > 0 and s <= w:
        return spec["lr"] * math.exp(math.log(0.01) / w * (w - s))
    if s < hold:
        return spec["lr"]
    distance = max(1, (total - hold) // spec["steps"])
    return spec["lr"] * spec["decay_rate"] ** min(spec["steps"], (s - hold) // distance + 1)


def piecewise_constant(spec, s, total):
    """TensorFlow's intervals are closed on the right: at s = boundary the old factor still
    holds.
    """
    factor = 1.0
    for boundary, after in zip(spec["boundaries"], spec["factors"]):
        if s > boundary:
            factor = after
    return spec["lr"] * factor


# Published settings, and one with every option. Settings on which the published descriptions differ
# are left out: a decay with a length of its own and a warm-up that is longer than `begin_decay_at`.
CASES = {
    "fixed": ({"kind": "fixed", "lr": 1e-3}, 800),
    "fixed-tutorial": ({"kind": "fixed", "lr": 0.5}, 340000),
    "fixed-lm1b": ({"kind": "fixed", "lr": 0.2}, 990000),
    "fixed-icefall": ({"kind": "fixed", "lr": 1e-2}, 300),
    "fixed-deepspeech2": ({"kind": "fixed", "lr": 3e-4}, 800),
    "fixed-d2l": ({"kind": "fixed", "lr": 0.9}, 2350),
    "fixed-keras-adadelta": ({"kind": "fixed", "lr": 1.0}, 5628),
    "lstm-wkt2": ({"kind": "fixed", "lr": 4e-4}, 104250),
    "lstm-test-small": ({"kind": "fixed", "lr": 9e-4}, 3000),
    "imdb-wkt2": ({"kind": "fixed", "lr": 1e-5}, 18750),
    "sst-wkt2": ({"kind": "fixed", "lr": 1e-4}, 41520),
    "sst-imdb-lstm-small": ({"kind": "fixed", "lr": 5e-4}, 2768),
    "wave2letter": ({"kind": "poly-decay", "lr": 0.05, "power": 2.0, "decay_updates": 219600}, 219600),
    "wave2letter-mixed": ({"kind": "poly-decay", "lr": 0.05, "power": 2.0, "decay_updates": 109800}, 109800),
    "fsdd-digits": ({"kind": "poly-decay", "lr": 0.05, "power": 2.0}, 1870),
    "fsdd-digits-finetuned": ({"kind": "poly-decay", "lr": 0.005, "power": 2.0}, 374),
    "deepspeech2-large": ({"kind": "poly-decay", "lr": 1e-3, "power": 0.5}, 439400),
    "deepspeech2-medium": ({"kind": "poly-decay", "lr": 2e-4, "power": 0.5}, 109850),
    "deepspeech2-small": (
        {"kind": "exp-decay", "lr": 1e-4, "decay_updates": 5000, "decay_rate": 0.9, "staircase": True}, 49704),
    "jasper": ({"kind": "poly-decay", "lr": 0.02, "power": 2.0, "min_lr": 1e-5}, 439200),
    "jasper-nvidia": (
        {"kind": "exp-decay", "lr": 0.01, "begin_decay_at": 76704, "decay_updates": 544, "decay_rate": 0.981,
         "staircase": True, "min_lr": 1e-5, "warmup_updates": 1088}, 239360),
    "reversal-transformer": ({"kind": "transformer-policy", "lr": 1.0, "warmup_updates": 200, "width": 128}, 800),
    "transformer-base": ({"kind": "transformer-policy", "lr": 2.0, "warmup_updates": 8000, "width": 512}, 300000),
    "transformer-big": ({"kind": "transformer-policy", "lr": 2.0, "warmup_updates": 8000, "width": 1024}, 300000),
    "vaswani-base": ({"kind": "transformer-policy", "lr": 1.0, "warmup_updates": 4000, "width": 512}, 100000),
    "vaswani-big": ({"kind": "transformer-policy", "lr": 1.0, "warmup_updates": 4000, "width": 1024}, 300000),
    "convs2s": ({"kind": "transformer-policy", "lr": 9.0, "warmup_updates": 4000, "width": 512, "max_lr": 1e-3}, 310000),
    "transformer-policy-coefficient": (
        {"kind": "transformer-policy", "lr": 1.0, "warmup_updates": 10, "width": 64, "coefficient": 0.002}, 100),
    "multi30k-transformer-tiny": (
        {"kind": "inverse-sqrt", "lr": 0.005, "warmup_updates": 2000, "warmup_init_lr": 1e-7}, 8000),
    "inverse-sqrt-nvidia": ({"kind": "inverse-sqrt", "lr": 6e-4, "warmup_updates": 4000, "warmup_init_lr": 0.0}, 50000),
    "inverse-sqrt-nvidia-larger": (
        {"kind": "inverse-sqrt", "lr": 8.46e-4, "warmup_updates": 4000, "warmup_init_lr": 0.0}, 50000),
    "inverse-sqrt-nvidia-16-gpus": (
        {"kind": "inverse-sqrt", "lr": 1e-3, "warmup_updates": 4000, "warmup_init_lr": 0.0}, 50000),
    "fairseq-transformer-big": (
        {"kind": "inverse-sqrt", "lr": 1e-3, "warmup_updates": 4000, "warmup_init_lr": 1e-7}, 24000),
    "gnmt-like": (
        {"kind": "exp-decay", "lr": 8e-4, "begin_decay_at": 170000, "decay_updates": 17000, "decay_rate": 0.5,
         "staircase": True, "min_lr": 5e-7}, 340000),
    "tacotron-like": (
        {"kind": "exp-decay", "lr": 1e-3, "begin_decay_at": 45000, "decay_updates": 20000, "decay_rate": 0.1,
         "min_lr": 1e-5}, 100000),
    "ptb-lstm-small": (
        {"kind": "exp-decay", "lr": 1.0, "begin_decay_at": 6969, "decay_updates": 2323, "decay_rate": 0.5,
         "staircase": True}, 30199),
    "ptb-lstm-medium": (
        {"kind": "exp-decay", "lr": 1.0, "begin_decay_at": 6635, "decay_updates": 1327, "decay_rate": 0.8,
         "staircase": True}, 51753),
    "ptb-lstm-large": (
        {"kind": "exp-decay", "lr": 1.0, "begin_decay_at": 17251, "decay_updates": 1327, "decay_rate": 1 / 1.15,
         "staircase": True}, 72985),
    "exp-decay-whole-run": ({"kind": "exp-decay", "lr": 0.1, "decay_rate": 0.01}, 1000),
    "transformer-novograd": ({"kind": "poly-decay", "lr": 0.04, "power": 2.0}, 600000),
    "poly-decay-warm-up": (
        {"kind": "poly-decay", "lr": 0.02, "power": 2.0, "warmup_updates": 50, "min_lr": 1e-5}, 1000),
    "poly-decay-begin": (
        {"kind": "poly-decay", "lr": 0.02, "power": 0.5, "begin_decay_at": 80, "warmup_updates": 50}, 1000),
    "poly-decay-own-length": (
        {"kind": "poly-decay", "lr": 0.02, "decay_updates": 300, "begin_decay_at": 100, "warmup_updates": 50,
         "min_lr": 1e-4}, 1000),
    "cosine-decay": ({"kind": "cosine-decay", "lr": 0.1}, 1000),
    "cosine-decay-warm-up": (
        {"kind": "cosine-decay", "lr": 0.1, "warmup_updates": 100, "min_lr_ratio": 0.05}, 1000),
    "cosine-decay-own-length": (
        {"kind": "cosine-decay", "lr": 0.1, "decay_updates": 250, "begin_decay_at": 30, "min_lr_ratio": 0.01}, 1000),
    "cosine-decay-warm-up-step": (
        {"kind": "cosine-decay", "lr": 0.1, "warmup_updates": 100, "warmup_start": "step", "min_lr_ratio": 0.05}, 1000),
    "shakespeare-char-nanogpt": (
        {"kind": "cosine-decay", "lr": 1e-3, "warmup_updates": 100, "warmup_start": "step", "begin_decay_at": 100,
         "decay_updates": 4900, "min_lr_ratio": 0.1}, 5000),
    "shakespeare-char-nanogpt-cpu": (
        {"kind": "cosine-decay", "lr": 1e-3, "warmup_updates": 100, "warmup_start": "step", "begin_decay_at": 100,
         "decay_updates": 1900, "min_lr_ratio": 0.1}, 2000),
    "gnmt-v2": (
        {"kind": "warmup-steps", "lr": 2e-3, "warmup_updates": 200, "hold": 0.666, "steps": 4, "decay_rate": 0.5}, 20496),
    "convs2s-fairseq": (
        {"kind": "warmup-steps", "lr": 0.5, "warmup_updates": 0, "hold": 0.925926, "steps": 4, "decay_rate": 0.1},
        1620000),
    "convs2s-multi30k": (
        {"kind": "transformer-policy", "lr": 9.0, "warmup_updates": 4000, "width": 128, "max_lr": 1e-3}, 2718),
    "inv-poly-decay": ({"kind": "inv-poly-decay", "lr": 1e-3, "min_lr": 1e-5, "power": 2.0}, 1000),
    "inv-poly-decay-clamped": ({"kind": "inv-poly-decay", "lr": 1e-3, "min_lr": 0.0, "decay_updates": 400}, 1000),
    "lenet-caffe": ({"kind": "inv", "lr": 0.01, "gamma": 1e-4, "power": 0.75}, 10000),
    "inv": ({"kind": "inv", "lr": 0.5, "gamma": 0.25, "power": 2.0}, 400),
    "piecewise-constant": (
        {"kind": "piecewise-constant", "lr": 0.4, "boundaries": [30, 60, 80], "factors": [0.1, 0.01, 0.001]}, 100),
    "tacotron2-nvidia": (
        {"kind": "piecewise-constant", "lr": 1e-3, "boundaries": [16500, 33000, 49500], "factors": [0.1, 0.01, 0.001]}, 49533),
    "tacotron2-nvidia-mixed": (
        {"kind": "piecewise-constant", "lr": 1e-3, "boundaries": [7500, 15000, 22500], "factors": [0.3, 0.1, 0.03]}, 22515),
    "tacotron2-nvidia-tf32": (
        {"kind": "piecewise-constant", "lr": 1e-3, "boundaries": [6500, 13000, 19500], "factors": [0.1, 0.01, 0.001]}, 19513),
    "tacotron2-nvidia-mixed-a100": (
        {"kind": "piecewise-constant", "lr": 1e-3, "boundaries": [6500, 13000, 19500], "factors": [0.3, 0.1, 0.03]}, 19513),
    "ljspeech-32": (
        {"kind": "piecewise-constant", "lr": 1e-3, "boundaries": [1600, 2200], "factors": [0.3, 0.1]}, 2400),
}  # fmt: skip


# Losses of validations; better is lower, equal is no better.
PLATEAUS = {
    "iwslt14-lstm": (
        {"kind": "plateau", "lr": 1e-3, "factor": 0.5, "patience": 0, "min_lr": 5e-5},
        [5.0, 4.0, 4.1, 3.9, 3.9, 3.8, 4.0, 4.0, 3.7, 3.75]),
    "convs2s-gehring": (
        {"kind": "plateau", "lr": 0.25, "factor": 0.1, "patience": 0, "keeps_falling": True, "min_lr": 1e-4},
        [5.0, 4.5, 4.2, 4.0, 3.9, 3.95, 3.5, 3.4, 3.45, 3.3]),
    "multi30k-lstm": (
        {"kind": "plateau", "lr": 0.5, "factor": 0.5, "patience": 0, "min_lr": 0.01},
        [5.0, 4.0, 3.5, 3.6, 3.3, 3.3, 3.31, 3.2, 3.25, 3.25, 3.25]),
    "ptb-lstm-pytorch": (
        {"kind": "plateau", "lr": 20.0, "factor": 0.25, "patience": 0, "min_lr": 0.0},
        [5.5, 5.1, 4.9, 4.95, 4.8, 4.8, 4.75, 4.76, 4.7, 4.71]),
    "plateau-patient": (
        {"kind": "plateau", "lr": 0.1, "factor": 0.5, "patience": 2, "min_lr": 1e-9},
        [3.0, 2.0, 2.5, 2.4, 2.3, 2.2, 2.1, 2.05, 1.9, 1.9, 1.9, 1.9, 1.8]),
}  # fmt: skip


def plateau(spec, losses):
    """PyTorch's ReduceLROnPlateau; or, where the rate keeps falling, a factor at every validation
    from the first worse one on.
    """
    if spec.get("keeps_falling", False):
        first = next(i for i, loss in enumerate(losses) if i and loss >= min(losses[:i]))
        return [[k, spec["lr"] * spec["factor"] ** max(0, k - first)] for k in range(len(losses) + 1)]
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=spec["lr"])
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=spec["factor"], patience=spec["patience"], threshold=0.0, eps=0.0
    )
    rates = [[0, spec["lr"]]]
    for k, loss in enumerate(losses):
        scheduler.step(loss)
        rates.append([k + 1, optimizer.param_groups[0]["lr"]])
    return rates


def updates(spec, total):
    """Where the rate is looked at: both sides of every corner, and the way between."""
    corners = [0, total, *spec.get("boundaries", [])]
    corners += [spec.get(key) or 0 for key in ("warmup_updates", "begin_decay_at", "decay_updates")]
    if "hold" in spec:
        hold = int(spec["hold"] * total)
        corners += [hold + k * ((total - hold) // spec["steps"]) for k in range(spec["steps"] + 1)]
    begin, length = spec.get("begin_decay_at", 0), spec.get("decay_updates") or 0
    corners += [begin + length, begin + 2 * length]
    near = {corner + shift for corner in corners for shift in (-1, 0, 1, 2)}
    return sorted(s for s in near | {total * k // 16 for k in range(17)} | {10, 100} if 0 <= s <= total + 1)


def main():
    cases = []
    for name, (spec, total) in CASES.items():
        rule = globals()[spec["kind"].replace("-", "_")]
        rates = [[s, rule(spec, s, total)] for s in updates(spec, total)]
        cases.append({"name": name, "schedule": spec, "total_updates": total, "rates": rates})
    for name, (spec, losses) in PLATEAUS.items():
        rates = plateau(spec, losses)
        cases.append({"name": name, "schedule": spec, "total_updates": 0, "losses": losses, "rates": rates})
    note = "rates: [updates done before, learning rate of the next one]"
    fixture.save_json("schedules", {"note": note, "cases": cases})


if __name__ == "__main__":
    main()
