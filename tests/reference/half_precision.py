"""Products in FP16 as a tensor core makes them, by PyTorch: `tests/fixtures/half_precision.safetensors`.

Operands are rounded to FP16 (`Tensor.half`), multiplied and added up in FP64, and the result is rounded to FP16 once. FP64 stands for
the FP32 sums of a tensor core: of the sums here both round to the same FP16, but for one in some thousands that lies at the middle
between two. Gradients are made of the same products, from a gradient of the output that is FP16 itself. Those of the cases named
`small` are around the smallest FP16, so that many are subnormal and many are lost.
"""

import numpy as np
import torch
import torch.nn.functional as F

from fixture import save


def half(x):
    """The nearest FP16, in FP64."""
    return x.float().half().double()


def draw(random, shape, scale=1.0):
    return torch.from_numpy(random.standard_normal(shape) * scale).float().double()


class Linear(torch.autograd.Function):
    """x [rows, in], weight [out, in], bias [out]."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        x, weight = half(x), half(weight)
        ctx.save_for_backward(x, weight)
        return half(x @ weight.T + half(bias))

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        gradient = half(gradient)
        return half(gradient @ weight), half(gradient.T @ x), half(gradient.sum(0))


class Convolution(torch.autograd.Function):
    """x [batch, height, width, channels], weight [out, channels / groups, height, width], bias [out]."""

    @staticmethod
    def forward(ctx, x, weight, bias, stride, padding, groups):
        image = half(x).permute(0, 3, 1, 2)
        ctx.save_for_backward(image, half(weight))
        ctx.how = (stride, padding, groups)
        return half(F.conv2d(image, half(weight), half(bias), stride, padding, 1, groups)).permute(0, 2, 3, 1)

    @staticmethod
    def backward(ctx, gradient):
        image, weight = ctx.saved_tensors
        stride, padding, groups = ctx.how
        gradient = half(gradient).permute(0, 3, 1, 2)
        image_gradient = torch.nn.grad.conv2d_input(image.shape, weight, gradient, stride, padding, 1, groups)
        weight_gradient = torch.nn.grad.conv2d_weight(image, weight.shape, gradient, stride, padding, 1, groups)
        return half(image_gradient).permute(0, 2, 3, 1), half(weight_gradient), half(gradient.sum((0, 2, 3))), None, None, None


class Attention(torch.autograd.Function):
    """q, k, v [length, width] of one sequence, FP16 already; softmax in FP64, which stands for FP32."""

    @staticmethod
    def forward(ctx, q, k, v, heads, causal):
        length, width = q.shape
        scale = (width // heads) ** -0.5
        q, k, v = [x.reshape(length, heads, -1).transpose(0, 1) for x in (half(q * scale), k, v)]
        scores = half(q @ k.transpose(1, 2))
        if causal:
            scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
        probabilities = scores.softmax(-1)
        ctx.save_for_backward(q, k, v, probabilities)
        ctx.scale = scale
        return half(half(probabilities) @ v).transpose(0, 1).reshape(length, width)

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, probabilities = ctx.saved_tensors
        heads, length, size = q.shape
        gradient = half(gradient).reshape(length, heads, size).transpose(0, 1)
        of_values = half(half(probabilities).transpose(1, 2) @ gradient)
        slopes = half(gradient @ v.transpose(1, 2))
        slopes = half(probabilities * (slopes - (probabilities * slopes).sum(-1, keepdim=True)))
        of_queries = half(half(slopes @ k) * ctx.scale)
        of_keys = half(slopes.transpose(1, 2) @ q)
        together = [x.transpose(0, 1).reshape(length, heads * size) for x in (of_queries, of_keys, of_values)]
        return *together, None, None


# name: scale of the output's gradient
SIZES = {"usual": 1.0, "small": 2.0**-23}

# name: x, weight, stride, padding, groups
CONVOLUTIONS = {
    "conv1d": ([2, 1, 19, 6], [8, 6, 1, 5], [1, 2], [0, 2], 1),
    "conv2d": ([2, 9, 7, 5], [6, 5, 3, 3], [1, 1], [1, 1], 1),
    "depthwise": ([2, 1, 30, 35], [35, 1, 1, 9], [1, 1], [0, 4], 35),
}


def main():
    random = np.random.default_rng(11)
    tensors = {}

    def case(name, inputs, function):
        for size, scale in SIZES.items():
            leaves = {key: value.clone().requires_grad_() for key, value in inputs.items()}
            y = function(*leaves.values())
            upstream = half(draw(random, y.shape, scale))
            y.backward(upstream)
            here = f"{name}_{size}"
            tensors.update({f"{here}/y": y, f"{here}/upstream": upstream})
            for key, leaf in leaves.items():
                tensors.update({f"{here}/{key}": leaf, f"{here}/d{key}": leaf.grad})

    case("linear", {
        "x": draw(random, [45, 70]), "weight": draw(random, [37, 70], 70**-0.5), "bias": draw(random, [37], 0.1),
    }, Linear.apply)
    for name, (shape, weight, stride, padding, groups) in CONVOLUTIONS.items():
        inputs = {
            "x": draw(random, shape), "weight": draw(random, weight, np.prod(weight[1:]) ** -0.5),
            "bias": draw(random, weight[:1], 0.1),
        }
        case(name, inputs, lambda *leaves: Convolution.apply(*leaves, stride, padding, groups))
    for name, causal in [("attention", False), ("attention_causal", True)]:
        inputs = {key: half(draw(random, [17, 24])) for key in "qkv"}
        case(name, inputs, lambda *leaves: Attention.apply(*leaves, 3, causal))
    convolutions = [
        {"name": name, "stride": stride, "padding": padding, "groups": groups}
        for name, (_, _, stride, padding, groups) in CONVOLUTIONS.items()
    ]
    save("half_precision", tensors, {"producer": f"PyTorch {torch.__version__}", "convolutions": convolutions})


if __name__ == "__main__":
    main()
