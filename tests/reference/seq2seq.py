"""Encoders and decoders of tokens other than the Transformer, in plain PyTorch: recurrent ones with
attention, gated convolutions.

As `transformer.py` it is written for reading: sequences are padded, recurrences are loops, nothing
is cached. A model is described by a recipe's `[model]`; names of parameters are the paths of
docs/align.md.
"""

import torch
from torch import nn

import transformer

HALF = 0.5**0.5


def parameter(*shape):
    return nn.Parameter(torch.zeros(*shape))


class RecurrentLayer(nn.Module):
    """LSTM (gates i, f, g, o) or GRU (r, z, n; the reset gate behind the product)."""

    def __init__(self, spec, width):
        super().__init__()
        self.cell, units = spec["cell"], spec["units"]
        gates = units * {"lstm": 4, "gru": 3}[self.cell]
        self.units = units
        self.weight_ih, self.weight_hh = parameter(gates, width), parameter(gates, units)
        self.bias_ih = parameter(gates)
        self.bias_hh = None if spec["biases"] == "one-of-zeros" else parameter(gates)

    def begin_at(self, output):
        """Output and cell at the same vector."""
        return torch.stack([output, output])

    def start(self, rows, like):
        return torch.zeros(2, rows, self.units, dtype=like.dtype)

    def step(self, x, state):
        """x [rows, width], state [2, rows, units] -> the same: output, cell."""
        h, c = state
        one = x @ self.weight_ih.T + self.bias_ih
        two = h @ self.weight_hh.T + (0 if self.bias_hh is None else self.bias_hh)
        if self.cell == "lstm":
            i, f, g, o = (one + two).chunk(4, dim=-1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            return torch.stack([o.sigmoid() * c.tanh(), c])
        (r, z, n), (hr, hz, hn) = one.chunk(3, dim=-1), two.chunk(3, dim=-1)
        z = (z + hz).sigmoid()
        n = (n + (r + hr).sigmoid() * hn).tanh()
        return torch.stack([(1 - z) * n + z * h, c])

    def forward(self, x, kept, backwards=False):
        """x [batch, time, width]; where `kept` [batch, time] is false nothing happens."""
        state, outputs = self.start(x.shape[0], x), [None] * x.shape[1]
        for t in reversed(range(x.shape[1])) if backwards else range(x.shape[1]):
            there = kept[None, :, t, None]
            state = torch.where(there, self.step(x[:, t], state), state)
            outputs[t] = state[0] * there[0]
        return torch.stack(outputs, dim=1)


class RecurrentEncoder(nn.Module):
    def __init__(self, spec, embedding, width):
        super().__init__()
        self.spec = spec
        both = spec["directions"] == "first-layer-both"

        def stack(layers):
            widths = [width, 2 * spec["units"] if both else spec["units"]] + [spec["units"]] * layers
            return nn.ModuleList(RecurrentLayer(spec, widths[i]) for i in range(layers))

        self.layers = stack(spec["layers"])
        self.backward = stack({"forward": 0, "first-layer-both": 1, "two-stacks": spec["layers"]}[spec["directions"]])

    def through(self, layers, first, x, kept, backwards=False):
        for i, layer in enumerate(layers, start=first):
            y = layer(x, kept, backwards)
            x = x + y if i >= self.spec.get("residual_from", 1000) else y
        return x

    def forward(self, x, kept):
        directions = self.spec["directions"]
        if directions == "first-layer-both":
            first = [self.through(self.layers[:1], 1, x, kept), self.through(self.backward, 1, x, kept, True)]
            x = self.through(self.layers[1:], 2, torch.cat(first, dim=-1), kept)
        elif directions == "two-stacks":
            stacks = [self.through(self.layers, 1, x, kept), self.through(self.backward, 1, x, kept, True)]
            x = torch.cat(stacks, dim=-1)
        else:
            x = self.through(self.layers, 1, x, kept)
        return x, x


class RecurrentAttention(nn.Module):
    def __init__(self, spec, query, memory):
        super().__init__()
        self.additive = spec["kind"] == "additive"
        units = spec["units"] if self.additive else query
        self.key = parameter(units, memory)
        if self.additive:
            self.query, self.vector = parameter(units, query), parameter(units)
            if spec["normalized"]:
                self.magnitude, self.bias = parameter(1), parameter(units)

    def forward(self, query, memory, kept):
        """query [batch, width], memory [batch, source, width] -> context [batch, width]."""
        keys = memory @ self.key.T
        if self.additive:
            hidden = (query @ self.query.T).unsqueeze(1) + keys
            vector = self.vector
            if hasattr(self, "bias"):
                hidden, vector = hidden + self.bias, self.magnitude * vector / vector.norm()
            scores = hidden.tanh() @ vector
        else:
            scores = (keys @ query.unsqueeze(-1)).squeeze(-1)
        # Kept for searches.
        self.weights = scores.masked_fill(~kept, float("-inf")).softmax(dim=-1)
        return (self.weights.unsqueeze(1) @ memory).squeeze(1)


class RecurrentDecoder(nn.Module):
    def __init__(self, spec, embedding, width, memory):
        super().__init__()
        self.spec, units = spec, spec["units"]
        self.fed = {"upper-layers": 0, "all-layers": memory, "output": memory, "input-feeding": units}[spec["context"]]
        beside = memory if spec["context"] in ("upper-layers", "all-layers") else 0
        widths = [width + self.fed] + [units + beside] * (spec["layers"] - 1)
        self.layers = nn.ModuleList(RecurrentLayer(spec, n) for n in widths)
        self.attention = RecurrentAttention(spec["attention"], units, memory)
        if spec["context"] == "input-feeding":
            self.combine = nn.Linear(units + memory, units, bias=spec.get("combine_bias", False))

    def forward(self, x, memory, kept, _lengths):
        memory, context_use = memory[0], self.spec["context"]
        rows = x.shape[0]
        states = [layer.start(rows, x) for layer in self.layers]
        if self.spec.get("initial_state") == "last-of-encoder":
            # The forward direction is the first half where there are two.
            last = memory[torch.arange(rows), kept.sum(dim=1) - 1, : self.spec["units"]]
            states = [layer.begin_at(last) for layer in self.layers]
        feed, outputs = torch.zeros(rows, self.fed, dtype=x.dtype), []
        above = context_use in ("upper-layers", "all-layers")

        def layer(i, x, beside):
            states[i] = self.layers[i].step(torch.cat([x, beside], dim=-1), states[i])
            return x + states[i][0] if i + 1 >= self.spec.get("residual_from", 1000) else states[i][0]

        nothing = torch.zeros(rows, 0, dtype=x.dtype)
        for t in range(x.shape[1]):
            y = layer(0, x[:, t], feed)
            if above:
                context = self.attention(y, memory, kept)
                for i in range(1, len(self.layers)):
                    y = layer(i, y, context)
                feed = context if context_use == "all-layers" else nothing
            else:
                for i in range(1, len(self.layers)):
                    y = layer(i, y, nothing)
                context = self.attention(y, memory, kept)
                y = context if context_use == "output" else self.combine(torch.cat([y, context], dim=-1)).tanh()
                feed = y
            outputs.append(y)
        return torch.stack(outputs, dim=1)


class NormalizedLinear(nn.Module):
    def __init__(self, width, output):
        super().__init__()
        self.direction, self.magnitude, self.bias = parameter(output, width), parameter(output), parameter(output)

    def forward(self, x):
        weight = self.direction * (self.magnitude / self.direction.norm(dim=1)).unsqueeze(1)
        return x @ weight.T + self.bias


class GatedConvolution(nn.Module):
    def __init__(self, width, channels, kernel, ahead):
        super().__init__()
        self.convolution = nn.Module()
        self.convolution.direction = parameter(2 * channels, width, kernel)
        self.convolution.magnitude, self.convolution.bias = parameter(2 * channels), parameter(2 * channels)
        self.shortcut = NormalizedLinear(width, channels) if width != channels else None
        self.padding = ((kernel - 1) // 2, (kernel - 1) // 2) if ahead else (kernel - 1, 0)

    def gated(self, x, kept):
        v = self.convolution.direction
        weight = v * (self.convolution.magnitude / v.flatten(1).norm(dim=1))[:, None, None]
        x = nn.functional.pad((x * kept.unsqueeze(-1)).transpose(1, 2), self.padding)
        y = nn.functional.conv1d(x, weight, self.convolution.bias).transpose(1, 2)
        value, gate = y.chunk(2, dim=-1)
        return value * gate.sigmoid()

    def residual(self, x):
        return x if self.shortcut is None else self.shortcut(x)


class Positions(nn.Module):
    def __init__(self, spec, width):
        super().__init__()
        self.spec, self.weight = spec, parameter(spec["rows"], width)

    def forward(self, x):
        index = torch.arange(x.shape[1])
        there = index < self.spec["rows"]
        if self.spec.get("first_is_zero"):
            there = there & (index > 0)
        return x + self.weight[index.clamp(max=self.spec["rows"] - 1)] * there.unsqueeze(-1)


def sizes(spec):
    """Input, output, taps of every layer."""
    before = spec["layer"][0]["channels"]
    for layer in spec["layer"]:
        for _ in range(layer["repeat"]):
            yield before, layer["channels"], layer["kernel"]
            before = layer["channels"]


class ConvolutionalEncoder(nn.Module):
    def __init__(self, spec, embedding, width):
        super().__init__()
        layers = list(sizes(spec))
        self.positions = Positions(spec["positions"], width) if "positions" in spec else None
        self.input, self.output = NormalizedLinear(width, layers[0][0]), NormalizedLinear(layers[-1][1], width)
        self.layers = nn.ModuleList(GatedConvolution(*layer, ahead=True) for layer in layers)
        self.share = 0.5 / spec["attentions"]

    def forward(self, x, kept):
        tokens = x if self.positions is None else self.positions(x)
        x = self.input(tokens)
        for layer in self.layers:
            x = (layer.gated(x, kept) + layer.residual(x)) * HALF
        x = self.output(x)
        x = x.detach() * (1 - self.share) + x * self.share
        return x, (x + tokens) * HALF


class DecoderLayer(nn.Module):
    def __init__(self, layer, width):
        super().__init__()
        self.gated = GatedConvolution(*layer, ahead=False)
        self.query, self.context = NormalizedLinear(layer[1], width), NormalizedLinear(width, layer[1])


class ConvolutionalDecoder(nn.Module):
    def __init__(self, spec, embedding, width, memory):
        super().__init__()
        layers = list(sizes(spec))
        self.positions = Positions(spec["positions"], width) if "positions" in spec else None
        self.input = NormalizedLinear(width, layers[0][0])
        self.output = NormalizedLinear(layers[-1][1], spec.get("output_width", width))
        self.layers = nn.ModuleList(DecoderLayer(layer, width) for layer in layers)
        self.padded = spec.get("source_length") == "padded"

    def forward(self, x, memory, kept, target_kept):
        keys, values = memory
        tokens = x if self.positions is None else self.positions(x)
        lengths = torch.full([len(kept)], kept.shape[1]) if self.padded else kept.sum(dim=1)
        scale = lengths.to(x.dtype).sqrt()[:, None, None]
        x = self.input(tokens)
        for layer in self.layers:
            y = layer.gated.gated(x, target_kept)
            scores = (layer.query(y) + tokens) * HALF @ keys.transpose(1, 2)
            weights = scores.masked_fill(~kept.unsqueeze(1), float("-inf")).softmax(dim=-1)
            attended = (layer.context(weights @ values * scale) + y) * HALF
            x = (attended + layer.gated.residual(x)) * HALF
        return self.output(x)


class TransformerEncoder(transformer.Stack):
    def __init__(self, spec, embedding, width):
        super().__init__(width, spec, cross=False)

    def forward(self, x, kept):
        x = super().forward(x, ~kept[:, None, None, :])
        return x, x


ENCODERS = {
    "transformer": TransformerEncoder, "recurrent": RecurrentEncoder, "convolutional": ConvolutionalEncoder,
}  # fmt: skip
DECODERS = {"recurrent": RecurrentDecoder, "convolutional": ConvolutionalDecoder}


class Seq2Seq(transformer.Transformer):
    """Embeds as the Transformer does; encoder and decoder are of any kind."""

    def __init__(self, spec, vocabulary):
        nn.Module.__init__(self)
        width, rows = spec["width"], vocabulary["size"]
        self.spec, self.vocabulary, self.width = spec, vocabulary, width
        encoder, decoder, tied = spec["encoder"], spec["decoder"], spec["embedding"]["tied"]
        memory = width
        if encoder["kind"] == "recurrent":
            both = encoder["directions"] == "two-stacks"
            memory = encoder["units"] * (2 if both else 1)
        projected = decoder.get("output_width", width)
        if decoder["kind"] == "recurrent":
            projected = memory if decoder["context"] == "output" else decoder["units"]
        self.embedding = nn.Embedding(rows, width)
        if tied in ("decoder", "none"):
            self.target_embedding = nn.Embedding(rows, width)
        if tied in ("inputs", "none"):
            bias = decoder.get("output_bias", False)
            normalized = bias and decoder["kind"] == "convolutional"
            self.output = NormalizedLinear(projected, rows) if normalized else nn.Linear(projected, rows, bias=bias)
        self.encoder = ENCODERS[encoder["kind"]](encoder, spec["embedding"], width)
        self.decoder = DECODERS[decoder["kind"]](decoder, spec["embedding"], width, memory)

    def target_table(self):
        return self.embedding if self.spec["embedding"]["tied"] in ("all", "inputs") else self.target_embedding

    def project(self, x):
        return self.output(x) if hasattr(self, "output") else x @ self.target_table().weight.T

    def add_positions(self, x, ids):
        return x if self.spec["embedding"]["positions"] == "none" else super().add_positions(x, ids)

    def encode(self, source):
        """Keys and values."""
        return self.encoder(self.embed_source(source), source != self.vocabulary["pad"])

    def decode(self, target, memory, source):
        pad = self.vocabulary["pad"]
        return self.decoder(self.embed_target(target), memory, source != pad, target != pad)
