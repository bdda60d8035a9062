"""Acoustic models -> tests/fixtures/acoustic.safetensors.

Every utterance is computed by itself, without any padding but that of its own convolutions; batch
norms see the frames of all. For each case CASE: `CASE/features` [frames, features] of the
utterances behind each other, `CASE/lengths`, `CASE/labels`, `CASE/label_lengths`,
`CASE/weights/PATH` under our paths, `CASE/logits` [frames, classes], `CASE/loss` (CTC, summed; the
blank is the last class), `CASE/gradients/PATH`, and `CASE/folded/PATH`, the running statistics with
this batch in them.
"""

import math

import numpy as np
import torch
from torch.nn import functional as F

import fixture

FEATURES, CLASSES, LENGTHS, LABELS = 9, 5, [26, 11, 17], [[0, 1, 1], [2], [3, 0]]
EPSILON, MOMENTUM = 1e-3, 0.1
# Their norms learn neither scale nor shift.
PLAIN_NORMS = ["before-the-norm"]
CASES = {
    "convolutional": [
        {"kind": "convolution", "channels": 6, "kernel": 4, "stride": 2, "activation": "relu"},
        {"kind": "convolution", "repeat": 2, "channels": 5, "kernel": 3, "residual": "dense", "activation": "relu"},
        {"kind": "convolution", "repeat": 2, "channels": 7, "kernel": 3, "residual": "dense", "activation": "relu-20"},
        {"kind": "convolution", "channels": 6, "kernel": 5, "dilation": 2, "separable": True, "residual": "block",
         "activation": "relu"},
        {"kind": "convolution", "channels": 4, "kernel": 1, "activation": "none"},
    ],
    "recurrent": [
        {"kind": "convolution2d", "channels": 3, "kernel": [5, 4], "stride": [2, 2], "activation": "relu-20"},
        {"kind": "convolution2d", "channels": 2, "kernel": [3, 3], "stride": [1, 2], "activation": "relu"},
        {"kind": "recurrent", "cell": "gru", "layers": 2, "hidden": 4, "bidirectional": True, "biases": 2},
        {"kind": "row-convolution", "width": 4, "activation": "relu"},
        {"kind": "dense", "units": 7, "activation": "relu-20"},
    ],
    "before-the-norm": [
        {"kind": "convolution", "channels": 6, "kernel": 3, "padding": "none", "bias": True, "activation": "relu",
         "activation_before_norm": True},
        {"kind": "convolution", "channels": 5, "kernel": 2, "dilation": 3, "padding": "none", "bias": True,
         "activation": "relu", "activation_before_norm": True},
        {"kind": "recurrent", "cell": "lstm", "layers": 1, "hidden": 5, "biases": 1},
        {"kind": "dense", "units": 4, "activation": "relu"},
    ],
}


def activated(x, kind):
    return {"none": lambda x: x, "relu": torch.relu, "relu-20": lambda x: x.clamp(0, 20)}[kind](x)


