"""Convolutions and batch norms by PyTorch, in FP64 from values that are exact in FP32:
`tests/fixtures/convolution.safetensors`.

Inputs and outputs have their channels last, weights are as PyTorch keeps them. Padding is [before,
behind] for height and width, put around the input by `pad`, so that it may be unlike.
"""

import numpy as np
import torch
import torch.nn.functional as F

from fixture import save

# name: input [batch, height, width, channels], weight, stride, dilation, padding (height, width),
# groups, bias
CONVOLUTIONS = {
    "conv1d_same": ([2, 1, 19, 6], [8, 6, 1, 5], [1, 1], [1, 1], [[0, 0], [2, 2]], 1, True),
    "conv1d_stride": ([3, 1, 23, 20], [17, 20, 1, 11], [1, 2], [1, 1], [[0, 0], [5, 5]], 1, True),
    "conv1d_dilated": ([2, 1, 40, 4], [5, 4, 1, 7], [1, 1], [1, 3], [[0, 0], [9, 9]], 1, False),
    "conv1d_causal": ([2, 1, 15, 5], [6, 5, 1, 4], [1, 1], [1, 2], [[0, 0], [6, 0]], 1, True),
    "conv1d_depthwise": ([2, 1, 30, 35], [35, 1, 1, 9], [1, 1], [1, 1], [[0, 0], [4, 4]], 35, True),
    "conv1d_groups": ([2, 1, 21, 8], [12, 2, 1, 3], [1, 3], [1, 2], [[0, 0], [1, 2]], 4, True),
    "conv2d_same": ([2, 9, 7, 5], [6, 5, 3, 3], [1, 1], [1, 1], [[1, 1], [1, 1]], 1, True),
    "conv2d_tensorflow": ([1, 12, 11, 3], [4, 3, 7, 7], [2, 2], [1, 1], [[2, 3], [3, 3]], 1, False),
    "conv2d_deepspeech": ([2, 41, 24, 1], [4, 1, 21, 11], [2, 2], [1, 1], [[10, 10], [5, 5]], 1, True),
    "conv2d_uneven": ([2, 13, 10, 4], [3, 4, 4, 2], [3, 1], [2, 3], [[4, 1], [0, 3]], 1, True),
    "conv2d_pointwise": ([2, 5, 6, 20], [9, 20, 1, 1], [1, 1], [1, 1], [[0, 0], [0, 0]], 1, True),
    "conv2d_shortcut": ([2, 7, 8, 6], [8, 6, 1, 1], [2, 2], [1, 1], [[0, 0], [0, 0]], 1, False),
    "conv2d_depthwise": ([2, 9, 8, 33], [33, 1, 3, 3], [2, 2], [1, 1], [[1, 1], [1, 1]], 33, True),
    "conv2d_groups": ([2, 6, 7, 6], [9, 2, 3, 3], [1, 2], [2, 1], [[2, 2], [1, 1]], 3, True),
}

# name: rows, channels, epsilon, momentum, affine, relu, share of rows that count
BATCH_NORMS = {
    "plain": (40, 7, 1e-5, 0.1, True, False, 1.0),
    "relu": (70, 33, 1e-3, 0.01, True, True, 1.0),
    "bare": (33, 16, 1e-5, 0.1, False, False, 1.0),
    "masked": (50, 20, 1e-5, 0.1, True, True, 0.6),
}


def draw(random, shape, scale=1.0, shift=0.0):
    values = random.standard_normal(shape) * scale + shift
    return torch.from_numpy(values).float().double()


def convolution(random, tensors, name, case):
    shape, weight_shape, stride, dilation, padding, groups, biased = case
    x = draw(random, shape).requires_grad_()
    fan_in = np.prod(weight_shape[1:])
    weight = draw(random, weight_shape, fan_in**-0.5).requires_grad_()
    bias = draw(random, weight_shape[:1], 0.1).requires_grad_() if biased else None
    (top, bottom), (left, right) = padding
    image = F.pad(x.permute(0, 3, 1, 2), (left, right, top, bottom))
    y = F.conv2d(image, weight, bias, stride, 0, dilation, groups).permute(0, 2, 3, 1)
    upstream = draw(random, y.shape)
    (y * upstream).sum().backward()
    tensors.update({
        f"{name}/x": x, f"{name}/weight": weight, f"{name}/y": y, f"{name}/upstream": upstream,
        f"{name}/dx": x.grad, f"{name}/dweight": weight.grad,
    })
    if biased:
        tensors.update({f"{name}/bias": bias, f"{name}/dbias": bias.grad})
    return {
        "name": name, "stride": stride, "dilation": dilation, "padding": padding, "groups": groups, "bias": biased,
    }


def batch_norm(random, tensors, name, case):
    """Two batches in training mode, then a third by the running statistics."""
    rows, channels, epsilon, momentum, affine, relu, share = case
    layer = torch.nn.BatchNorm1d(channels, eps=epsilon, momentum=momentum, affine=affine).double()
    if affine:
        layer.weight.data = draw(random, [channels], 0.2, 1.0)
        layer.bias.data = draw(random, [channels], 0.2)
        tensors.update({f"{name}/weight": layer.weight, f"{name}/bias": layer.bias})
    counts = torch.from_numpy(random.random(rows) < share)
    tensors[f"{name}/counts"] = counts
    for step in range(3):
        layer.train(step < 2)
        x = draw(random, [rows, channels], 1.5, 0.7).requires_grad_()
        upstream = draw(random, [rows, channels])
        layer.zero_grad()
        inside = layer(x[counts])
        inside = torch.relu(inside) if relu else inside
        y = torch.zeros(rows, channels, dtype=torch.float64).masked_scatter(counts[:, None].expand(-1, channels), inside)
        (y * upstream).sum().backward()
        tensors.update({
            f"{name}/{step}/x": x, f"{name}/{step}/upstream": upstream, f"{name}/{step}/y": y, f"{name}/{step}/dx": x.grad,
            f"{name}/{step}/running_mean": layer.running_mean.clone(),
            f"{name}/{step}/running_variance": layer.running_var.clone(),
        })
        if affine:
            tensors.update({
                f"{name}/{step}/dweight": layer.weight.grad.clone(), f"{name}/{step}/dbias": layer.bias.grad.clone(),
            })
    return {"name": name, "epsilon": epsilon, "momentum": momentum, "affine": affine, "relu": relu}


def main():
    random = np.random.default_rng(7)
    tensors = {}
    convolutions = [convolution(random, tensors, name, case) for name, case in CONVOLUTIONS.items()]
    norms = [batch_norm(random, tensors, name, case) for name, case in BATCH_NORMS.items()]
    description = {"producer": f"PyTorch {torch.__version__}", "computed_in": "FP64"}
    save("convolution", tensors, description | {"convolutions": convolutions, "batch_norms": norms})


if __name__ == "__main__":
    main()
