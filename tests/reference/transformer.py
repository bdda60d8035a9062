"""The encoder-decoder Transformer in its published variants, in plain PyTorch.

It is the reference that the Rust model is compared with, so it is written for reading: one class
per part, nothing fused, nothing cached. A model is described by the same JSON as a recipe's
`[model]` block. Names of parameters are the paths of docs/align.md; `torch.nn.Linear` keeps weights
as [out, in].
"""

import math

import torch
from torch import nn


def sinusoid(kind, positions, width):
    """Position codes [..., width] of integer positions [...].

    `sinusoid-tensor2tensor` and `sinusoid-fairseq`: all sines, then all cosines, wavelengths 2 pi
    .. 2 pi 10000 with both ends reached. `sinusoid-paper`: sine and cosine interleaved,
    10000^(2i/width).
    """
    half = width // 2
    index = torch.arange(half, dtype=torch.float64)
    exponent = index / half if kind == "sinusoid-paper" else index / max(half - 1, 1)
    angle = positions.to(torch.float64).unsqueeze(-1) * torch.exp(-math.log(10000.0) * exponent)
    if kind == "sinusoid-paper":
        code = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)
    else:
        code = torch.cat([angle.sin(), angle.cos()], dim=-1)
    return nn.functional.pad(code, (0, width - code.shape[-1]))


class Attention(nn.Module):
    """Scaled dot-product attention over several heads."""

    def __init__(self, width, heads, bias, dropout=0.0):
        super().__init__()
        self.heads, self.rate = heads, dropout
        for name in ("query", "key", "value", "output"):
            setattr(self, name, nn.Linear(width, width, bias=bias))

    def forward(self, query, memory, hidden):
        """`hidden` [batch, 1, query, key] is true where a key must not be seen."""
        batch, length, width = query.shape

        def split(x):
            return x.view(batch, -1, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = split(self.query(query)), split(self.key(memory)), split(self.value(memory))
        scores = q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5
        weights = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1)
        weights = nn.functional.dropout(weights, self.rate, self.training)
        return self.output((weights @ v).transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    """Two linear layers with a ReLU between them."""

    def __init__(self, width, inner, dropout=0.0):
        super().__init__()
        self.rate = dropout
        self.input = nn.Linear(width, inner)
        self.output = nn.Linear(inner, width)

    def forward(self, x):
        hidden = torch.relu(self.input(x))
        return self.output(nn.functional.dropout(hidden, self.rate, self.training))


class Layer(nn.Module):
    """Self-attention, cross-attention in a decoder, feed-forward, each with its residual and
    norm.
    """

    def __init__(self, width, spec, cross):
        super().__init__()
        self.pre = spec["norm"] == "pre"
        self.cross = cross
        self.rate = spec["dropout"]
        attention = (width, spec["heads"], spec["attention_bias"], spec["attention_dropout"])
        self.self_attention = Attention(*attention)
        self.self_attention_norm = nn.LayerNorm(width, eps=spec["norm_epsilon"])
        if cross:
            self.cross_attention = Attention(*attention)
            self.cross_attention_norm = nn.LayerNorm(width, eps=spec["norm_epsilon"])
        self.feed_forward = FeedForward(width, spec["ffn"], spec["activation_dropout"])
        self.feed_forward_norm = nn.LayerNorm(width, eps=spec["norm_epsilon"])

    def residual(self, x, norm, part):
        drop = nn.functional.dropout
        if self.pre:
            return x + drop(part(norm(x)), self.rate, self.training)
        return norm(x + drop(part(x), self.rate, self.training))

    def forward(self, x, hidden, memory=None, memory_hidden=None):
        x = self.residual(x, self.self_attention_norm, lambda y: self.self_attention(y, y, hidden))
        if self.cross:
            x = self.residual(
                x, self.cross_attention_norm, lambda y: self.cross_attention(y, memory, memory_hidden)
            )
        return self.residual(x, self.feed_forward_norm, self.feed_forward)


class Stack(nn.Module):
    """Layers; pre-norm stacks end in a norm."""

    def __init__(self, width, spec, cross):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, spec, cross) for _ in range(spec["layers"]))
        self.norm = nn.LayerNorm(width, eps=spec["norm_epsilon"]) if spec["norm"] == "pre" else None

    def forward(self, x, *masks):
        for layer in self.layers:
            x = layer(x, *masks)
        return x if self.norm is None else self.norm(x)


