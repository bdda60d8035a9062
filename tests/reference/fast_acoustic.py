"""Acoustic models with CTC as plain PyTorch trains them, on full batches: its own convolutions,
GRU, LSTM, batch norm, CTC, SGD and NovoGrad.

The layers are those of a recipe's resolved `[model.encoder]`. All utterances have the same length,
so that nothing is masked.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from products import autocast, scaler


class Same(nn.Module):
    """Zeros that keep ceil(size / stride) positions of each axis, the odd one behind."""

    def __init__(self, kernel, stride, dilation):
        super().__init__()
        self.axes = list(zip(kernel, stride, dilation))

    def forward(self, x):
        pads = []
        for axis, (kernel, stride, dilation) in reversed(list(enumerate(self.axes))):
            size = x.shape[2 + axis]
            total = max((math.ceil(size / stride) - 1) * stride + dilation * (kernel - 1) + 1 - size, 0)
            pads += [total // 2, total - total // 2]
        return F.pad(x, pads)


def activation(kind, dropout):
    layers = {"none": [], "relu": [nn.ReLU(inplace=True)], "relu-20": [nn.Hardtanh(0, 20, inplace=True)]}[kind]
    return layers + ([nn.Dropout(dropout)] if dropout else [])


class Convolutions(nn.Module):
    """Over time: [utterances, channels, frames]; with projections of what is added before the last
    activation, `added` channels each.
    """

    def __init__(self, layer, channels, norm, added):
        super().__init__()
        out, repeat = layer["channels"], layer.get("repeat", 1)
        how = (layer["kernel"],), (layer.get("stride", 1),), (layer.get("dilation", 1),)
        parts = []
        for i in range(repeat):
            source = channels if i == 0 else out
            parts += [
                Same(*how), nn.Conv1d(source, out, how[0], how[1], 0, how[2], bias=layer.get("bias", False)), norm(nn.BatchNorm1d, out),
            ]  # fmt: skip
            if i + 1 < repeat:
                parts += activation(layer["activation"], layer.get("dropout", 0))
        self.body = nn.Sequential(*parts)
        self.end = nn.Sequential(*activation(layer["activation"], layer.get("dropout", 0)))
        shortcut = lambda n: nn.Sequential(nn.Conv1d(n, out, 1, bias=False), norm(nn.BatchNorm1d, out))  # noqa: E731
        self.shortcuts = nn.ModuleList(shortcut(n) for n in added)

    def forward(self, x, added):
        x = self.body(x)
        for shortcut, other in zip(self.shortcuts, added):
            x = x + shortcut(other)
        return self.end(x)


class Model(nn.Module):
    def __init__(self, spec, features, classes):
        super().__init__()
        norm = lambda kind, n: kind(n, eps=spec["norm"]["epsilon"], momentum=spec["norm"]["momentum"])  # noqa: E731
        self.layers, channels, frequencies = nn.ModuleList(), 1, features
        self.kinds = [layer["kind"] for layer in spec["layer"]]
        self.dense = [layer.get("residual", "none") == "dense" for layer in spec["layer"]]
        earlier = []
        for layer in spec["layer"]:
            kind = layer["kind"]
            assert layer.get("residual", "none") != "block" and not layer.get("separable"), "not among the models that are timed"
            if kind == "convolution2d":
                kernel, stride, out = layer["kernel"], layer["stride"], layer["channels"]
                parts = [Same(kernel, stride, (1, 1)), nn.Conv2d(channels, out, kernel, stride, bias=False), norm(nn.BatchNorm2d, out)]
                self.layers.append(nn.Sequential(*parts, *activation(layer["activation"], 0)))
                channels, frequencies = out, math.ceil(frequencies / stride[1])
                continue
            width = channels * frequencies
            if kind == "convolution":
                dense = self.dense[len(self.layers)]
                earlier += [width] if dense else []
                self.layers.append(Convolutions(layer, width, norm, earlier if dense else []))
                channels = layer["channels"]
            elif kind == "recurrent":
                cell = {"gru": nn.GRU, "lstm": nn.LSTM}[layer["cell"]]
                both = layer.get("bidirectional", False)
                drop = layer.get("dropout", 0) if layer["layers"] > 1 else 0
                self.layers.append(
                    cell(width, layer["hidden"], layer["layers"], batch_first=True, dropout=drop, bidirectional=both)
                )
                channels = layer["hidden"] * (1 + both)
            elif kind == "dense":
                parts = [nn.Linear(width, layer["units"]), *activation(layer["activation"], layer.get("dropout", 0))]
                self.layers.append(nn.Sequential(*parts))
                channels = layer["units"]
            else:
                raise ValueError(kind)
            frequencies = 1
        self.output = nn.Linear(channels * frequencies, classes)

    def forward(self, x):
        """[utterances, frames, features] -> [utterances, frames, classes]."""
        image, earlier = None, []
        for kind, dense, layer in zip(self.kinds, self.dense, self.layers):
            if kind == "convolution2d":
                image = layer(x.unsqueeze(1) if image is None else image)
                continue
            if image is not None:
                x, image = image.permute(0, 2, 3, 1).flatten(2), None
            if kind == "convolution":
                x = x.transpose(1, 2)
                earlier += [x] if dense else []
                x = layer(x, earlier if dense else []).transpose(1, 2)
            else:
                x = layer(x)[0] if kind == "recurrent" else layer(x)
        return self.output(x)


class NovoGrad:
    """As coded by OpenSeq2Seq: each tensor's gradient over its norm, which is never remembered."""

    def __init__(self, weights, rate, spec):
        assert spec["variant"] == "as-coded" and not spec["grad_averaging"], "not among the rules that are timed"
        self.weights, self.rate, self.spec = weights, rate, spec
        self.first = [torch.zeros_like(w) for w in weights]

    @torch.no_grad()
    def step(self):
        gradients = [w.grad for w in self.weights]
        lengths = [(n * n + self.spec["epsilon"]).sqrt() for n in torch._foreach_norm(gradients)]
        torch._foreach_div_(gradients, lengths)
        torch._foreach_add_(gradients, self.weights, alpha=self.spec["weight_decay"])
        torch._foreach_mul_(self.first, self.spec["beta1"])
        torch._foreach_add_(self.first, gradients)
        torch._foreach_add_(self.weights, self.first, alpha=-self.rate)

    def zero_grad(self):
        for w in self.weights:
            w.grad = None


