"""Classifiers of texts as plain PyTorch trains them, on full batches: its own embeddings,
convolutions, LSTMs, dropout and optimizers.

The layers are those of a recipe's resolved `[model]`. All texts of a batch have the same length, as
zoo's have in a timing by shape.
"""

import torch
from torch import nn
from torch.nn import functional as F

from products import autocast

# Rows of an embedding where neither the recipe nor its tokenizer states them; zoo assumes as many.
ASSUMED_ROWS = 20_000


def rows(resolved):
    """Rows of the embedding, as zoo takes them without the data."""
    data, stated = resolved["data"], resolved["recipe"].get("vocabulary_rows")
    tokenizer = data["tokenizer"]
    if stated is not None and data.get("corpus") is not None and data.get("share") is None:
        return stated
    if tokenizer["kind"] == "keras" and not tokenizer.get("bigrams"):
        return tokenizer["words"]
    return ASSUMED_ROWS


def initialize(weights, start):
    """Initial weights; biases are 0."""
    if start["kind"] == "uniform":
        nn.init.uniform_(weights, -start["bound"], start["bound"])
    elif start["kind"] == "normal":
        nn.init.normal_(weights, 0.0, start["deviation"])
    else:
        assert start["kind"] == "xavier-uniform", start
        nn.init.xavier_uniform_(weights)


def started(layer, start):
    initialize(layer.weight, start)
    nn.init.zeros_(layer.bias)
    return layer


class Channels(nn.Module):
    """[texts, positions, width] -> [texts, width, positions], the layout of PyTorch's convolutions
    and pools.
    """

    def forward(self, x):
        return x.transpose(1, 2)


class OverPositions(nn.Module):
    """The maximum or the mean over all positions, padding included."""

    def __init__(self, of, axis):
        super().__init__()
        self.largest, self.axis = of == "max", axis

    def forward(self, x):
        return x.max(self.axis).values if self.largest else x.mean(self.axis)


class Kernels(nn.Module):
    """Convolutions side by side, each with ReLU and the maximum over positions. ReLU and maximum
    commute: fewer numbers first.
    """

    def __init__(self, width, layer):
        super().__init__()
        made = (started(nn.Conv1d(width, layer["channels"], kernel), layer["weights"]) for kernel in layer["kernels"])
        self.convolutions = nn.ModuleList(made)

    def forward(self, x):
        return torch.cat([convolution(x).max(2).values.relu() for convolution in self.convolutions], 1)


class LastOutput(nn.Module):
    """An LSTM's output at its last position, of both directions if there are two.

    Keras's examples have hard-sigmoid gates, 0.2 x + 0.5 within 0 and 1, which zoo computes.
    PyTorch has no such LSTM. One written step by step in Python has no fused kernel, so `nn.LSTM`,
    whose gates are sigmoids, stands here: the faster one for PyTorch.
    """

    def __init__(self, width, layer):
        super().__init__()
        units, self.both = layer["units"], layer.get("bidirectional", False)
        self.lstm = nn.LSTM(width, units, batch_first=True, bidirectional=self.both)
        for name, parameter in self.lstm.named_parameters():
            if name.startswith("weight_ih"):
                nn.init.xavier_uniform_(parameter)
            elif name.startswith("weight_hh"):
                nn.init.orthogonal_(parameter)
            else:
                nn.init.zeros_(parameter)
                if name.startswith("bias_ih"):
                    # Gates are i, f, g, o; Keras's `unit_forget_bias`.
                    parameter.data[units : 2 * units] = 1.0
                else:
                    # Keras has one bias vector. PyTorch's LSTM adds two: the second one stays 0,
                    # and nothing is spent on its gradient.
                    parameter.requires_grad_(False)

    def forward(self, x):
        # `nn.LSTM` refuses a bf16 input beside FP32 weights in some versions; autocast chooses the
        # type of its products.
        _, (last, _) = self.lstm(x.float())
        return torch.cat([last[0], last[1]], 1) if self.both else last[0]


