"""Recurrent and convolutional translation as a practitioner writes it in PyTorch for speed:
`nn.LSTM` over whole sequences, attention of all positions at once, `conv1d` with PyTorch's own
weight normalisation. For full batches: nothing is masked. Built from the same `[model]` block as
seq2seq.py, with the same parameters; only what the benchmarked recipes have is here.
"""

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from seq2seq import HALF, sizes


def lstm(width, spec, both=False):
    return nn.LSTM(width, spec["units"], batch_first=True, bidirectional=both)


def stacked(layers, first, x, spec, training, beside=None):
    """Layers behind one another; `first` is the number of the first of them, for the residuals."""
    for i, layer in enumerate(layers, start=first):
        inputs = x if beside is None else torch.cat([x, beside], dim=-1)
        y, _ = layer(functional.dropout(inputs, spec["dropout"], training))
        x = x + y if i >= spec.get("residual_from", 1000) else y
    return x


class RecurrentEncoder(nn.Module):
    """First layer in both directions."""

    def __init__(self, spec, width):
        super().__init__()
        self.spec, units = spec, spec["units"]
        self.first = lstm(width, spec, both=True)
        self.layers = nn.ModuleList(lstm(2 * units if i == 0 else units, spec) for i in range(spec["layers"] - 1))

    def forward(self, x):
        x, _ = self.first(functional.dropout(x, self.spec["dropout"], self.training))
        x = stacked(self.layers, 2, x, self.spec, self.training)
        return x, x


class RecurrentDecoder(nn.Module):
    """The first layer asks, all above it get the answer: whole sequences at once."""

    def __init__(self, spec, width, memory):
        super().__init__()
        self.spec, units = spec, spec["units"]
        self.first = lstm(width, spec)
        self.layers = nn.ModuleList(lstm(units + memory, spec) for _ in range(spec["layers"] - 1))
        self.query = nn.Linear(units, spec["attention"]["units"], bias=False)
        self.key = nn.Linear(memory, spec["attention"]["units"], bias=False)
        self.vector = nn.Parameter(torch.empty(spec["attention"]["units"]).uniform_(-0.1, 0.1))
        self.magnitude = nn.Parameter(torch.full((1,), spec["attention"]["units"] ** -0.5))
        self.bias = nn.Parameter(torch.zeros(spec["attention"]["units"]))

    def attend(self, query, memory):
        hidden = self.query(query).unsqueeze(2) + self.key(memory).unsqueeze(1) + self.bias
        scores = hidden.tanh() @ (self.magnitude * self.vector / self.vector.norm())
        return scores.softmax(dim=-1) @ memory

    def forward(self, x, memory):
        x, _ = self.first(functional.dropout(x, self.spec["dropout"], self.training))
        return stacked(self.layers, 2, x, self.spec, self.training, beside=self.attend(x, memory[0]))


def normalized(width, output):
    return weight_norm(nn.Linear(width, output))