class Training:
    """Updates of a resolved recipe on one batch of full utterances."""

    def __init__(self, recipe, classes, utterances, frames, mode):
        torch.manual_seed(1)
        features, train = recipe["data"]["features"]["features"], recipe["train"]
        self.model, self.mode = Model(recipe["model"]["encoder"], features, classes), mode
        self.scaler = scaler(mode)
        self.features = torch.randn(utterances, frames, features)
        self.labels = torch.arange(frames // 7).remainder(classes - 1).repeat(utterances, 1)
        matrices = [p for p in self.model.parameters() if p.dim() > 1]
        others = [p for p in self.model.parameters() if p.dim() < 2]
        l2 = (train.get("regularizer") or {}).get("scale", 0.0)
        self.rate, self.larc, rule = train["schedule"]["lr"], train.get("larc"), train["optimizer"]
        if rule["kind"] == "novograd":
            self.optimizer = NovoGrad(matrices + others, self.rate, rule)
            return
        assert rule["kind"] == "sgd", "the models that are timed have momentum"
        groups = [{"params": matrices, "weight_decay": l2}, {"params": others}]
        self.optimizer = torch.optim.SGD(groups, self.rate, rule["momentum"], fused=True)

    def update(self):
        with autocast(self.mode):
            logits = self.model(self.features)
        log_probs = logits.float().log_softmax(2).transpose(0, 1)
        utterances, labels = self.labels.shape
        lengths = torch.full((utterances,), log_probs.shape[0])
        blank, said = log_probs.shape[2] - 1, torch.full((utterances,), labels)
        loss = F.ctc_loss(log_probs, self.labels, lengths, said, blank, "sum", zero_infinity=True) / utterances
        self.scaler.scale(loss).backward()
        if self.larc:
            self.scaler.unscale_(self.optimizer)
            self.adapt()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return loss.item()

    @torch.no_grad()
    def adapt(self):
        weights = [p for p in self.model.parameters() if p.grad is not None]
        gradients = [p.grad for p in weights]
        factors = [
            (self.larc["eta"] * w / (self.rate * (g + 1e-7))).clamp(1e-7, 1.0)
            for w, g in zip(torch._foreach_norm(weights), torch._foreach_norm(gradients))
        ]
        torch._foreach_mul_(gradients, factors)

    def parameters(self):
        return sum(p.numel() for p in self.model.parameters())