class TextClassifier(nn.Module):
    def __init__(self, resolved):
        super().__init__()
        layers = resolved["model"]["layer"]
        assert layers[0]["kind"] == "embedding", layers[0]
        first, width = layers[0], layers[0]["width"]
        # Row 0 is padding. With `zero_padding` it is 0 and has no gradient, which is PyTorch's
        # `padding_idx`.
        self.embedding = nn.Embedding(rows(resolved), width, padding_idx=0 if first.get("zero_padding") else None)
        initialize(self.embedding.weight, first["weights"])
        if first.get("zero_padding"):
            nn.init.zeros_(self.embedding.weight[0].detach())
        # Whether channels come before positions: a transposition stands only where the layout
        # changes.
        found, channels_first, self.norms = [], False, []

        def layout(wanted):
            nonlocal channels_first
            if channels_first != wanted:
                found.append(Channels())
                channels_first = wanted

        for layer in layers[1:]:
            kind = layer["kind"]
            if kind == "convolution":
                layout(True)
                found.append(started(nn.Conv1d(width, layer["channels"], layer["kernel"]), layer["weights"]))
                width = layer["channels"]
            elif kind == "kernels":
                layout(True)
                found.append(Kernels(width, layer))
                width = layer["channels"] * len(layer["kernels"])
            elif kind == "pool":
                layout(True)
                found.append((nn.MaxPool1d if layer["of"] == "max" else nn.AvgPool1d)(layer["size"]))
            elif kind == "over-positions":
                found.append(OverPositions(layer["of"], 2 if channels_first else 1))
            elif kind == "lstm":
                layout(False)
                found.append(LastOutput(width, layer))
                width = layer["units"] * (2 if layer.get("bidirectional") else 1)
            elif kind == "dense":
                found.append(started(nn.Linear(width, layer["units"]), layer["weights"]))
                width = layer["units"]
                if layer.get("row_norm") is not None:
                    self.norms.append((found[-1], layer["row_norm"]))
            elif kind == "dropout":
                found.append(nn.Dropout(layer["rate"]))
            else:
                assert kind == "relu", kind
                # Convolutions, dense layers and dropout do not need their output for the gradient.
                found.append(nn.ReLU(inplace=isinstance(found[-1] if found else None, (nn.Conv1d, nn.Linear, nn.Dropout))))
        self.layers = nn.Sequential(*found)

    def forward(self, ids):
        return self.layers(self.embedding(ids))

    @torch.no_grad()
    def rescale(self):
        """Rows of the norms that the recipe sets, as sent-conv-torch's `renorm` makes them."""
        for layer, norm in self.norms:
            layer.weight.mul_(norm / (1e-7 + layer.weight.norm(dim=1, keepdim=True)))


class Optimizer:
    """The recipe's update rule by PyTorch's optimizer."""

    def __init__(self, train, parameters):
        rule, rate = train["optimizer"], train["schedule"]["lr"]
        self.raw_root = None
        if rule["kind"] == "adadelta":
            self.of = torch.optim.Adadelta(parameters, rate, rho=rule["rho"], eps=rule["epsilon"], foreach=True)
            return
        assert rule["kind"] == "adam" and not rule.get("weight_decay"), rule
        betas = rule["beta1"], rule["beta2"]
        # `fused` is one pass over the parameters, the fastest that PyTorch has on a CPU.
        self.of = torch.optim.Adam(parameters, rate, betas, rule["epsilon"], fused=True)
        if rule["epsilon_place"] == "raw-root":
            self.raw_root, self.made = (rule["epsilon"], rule["beta2"]), 0

    def step(self):
        if self.raw_root is not None:
            # PyTorch adds epsilon to the corrected root. Keras adds it to the raw one, which is
            # PyTorch's rule with epsilon divided by the root's correction.
            epsilon, beta2 = self.raw_root
            self.made += 1
            for group in self.of.param_groups:
                group["eps"] = epsilon / (1.0 - beta2**self.made) ** 0.5
        self.of.step()


class Training:
    """Updates of a model on random texts, `[texts, positions]`; `mode` is the type of its products."""

    def __init__(self, resolved, classes, texts, positions, mode):
        torch.manual_seed(1)
        self.model = TextClassifier(resolved).train()
        self.binary = resolved["loss"]["kind"] == "binary-cross-entropy"
        learned = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = Optimizer(resolved["train"], learned)
        # Other words in each update, as zoo has: the rows of the embedding that are read and
        # updated are not those of the last update.
        count = rows(resolved)
        self.batches = [(torch.randint(count, (texts, positions)), torch.randint(classes, (texts,))) for _ in range(4)]
        self.mode, self.made = mode, 0

    def loss(self, logits, labels):
        if self.binary:
            return F.binary_cross_entropy_with_logits(logits[:, 0], labels.float())
        return F.cross_entropy(logits, labels)

    def update(self):
        ids, labels = self.batches[self.made % len(self.batches)]
        self.made += 1
        self.optimizer.of.zero_grad(set_to_none=True)
        with autocast(self.mode):
            logits = self.model(ids)
        self.loss(logits.float(), labels).backward()
        self.optimizer.step()
        self.model.rescale()

    def parameters(self):
        return sum(parameter.numel() for parameter in self.model.parameters() if parameter.requires_grad)