class Transformer(nn.Module):
    """`spec` is a recipe's `[model]`, `vocabulary` has `size`, `pad`, `begin`, `end`."""

    def __init__(self, spec, vocabulary):
        super().__init__()
        width, rows = spec["width"], vocabulary["size"]
        self.spec, self.vocabulary, self.width = spec, vocabulary, width
        tied = spec["embedding"]["tied"]
        self.embedding = nn.Embedding(rows, width)
        if tied in ("decoder", "none"):
            self.target_embedding = nn.Embedding(rows, width)
        if tied == "none":
            self.output = nn.Linear(width, rows, bias=False)
        self.encoder = Stack(width, spec["encoder"], cross=False)
        self.decoder = Stack(width, spec["decoder"], cross=True)

    def target_table(self):
        return self.embedding if self.spec["embedding"]["tied"] == "all" else self.target_embedding

    def project(self, x):
        """Logits of decoder outputs."""
        if self.spec["embedding"]["tied"] == "none":
            return self.output(x)
        return x @ self.target_table().weight.T

    def look_up(self, table, ids):
        x = table(ids) * (self.width**0.5 if self.spec["embedding"]["scale"] else 1.0)
        if self.spec["embedding"]["zero_padding"]:
            x = x * (ids != self.vocabulary["pad"]).unsqueeze(-1)
        return x

    def add_positions(self, x, ids):
        """fairseq counts from 2 and leaves padding without a position; the others count from 0."""
        kind = self.spec["embedding"]["positions"]
        index = torch.arange(ids.shape[1]).expand_as(ids)
        if kind == "sinusoid-fairseq":
            code = sinusoid(kind, index + 2, self.width)
            code = code * (ids != self.vocabulary["pad"]).unsqueeze(-1)
        else:
            code = sinusoid(kind, index, self.width)
        x = x + code.to(x.dtype)
        return nn.functional.dropout(x, self.spec["embedding"]["dropout"], self.training)

    def embed_source(self, source):
        return self.add_positions(self.look_up(self.embedding, source), source)

    def embed_target(self, target):
        """Inputs of the decoder: the target moved one place to the right, behind the start."""
        start = self.spec["decoder"]["start"]
        first = torch.full_like(target[:, :1], self.vocabulary["begin" if start == "begin" else "end"])
        ids = torch.cat([first, target[:, :-1]], dim=1)
        x = self.look_up(self.target_table(), ids)
        if start == "zeros":
            x = torch.cat([torch.zeros_like(x[:, :1]), x[:, 1:]], dim=1)
        return self.add_positions(x, ids)

    def encode(self, source):
        hidden = (source == self.vocabulary["pad"])[:, None, None, :]
        return self.encoder(self.embed_source(source), hidden)

    def decode(self, target, memory, source):
        """Outputs of the decoder stack; padding in the target needs no mask, it only follows what
        counts.
        """
        length = target.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)[None, None]
        hidden = (source == self.vocabulary["pad"])[:, None, None, :]
        return self.decoder(self.embed_target(target), future, memory, hidden)

    def forward(self, source, target):
        """Logits [batch, target, vocabulary]."""
        return self.project(self.decode(target, self.encode(source), source))


def cross_entropy(logits, target, pad, spec):
    """Sums over the tokens that are not padding: smoothed loss, plain negative log-likelihood; and
    the denominator.
    """
    eps = spec["label_smoothing"]
    classes = logits.shape[-1]
    log_p = logits.log_softmax(dim=-1)
    kept = target != pad
    nll = -log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    total = -log_p.sum(dim=-1)
    if eps == 0.0:
        smoothed = nll
    elif spec["smoothing"] == "all-classes":
        smoothed = (1 - eps) * nll + eps / classes * total
    else:
        # The least value of the cross-entropy is the entropy of the smoothed target; without it a
        # perfect model has 0.
        off = eps / (classes - 1)
        entropy = -((1 - eps) * math.log(1 - eps) + eps * math.log(off))
        smoothed = (1 - eps) * nll + off * (total - nll) - entropy
    count = {"tokens": int(kept.sum()), "sentences": target.shape[0], "positions": target.numel()}
    return smoothed[kept].sum(), nll[kept].sum(), count[spec["denominator"]]