class GatedConvolution(nn.Module):
    def __init__(self, width, channels, kernel, ahead):
        super().__init__()
        self.convolution = weight_norm(nn.Conv1d(width, 2 * channels, kernel))
        self.shortcut = normalized(width, channels) if width != channels else nn.Identity()
        self.padding = ((kernel - 1) // 2, (kernel - 1) // 2) if ahead else (kernel - 1, 0)

    def forward(self, x, rate):
        x = functional.dropout(x, rate, self.training)
        y = self.convolution(functional.pad(x.transpose(1, 2), self.padding))
        return functional.glu(y, dim=1).transpose(1, 2)


class Positions(nn.Module):
    def __init__(self, spec, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(spec["rows"], width) * 0.1)

    def forward(self, x):
        return x + self.weight[: x.shape[1]]


class ConvolutionalEncoder(nn.Module):
    def __init__(self, spec, width):
        super().__init__()
        layers = list(sizes(spec))
        self.rate = spec["dropout"]
        self.positions = Positions(spec["positions"], width) if "positions" in spec else nn.Identity()
        self.input, self.output = normalized(width, layers[0][0]), normalized(layers[-1][1], width)
        self.layers = nn.ModuleList(GatedConvolution(*layer, ahead=True) for layer in layers)
        self.share = 0.5 / spec["attentions"]

    def forward(self, x):
        tokens = functional.dropout(self.positions(x), self.rate, self.training)
        x = self.input(tokens)
        for layer in self.layers:
            x = (layer(x, self.rate) + layer.shortcut(x)) * HALF
        x = self.output(x)
        x = x.detach() * (1 - self.share) + x * self.share
        return x, (x + tokens) * HALF


class ConvolutionalDecoder(nn.Module):
    def __init__(self, spec, width, _memory):
        super().__init__()
        layers = list(sizes(spec))
        self.rate = spec["dropout"]
        self.positions = Positions(spec["positions"], width) if "positions" in spec else nn.Identity()
        self.input = normalized(width, layers[0][0])
        self.output = normalized(layers[-1][1], spec.get("output_width", width))
        self.layers = nn.ModuleList(GatedConvolution(*layer, ahead=False) for layer in layers)
        self.queries = nn.ModuleList(normalized(layer[1], width) for layer in layers)
        self.contexts = nn.ModuleList(normalized(width, layer[1]) for layer in layers)

    def forward(self, x, memory):
        keys, values = memory
        tokens = functional.dropout(self.positions(x), self.rate, self.training)
        scale = keys.shape[1] ** 0.5
        x = self.input(tokens)
        for layer, query, context in zip(self.layers, self.queries, self.contexts):
            y = layer(x, self.rate)
            scores = ((query(y) + tokens) * HALF) @ keys.transpose(1, 2)
            attended = (context(scores.softmax(dim=-1) @ values * scale) + y) * HALF
            x = (attended + layer.shortcut(x)) * HALF
        return self.output(x)


ENCODERS = {"recurrent": RecurrentEncoder, "convolutional": ConvolutionalEncoder}
DECODERS = {"recurrent": RecurrentDecoder, "convolutional": ConvolutionalDecoder}


class FastSeq2Seq(nn.Module):
    """`spec` is a recipe's `[model]`; one vocabulary of `rows`, both sides of `length` tokens."""

    def __init__(self, spec, rows, _length):
        super().__init__()
        encoder, decoder, width, tied = spec["encoder"], spec["decoder"], spec["width"], spec["embedding"]["tied"]
        if encoder["kind"] == "recurrent" and encoder["directions"] != "first-layer-both":
            raise ValueError("of recurrent encoders only that of GNMT v2 is here")
        if decoder["kind"] == "recurrent" and decoder["context"] != "upper-layers":
            raise ValueError("of recurrent decoders only that of GNMT v2 is here")
        self.rate = spec["embedding"]["dropout"]
        self.embedding = nn.Embedding(rows, width)
        self.target_embedding = self.embedding if tied in ("all", "inputs") else nn.Embedding(rows, width)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.encoder = ENCODERS[encoder["kind"]](encoder, width)
        self.decoder = DECODERS[decoder["kind"]](decoder, width, encoder.get("units", width))
        projected = decoder["units"] if decoder["kind"] == "recurrent" else decoder.get("output_width", width)
        bias = decoder.get("output_bias", False)
        self.output = nn.Linear(projected, rows, bias=bias)
        if tied in ("all", "decoder"):
            self.output.weight = self.target_embedding.weight
        elif bias and decoder["kind"] == "convolutional":
            self.output = weight_norm(self.output)

    def embed(self, table, ids):
        return functional.dropout(table(ids), self.rate, self.training)

    def forward(self, source, target):
        memory = self.encoder(self.embed(self.embedding, source))
        inputs = torch.cat([torch.full_like(target[:, :1], 2), target[:, :-1]], dim=1)
        return self.output(self.decoder(self.embed(self.target_embedding, inputs), memory))
