"""Classifiers of pictures as plain PyTorch trains them, on full batches: its own convolutions,
pools, dropout and optimizers.

The layers are those of a recipe's resolved `[model]`. Pictures lie in the channels-last format,
which is the faster one on a CPU.
"""

import torch
from torch import nn
from torch.nn import functional as F

from products import autocast


class Flatten(nn.Module):
    """All numbers of a picture as a row: rows, columns, channels, or channels, rows, columns."""

    def __init__(self, order):
        super().__init__()
        self.last = order == "channels-last"

    def forward(self, x):
        return (x.permute(0, 2, 3, 1) if self.last else x).flatten(1)


def layers(resolved):
    picture = resolved["data"]["picture"]
    x = torch.zeros(1, picture["channels"], picture["height"], picture["width"])
    found = []
    for layer in resolved["model"]["layer"]:
        kind = layer["kind"]
        if kind == "convolution":
            made = nn.Conv2d(x.shape[1], layer["channels"], layer["kernel"], layer.get("stride", 1), layer.get("padding", 0))
        elif kind == "pool":
            made = (nn.MaxPool2d if layer["of"] == "max" else nn.AvgPool2d)(layer["size"], layer["stride"])
        elif kind == "flatten":
            made = Flatten(layer["order"])
        elif kind == "dense":
            made = nn.Linear(x.shape[1], layer["units"])
        elif kind == "dropout":
            made = nn.Dropout(layer["rate"])
        else:
            made = {"relu": lambda: nn.ReLU(inplace=True), "sigmoid": nn.Sigmoid}[kind]()
        found.append(made)
        with torch.no_grad():
            x = made(x)
    return nn.Sequential(*found)


def optimizer(train, parameters):
    rule, rate = train["optimizer"], train["schedule"]["lr"]
    if rule["kind"] == "sgd":
        return torch.optim.SGD(parameters, rate, rule["momentum"], weight_decay=rule.get("weight_decay", 0.0), foreach=True)
    if rule["kind"] == "rmsprop":
        return torch.optim.RMSprop(parameters, rate, alpha=rule["rho"], eps=rule["epsilon"], foreach=True)
    return torch.optim.Adadelta(parameters, rate, rho=rule["rho"], eps=rule["epsilon"], foreach=True)


class Training:
    """Updates of a model on one batch of random pictures; `mode` is the type of its products."""

    def __init__(self, resolved, classes, pictures, _, mode):
        torch.manual_seed(1)
        size = resolved["data"]["picture"]
        self.model = layers(resolved).to(memory_format=torch.channels_last)
        self.optimizer = optimizer(resolved["train"], self.model.parameters())
        pixels = torch.rand(pictures, size["channels"], size["height"], size["width"])
        self.pixels = pixels.to(memory_format=torch.channels_last)
        self.labels = torch.randint(classes, (pictures,))
        self.mode = mode

    def update(self):
        self.optimizer.zero_grad(set_to_none=True)
        with autocast(self.mode):
            logits = self.model(self.pixels)
        F.cross_entropy(logits.float(), self.labels).backward()
        self.optimizer.step()

    def parameters(self):
        return sum(parameter.numel() for parameter in self.model.parameters())
