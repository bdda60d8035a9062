"""Classifiers of texts -> tests/fixtures/text_classifier.safetensors.

For each case CASE: `CASE/ids` [texts, positions] with padding 0, `CASE/labels`, `CASE/weights/PATH`
under our paths, `CASE/logits` [texts, classes], `CASE/loss` (cross-entropy, summed over the texts),
`CASE/top1` (number of right answers), `CASE/gradients/PATH` of the mean over the texts, and
`CASE/updated/PATH`, the weights after one update by SGD, with rows of the norm that the case sets.
Everything is computed in evaluation mode: dropout does nothing. Biases and recurrent weights are
not those that a model starts with.

A case whose last layer has one output is of two classes: its loss is PyTorch's binary cross-entropy
with logits, and the score of the first class is 0. The gates of Keras 2 are 0.2 x + 0.5 within 0
and 1; the drawn weights drive some beyond.
"""

import numpy as np
import torch
import torch.nn.functional as F

import fixture

ROWS, TEXTS, POSITIONS, RATE = 11, 6, 12, 0.5
START = {"weights": {"kind": "uniform", "bound": 0.1}}


def dense(units, **more):
    return {"kind": "dense", "units": units, **START, **more}


def lstm(units, gates, **more):
    return {"kind": "lstm", "units": units, "gates": gates, **more}


def convolution(channels, kernel):
    return {"kind": "convolution", "channels": channels, "kernel": kernel, **START}


EMBEDDING, WITHOUT_PADDING = {"kind": "embedding", "width": 5, **START}, {"kind": "embedding", "width": 5, **START, "zero_padding": True}
RELU, DROPOUT = {"kind": "relu"}, {"kind": "dropout", "rate": 0.5}
MAXIMUM, MEAN = {"kind": "over-positions", "of": "max"}, {"kind": "over-positions", "of": "average"}
CASES = {
    "mean": (2, [EMBEDDING, MEAN, dense(1)]),
    "convolution": (2, [EMBEDDING, DROPOUT, convolution(7, 3), RELU, MAXIMUM, dense(6), DROPOUT, RELU, dense(1)]),
    "kernels": (4, [
        WITHOUT_PADDING, {"kind": "kernels", "channels": 6, "kernels": [2, 3, 4], **START}, DROPOUT, dense(4, row_norm=3.0)]),
    "hard-both-directions": (2, [EMBEDDING, lstm(6, "hard-sigmoid", bidirectional=True), DROPOUT, dense(1)]),
    "convolution-hard-lstm": (2, [
        EMBEDDING, DROPOUT, convolution(7, 3), RELU, {"kind": "pool", "of": "max", "size": 3}, lstm(6, "hard-sigmoid"), dense(1)]),
    "mean-pool-lstm": (3, [EMBEDDING, {"kind": "pool", "of": "average", "size": 2}, lstm(6, "sigmoid"), RELU, dense(3, row_norm=1.5)]),
    "both-directions": (3, [EMBEDDING, lstm(6, "sigmoid", bidirectional=True), dense(3)]),
}


def last_output(x, weights, at, hard):
    """Output of an LSTM [texts, positions, width] at its last position."""
    gate = (lambda x: (0.2 * x + 0.5).clamp(0, 1)) if hard else torch.sigmoid
    of, again, bias = (weights[f"{at}.{name}"] for name in ("weight_ih", "weight_hh", "bias_ih"))
    h = c = torch.zeros(x.shape[0], again.shape[1])
    beyond = 0
    for step in x.unbind(1):
        sums = step @ of.T + h @ again.T + bias
        i, f, g, o = sums.chunk(4, 1)
        c = gate(f) * c + gate(i) * g.tanh()
        h = gate(o) * c.tanh()
        beyond += (sums.abs() > 2.5).sum().item()
    assert beyond > 0 or not hard
    return h


def convolved(x, weights, at):
    return F.conv1d(x.transpose(1, 2), weights[f"{at}.weight"], weights[f"{at}.bias"]).transpose(1, 2)


def shapes(layers):
    """Path and shape of every parameter."""
    width = None
    for i, layer in enumerate(layers):
        at = "output" if i + 1 == len(layers) else f"layers.{i}"
        kind = layer["kind"]
        if kind == "embedding":
            width = layer["width"]
            yield "embedding.weight", (ROWS, width)
        if kind in ("convolution", "kernels"):
            for j, kernel in enumerate(layer.get("kernels", [layer.get("kernel")])):
                place = f"{at}.convolutions.{j}" if kind == "kernels" else at
                yield f"{place}.weight", (layer["channels"], width, kernel)
                yield f"{place}.bias", (layer["channels"],)
            width = layer["channels"] * len(layer.get("kernels", [0]))
        if kind == "lstm":
            units, directions = layer["units"], ["forward", "backward"][:1 + layer.get("bidirectional", False)]
            for name in directions:
                yield f"{at}.{name}.weight_ih", (4 * units, width)
                yield f"{at}.{name}.weight_hh", (4 * units, units)
                yield f"{at}.{name}.bias_ih", (4 * units,)
            width = units * len(directions)
        if kind == "dense":
            yield f"{at}.weight", (layer["units"], width)
            yield f"{at}.bias", (layer["units"],)
            width = layer["units"]


