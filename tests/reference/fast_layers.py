"""Layers as fast as PyTorch has them on a CPU without compiling, for `bench_vs_pytorch.py`;
`zoo/models/examples/layers.rs` has the same ones.

A layer is a function that makes one forward and backward pass: the output, and the gradients of
input and parameters where that of the output is ones. In bf16 by autocast, with what comes in as
bf16; recurrent layers, which autocast leaves in FP32 or does not know, are tried as modules in
bfloat16 too, and 2-D convolutions in both layouts: the fastest counts.
"""

import time

import torch
from torch import nn


def ready(layer, x, bf16, call=None):
    """One pass of a module."""
    x = x.bfloat16() if bf16 else x
    call = call or (lambda x: layer(x))

    def run():
        leaf = x.detach().requires_grad_()
        if layer is not None:
            layer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            y = call(leaf)
        y.backward(torch.ones_like(y))

    return run


def as_it_is(layer, x, call=None):
    return lambda bf16: [ready(layer, x, bf16, call)]


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.joined, self.output = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.joined(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts, dropout_p=0.1)
        return self.output(mixed.transpose(1, 2).reshape(batch, length, width))


def feed_forward():
    layer = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Dropout(0.1), nn.Linear(2048, 512))
    return as_it_is(layer, torch.randn(1024, 512))


def cross_entropy():
    targets = torch.arange(1024) * 31 % 32_000
    call = lambda x: nn.functional.cross_entropy(x.float(), targets, label_smoothing=0.1, reduction="sum")  # noqa: E731
    return as_it_is(None, torch.randn(1024, 32_000), call)


def ctc():
    labels = [[(i + j * j) * 7 % 28 for j in range(180 + i % 5)] for i in range(32)]
    lengths, frames = torch.tensor([len(x) for x in labels]), torch.full((32,), 600)
    labels = torch.tensor(sum(labels, []))

    def call(x):
        logs = x.float().view(32, 600, 29).transpose(0, 1).log_softmax(2)
        return nn.functional.ctc_loss(logs, labels, frames, lengths, blank=28, reduction="sum", zero_infinity=True)

    return as_it_is(None, torch.randn(32 * 600, 29), call)


def embedding():
    layer, ids = nn.Embedding(32_000, 512), torch.arange(2048) * 7919 % 32_000

    def run():
        layer.zero_grad(set_to_none=True)
        y = layer(ids)
        y.backward(torch.ones_like(y))

    return lambda bf16: [] if bf16 else [run]


def recurrent(kind, width, count, steps, bidirectional=False):
    layer, x = kind(width, width, bidirectional=bidirectional), torch.randn(steps, count, width)
    half = kind(width, width, bidirectional=bidirectional).bfloat16()
    first = lambda layer: lambda x: layer(x)[0]  # noqa: E731

    def ways(bf16):
        if not bf16:
            return [ready(layer, x, False, first(layer))]
        return [ready(layer, x, True, first(layer)), ready(half, x.bfloat16(), False, first(half))]

    return ways


def conv1d(shape, *arguments, **settings):
    return as_it_is(nn.Conv1d(*arguments, **settings), torch.randn(shape))


def conv2d(shape, *arguments, **settings):
    layer, x = nn.Conv2d(*arguments, **settings), torch.randn(shape)
    last = nn.Conv2d(*arguments, **settings).to(memory_format=torch.channels_last)
    other = x.to(memory_format=torch.channels_last)
    return lambda bf16: [ready(layer, x, bf16), ready(last, other, bf16)]


def batch_norm():
    layer = nn.BatchNorm1d(256)
    return lambda bf16: [ready(layer, torch.randn(8, 256, 800), bf16), ready(layer, torch.randn(8 * 800, 256), bf16)]


LAYERS = {
    "feed-forward-512-2048": feed_forward,
    "attention-512-8": lambda: as_it_is(SelfAttention(512, 8), torch.randn(16, 64, 512)),
    "layer-norm-512": lambda: as_it_is(nn.LayerNorm(512), torch.randn(4096, 512)),
    "dropout": lambda: as_it_is(nn.Dropout(0.1), torch.randn(4096, 2048)),
    "cross-entropy-32000": cross_entropy,
    "ctc-29": ctc,
    "embedding-32000-512": embedding,
    "lstm-512": lambda: recurrent(nn.LSTM, 512, 16, 100),
    "lstm-1024": lambda: recurrent(nn.LSTM, 1024, 32, 50),
    "gru-512": lambda: recurrent(nn.GRU, 512, 16, 100),
    "bilstm-512": lambda: recurrent(nn.LSTM, 512, 16, 100, bidirectional=True),
    "conv1d-256-k11": lambda: conv1d((8, 256, 800), 256, 256, 11, padding=5),
    "conv1d-896-k29-d2": lambda: conv1d((4, 896, 200), 896, 896, 29, dilation=2, padding=28),
    "conv1d-depthwise-256-k11": lambda: conv1d((8, 256, 800), 256, 256, 11, padding=5, groups=256),
    "conv2d-64-3x3": lambda: conv2d((8, 64, 56, 56), 64, 64, 3, padding=1),
    "conv2d-32-21x11-s2": lambda: conv2d((4, 32, 81, 200), 32, 32, (21, 11), stride=(2, 1), padding=(10, 5)),
    "conv2d-256-64-1x1": lambda: conv2d((8, 256, 56, 56), 256, 64, 1),
    "batch-norm-256": batch_norm,
}


class Layer:
    """A layer in one type of products."""

    def __init__(self, name, bf16):
        torch.manual_seed(1)
        self.ways = []
        for way in LAYERS[name]()(bf16):
            try:
                way()
                self.ways.append(way)
            except RuntimeError as error:
                print(f"note: {name}: {str(error).splitlines()[0]}")

    def seconds(self, repetitions):
        """The median of each way, of which the least."""
        return min(self.median(way, repetitions) for way in self.ways)

    @staticmethod
    def median(way, repetitions):
        way()
        way()
        times = []
        for _ in range(repetitions):
            begin = time.perf_counter()
            way()
            times.append(time.perf_counter() - begin)
        return sorted(times)[len(times) // 2]