def same(x, kernel, stride, dilation, dim):
    """Zeros for ceil(size / stride) outputs, the odd one behind; frames first become a multiple of
    the stride.
    """
    behind = -x.shape[dim] % stride
    total = dilation * (kernel - 1) + 1 - stride
    pads = [0, 0] * (x.dim() - 1 - dim) + [max(total, 0) // 2, behind + max(total, 0) - max(total, 0) // 2]
    return F.pad(x, pads)


class Model:
    def __init__(self, layers, seed, affine):
        self.draw = np.random.default_rng(seed)
        self.layers, self.weights, self.running, self.affine = layers, {}, {}, affine

    def weight(self, path, *shape):
        if path not in self.weights:
            fan = math.prod(shape[1:]) if len(shape) > 1 else 1
            value = self.draw.standard_normal(shape) * (1.5 * fan**-0.5 if len(shape) > 1 else 0.2)
            value = value + (1.0 if path.endswith("norm_weight") else 0.0)
            self.weights[path] = torch.from_numpy(value).float().double().requires_grad_()
        return self.weights[path]

    def norm(self, path, frames):
        """frames: [.., channels] of each utterance."""
        channels = frames[0].shape[-1]
        rows = torch.cat([x.reshape(-1, channels) for x in frames])
        mean, variance = rows.mean(0), rows.var(0, unbiased=False)
        n = len(rows)
        self.running[f"{path}.running_mean"] = MOMENTUM * mean
        self.running[f"{path}.running_variance"] = (1 - MOMENTUM) + MOMENTUM * variance * n / (n - 1)
        if not self.affine:
            return [(x - mean) / torch.sqrt(variance + EPSILON) for x in frames]
        self.weights.setdefault(f"{path}.weight", (1 + 0.2 * self.normal(channels)).requires_grad_())
        gamma, beta = self.weights[f"{path}.weight"], self.weight(f"{path}.bias", channels)
        return [(x - mean) / torch.sqrt(variance + EPSILON) * gamma + beta for x in frames]

    def normal(self, *shape):
        return torch.from_numpy(self.draw.standard_normal(shape)).float().double()

    def conv1d(self, path, x, out, kernel, stride=1, dilation=1, padding="same", groups=1, bias=False):
        w = self.weight(f"{path}.weight", out, x.shape[1] // groups, kernel)
        b = self.weight(f"{path}.bias", out) if bias else None
        x = x.t().unsqueeze(0)
        if padding == "same":
            x = same(x, kernel, stride, dilation, 2)
        return F.conv1d(x, w, b, stride, 0, dilation, groups)[0].t()

    def forward(self, frames):
        """Frames of each utterance, [frames, features] -> logits."""
        earlier, frequencies = [], frames[0].shape[1]
        for i, layer in enumerate(self.layers):
            at, kind = f"layers.{i}", layer["kind"]
            if kind == "convolution2d":
                (kt, kf), (st, sf), out = layer["kernel"], layer["stride"], layer["channels"]
                images = [x.reshape(len(x), frequencies, -1).permute(2, 0, 1).unsqueeze(0) for x in frames]
                w = self.weight(f"{at}.convolution.weight", out, images[0].shape[1], kt, kf)
                made = []
                for x in images:
                    x = same(x, kt, st, 1, 2)
                    f = x.shape[3]
                    zeros = max((math.ceil(f / sf) - 1) * sf + kf - f, 0)
                    x = F.pad(x, [zeros // 2, zeros - zeros // 2])
                    made.append(F.conv2d(x, w, stride=(st, sf))[0].permute(1, 2, 0))
                frequencies = made[0].shape[1]
                made = self.norm(f"{at}.norm", made)
                frames = [activated(x, layer["activation"]).reshape(len(x), -1) for x in made]
            elif kind == "convolution":
                added = {"none": [], "block": [frames], "dense": earlier + [frames]}[layer.get("residual", "none")]
                if layer.get("residual") == "dense":
                    earlier = added
                repeat, out, before = layer.get("repeat", 1), layer["channels"], layer.get("activation_before_norm")
                for j in range(repeat):
                    path, how = f"{at}.convolutions.{j}", {k: layer[k] for k in ("stride", "dilation", "padding") if k in layer}
                    if layer.get("separable"):
                        c = frames[0].shape[1]
                        frames = [self.conv1d(f"{path}.over_time", x, c, layer["kernel"], groups=c, **how) for x in frames]
                        frames = [self.conv1d(f"{path}.over_channels", x, out, 1) for x in frames]
                    else:
                        bias = layer.get("bias", False)
                        frames = [self.conv1d(f"{path}.over_time", x, out, layer["kernel"], bias=bias, **how) for x in frames]
                    if before:
                        frames = [activated(x, layer["activation"]) for x in frames]
                    frames = self.norm(f"{at}.norms.{j}", frames)
                    if j + 1 == repeat:
                        for k, inputs in enumerate(added):
                            to = f"{at}.shortcuts.{k}"
                            projected = [self.conv1d(f"{to}.projection", x, out, 1) for x in inputs]
                            frames = [x + y for x, y in zip(frames, self.norm(f"{to}.norm", projected))]
                    if not before:
                        frames = [activated(x, layer["activation"]) for x in frames]
            elif kind == "recurrent":
                cell = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[layer["cell"]]
                for j in range(layer["layers"]):
                    both = layer.get("bidirectional", False)
                    rnn = cell(frames[0].shape[1], layer["hidden"], bidirectional=both).double()
                    rows = {"gru": 3, "lstm": 4}[layer["cell"]] * layer["hidden"]
                    path, values = f"{at}.layers.{j}", {}
                    for suffix, way in [("", ".forward"), ("_reverse", ".backward")][: 1 + both]:
                        way = way if both else ""
                        values[f"weight_ih_l0{suffix}"] = self.weight(f"{path}{way}.weight_ih", rows, frames[0].shape[1])
                        values[f"weight_hh_l0{suffix}"] = self.weight(f"{path}{way}.weight_hh", rows, layer["hidden"])
                        values[f"bias_ih_l0{suffix}"] = self.weight(f"{path}{way}.bias_ih", rows)
                        if layer["biases"] == 2:
                            values[f"bias_hh_l0{suffix}"] = self.weight(f"{path}{way}.bias_hh", rows)
                        else:
                            values[f"bias_hh_l0{suffix}"] = torch.zeros(rows, dtype=torch.float64)
                    frames = [torch.func.functional_call(rnn, values, (x.unsqueeze(1),))[0].squeeze(1) for x in frames]
            elif kind == "row-convolution":
                c = frames[0].shape[1]
                frames = [self.conv1d(f"{at}.convolution", x, c, layer["width"], groups=c) for x in frames]
                frames = [activated(x, layer["activation"]) for x in self.norm(f"{at}.norm", frames)]
            else:
                w = self.weight(f"{at}.linear.weight", layer["units"], frames[0].shape[1])
                b = self.weight(f"{at}.linear.bias", layer["units"])
                frames = [activated(x @ w.t() + b, layer["activation"]) for x in frames]
        w, b = self.weight("output.weight", CLASSES, frames[0].shape[1]), self.weight("output.bias", CLASSES)
        return [x @ w.t() + b for x in frames]


def main():
    tensors = {}
    for seed, (name, layers) in enumerate(CASES.items()):
        model = Model(layers, 1400 + seed, name not in PLAIN_NORMS)
        features = [model.normal(n, FEATURES) for n in LENGTHS]
        logits = model.forward(features)
        loss = sum(
            F.ctc_loss(x.log_softmax(1).unsqueeze(1), torch.tensor([y]), [len(x)], [len(y)], blank=CLASSES - 1, reduction="sum")
            for x, y in zip(logits, LABELS)
        )
        loss.backward()
        tensors |= {
            f"{name}/features": torch.cat(features), f"{name}/lengths": torch.tensor(LENGTHS),
            f"{name}/labels": torch.tensor(sum(LABELS, [])),
            f"{name}/label_lengths": torch.tensor([len(y) for y in LABELS]),
            f"{name}/logits": torch.cat(logits), f"{name}/loss": loss,
        }
        for path, value in model.weights.items():
            tensors[f"{name}/weights/{path}"] = value
            tensors[f"{name}/gradients/{path}"] = value.grad
        for path, value in model.running.items():
            tensors[f"{name}/folded/{path}"] = value
    description = {"layout": 1, "computed_in": "float64", "classes": CLASSES, "cases": CASES, "plain_norms": PLAIN_NORMS}
    description["norm"] = {"epsilon": EPSILON, "momentum": MOMENTUM}
    fixture.save("acoustic", tensors, description)


if __name__ == "__main__":
    main()