def outputs(layers, weights, ids):
    for i, layer in enumerate(layers):
        at = "output" if i + 1 == len(layers) else f"layers.{i}"
        kind = layer["kind"]
        if kind == "embedding":
            x = F.embedding(ids, weights["embedding.weight"])
            if layer.get("zero_padding"):
                x = x * (ids > 0).unsqueeze(2)
        elif kind == "convolution":
            x = convolved(x, weights, at)
        elif kind == "kernels":
            x = torch.cat([convolved(x, weights, f"{at}.convolutions.{j}").relu().amax(1) for j in range(len(layer["kernels"]))], 1)
        elif kind == "pool":
            pool = {"max": F.max_pool1d, "average": F.avg_pool1d}[layer["of"]]
            x = pool(x.transpose(1, 2), layer["size"]).transpose(1, 2)
        elif kind == "over-positions":
            x = {"max": lambda x: x.amax(1), "average": lambda x: x.mean(1)}[layer["of"]](x)
        elif kind == "lstm":
            hard = layer["gates"] == "hard-sigmoid"
            ends = [last_output(x, weights, f"{at}.forward", hard)]
            if layer.get("bidirectional"):
                ends.append(last_output(x.flip(1), weights, f"{at}.backward", hard))
            x = torch.cat(ends, 1)
        elif kind == "dense":
            x = F.linear(x, weights[f"{at}.weight"], weights[f"{at}.bias"])
        elif kind == "relu":
            x = x.relu()
        else:
            assert kind == "dropout"
    return x


def main():
    torch.set_default_dtype(torch.float64)
    tensors, described = {}, {}
    for seed, (name, (classes, layers)) in enumerate(CASES.items()):
        draw = np.random.default_rng(3100 + seed)
        ids = draw.integers(1, ROWS, (TEXTS, POSITIONS))
        for text, words in enumerate(draw.integers(3, POSITIONS + 1, TEXTS)):
            ids[text, words:] = 0
        ids, labels = torch.from_numpy(ids), torch.from_numpy(draw.integers(0, classes, TEXTS))
        weights = {}
        for path, shape in shapes(layers):
            scale = 0.3 if len(shape) == 1 else 1.0 if path == "embedding.weight" else 2.0 * np.prod(shape[1:]) ** -0.5
            normal = torch.from_numpy(draw.standard_normal(shape) * scale)
            weights[path] = normal.float().double().requires_grad_()
        tensors |= {f"{name}/weights/{path}": value.detach().clone() for path, value in weights.items()}
        logits = outputs(layers, weights, ids)
        if logits.shape[1] == 1:
            loss = F.binary_cross_entropy_with_logits(logits[:, 0], labels.double(), reduction="sum")
            logits = torch.cat([torch.zeros_like(logits), logits], 1)
        else:
            loss = F.cross_entropy(logits, labels, reduction="sum")
        (loss / TEXTS).backward()
        tensors |= {
            f"{name}/ids": ids, f"{name}/labels": labels, f"{name}/logits": logits, f"{name}/loss": loss,
            f"{name}/top1": (logits.argmax(1) == labels).sum().double(),
        }
        tensors |= {f"{name}/gradients/{path}": value.grad for path, value in weights.items()}
        norms = {f"layers.{i}": layer.get("row_norm") for i, layer in enumerate(layers)}
        norms["output"] = layers[-1].get("row_norm")
        for path, value in weights.items():
            updated = value.detach() - RATE * value.grad
            norm = norms.get(path.removesuffix(".weight"))
            if norm is not None:
                updated = norm * updated / (1e-7 + updated.norm(dim=1, keepdim=True))
            tensors[f"{name}/updated/{path}"] = updated
        described[name] = {"classes": classes, "layer": layers}
    description = {"layout": 1, "computed_in": "float64", "rows": ROWS, "positions": POSITIONS, "learning_rate": RATE}
    description["optimizer"] = {"kind": "sgd", "momentum": 0.0}
    fixture.save("text_classifier", tensors, description | {"cases": described})


if __name__ == "__main__":
    main()
