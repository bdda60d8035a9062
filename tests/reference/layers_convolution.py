"""Times convolutions and batch norm of PyTorch, forward and backward, as `zoo/examples/layers_convolution.rs` does those of zoo.

    OMP_NUM_THREADS=2 python layers_convolution.py [REPETITIONS] [NAME]

In bf16 by autocast, with what comes in as bf16. Of contiguous and channels-last tensors the faster counts (2-D; 1-D has no such format).
"""

import json
import os
import sys
import time

import torch

CONV1D = {
    "conv1d 256-256 k11": (dict(in_channels=256, out_channels=256, kernel_size=11, padding=5), (8, 256, 800)),
    "conv1d 896-896 k29 d2": (
        dict(in_channels=896, out_channels=896, kernel_size=29, dilation=2, padding=28), (4, 896, 200)),
    "conv1d depthwise 256 k11": (
        dict(in_channels=256, out_channels=256, kernel_size=11, padding=5, groups=256), (8, 256, 800)),
}  # fmt: skip
CONV2D = {
    "conv2d 64-64 3x3": (dict(in_channels=64, out_channels=64, kernel_size=3, padding=1), (8, 64, 56, 56)),
    "conv2d 32-32 21x11 s2x1": (
        dict(in_channels=32, out_channels=32, kernel_size=(21, 11), stride=(2, 1), padding=(10, 5)), (4, 32, 81, 200)),
    "conv2d 256-64 1x1": (dict(in_channels=256, out_channels=64, kernel_size=1), (8, 256, 56, 56)),
}  # fmt: skip


def seconds(repetitions, run):
    run()
    best = float("inf")
    for _ in range(repetitions):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def timed(repetitions, layer, x, bf16):
    x = (x.bfloat16() if bf16 else x).requires_grad_()

    def run():
        layer.zero_grad(set_to_none=True)
        x.grad = None
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            y = layer(x)
        y.float().sum().backward()

    return seconds(repetitions, run)


def main():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    only = sys.argv[2] if len(sys.argv) > 2 else ""

    def report(name, work, variants):
        if only not in name:
            return
        for mode in ["fp32", "bf16"]:
            best = min(timed(repetitions, layer, x.detach().clone(memory_format=torch.preserve_format), mode == "bf16")
                       for layer, x in variants())
            print(json.dumps({
                "layer": name, "mode": mode, "forward_backward_seconds": round(best, 6),
                "unit": "floating-point operations", "work": work,
            }), flush=True)

    def work(layer, x):
        with torch.no_grad():
            y = layer(x)
        return 6 * y.numel() // y.shape[1] * layer.weight.numel()

    for name, (settings, shape) in CONV1D.items():
        layer, x = torch.nn.Conv1d(**settings), torch.randn(shape)
        report(name, work(layer, x), lambda: [(layer, x)])
    for name, (settings, shape) in CONV2D.items():
        layer, x = torch.nn.Conv2d(**settings), torch.randn(shape)
        last = torch.nn.Conv2d(**settings).to(memory_format=torch.channels_last)
        report(name, work(layer, x), lambda: [(layer, x), (last, x.to(memory_format=torch.channels_last))])
    norm = torch.nn.BatchNorm1d(256)
    report("batch norm 256", 8 * 800 * 256,
           lambda: [(norm, torch.randn(8, 256, 800)), (norm, torch.randn(8 * 800, 256))])


if __name__ == "__main__":
    main()
