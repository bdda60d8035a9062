"""FP16 as a tensor core multiplies and as layers store it, by PyTorch:
`tests/fixtures/half_precision.safetensors`.

Operands are rounded to FP16 (`Tensor.half`), multiplied and added up in FP64, and the result is
rounded to FP16 once. FP64 stands for the FP32 sums of a tensor core: of the sums here both round to
the same FP16, but for one in some thousands that lies at the middle between two. Gradients are made
of the same products, from a gradient of the output that is FP16 itself. Those of the cases named
`small` are around the smallest FP16, so that many are subnormal and many are lost.

Recurrent layers and the context of a recurrent decoder add what stands beside products: gates,
softmax and a network's scores compute in FP64, which stands for FP32, and their results are rounded
where they are stored. The backward passes are written out, because PyTorch's autograd would round
in other places.
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
    """x [batch, height, width, channels], weight [out, channels / groups, height, width], bias
    [out].
    """

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
    """q, k, v [length, width] of one sequence, FP16 already; softmax in FP64, which stands for
    FP32.
    """

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


def steps_of(lengths):
    """First row and rows of each packed sequence."""
    first = 0
    for length in lengths:
        yield first, length
        first += length


class Lstm(torch.autograd.Function):
    """The input's part of the gates i, f, g, o [rows, 4 hidden], FP16 already; weight [4 hidden,
    hidden]; from zeros.
    """

    @staticmethod
    def forward(ctx, gates, weight, lengths):
        weight = half(weight)
        hidden = weight.shape[1]
        out, acted, cells = gates.new_zeros(len(gates), hidden), torch.zeros_like(gates), gates.new_zeros(len(gates), hidden)
        for first, length in steps_of(lengths):
            h, c = gates.new_zeros(hidden), gates.new_zeros(hidden)
            for row in range(first, first + length):
                i, f, g, o = (gates[row] + half(weight @ h)).chunk(4)
                i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
                c = f * c + i * g
                h = half(o * c.tanh())
                c = half(c)
                out[row], cells[row], acted[row] = h, c, torch.cat([i, f, g, o])
        ctx.save_for_backward(weight, out, acted, cells)
        ctx.lengths = lengths
        return out

    @staticmethod
    def backward(ctx, gradient):
        weight, out, acted, cells = ctx.saved_tensors
        gradient, of_gates = half(gradient), torch.zeros_like(acted)
        before = torch.zeros_like(out)
        for first, length in steps_of(ctx.lengths):
            of_h, of_c = torch.zeros_like(out[0]), torch.zeros_like(out[0])
            for row in reversed(range(first, first + length)):
                i, f, g, o = acted[row].chunk(4)
                begins = row == first
                before[row] = 0 if begins else out[row - 1]
                c_before = torch.zeros_like(of_c) if begins else cells[row - 1]
                of_h = gradient[row] + of_h
                squashed = cells[row].tanh()
                of_cell = of_c + of_h * o * (1 - squashed**2)
                of_gates[row] = half(torch.cat([
                    of_cell * g * i * (1 - i), of_cell * c_before * f * (1 - f), of_cell * i * (1 - g**2),
                    of_h * squashed * o * (1 - o),
                ]))
                of_c = half(of_cell * f)
                of_h = half(of_gates[row] @ weight)
        return of_gates, half(of_gates.T @ before), None


class Gru(torch.autograd.Function):
    """The input's part of the gates r, z, n [rows, 3 hidden], FP16 already; weight [3 hidden,
    hidden], bias [3 hidden]; from zeros.
    """

    @staticmethod
    def forward(ctx, gates, weight, bias, lengths):
        weight, bias = half(weight), half(bias)
        hidden = weight.shape[1]
        out, acted, kept = gates.new_zeros(len(gates), hidden), torch.zeros_like(gates), gates.new_zeros(len(gates), hidden)
        for first, length in steps_of(lengths):
            h = gates.new_zeros(hidden)
            for row in range(first, first + length):
                (r, z, n), (sr, sz, sn) = gates[row].chunk(3), half(weight @ h + bias).chunk(3)
                r, z = (r + sr).sigmoid(), (z + sz).sigmoid()
                n = (n + r * sn).tanh()
                h = half(n + z * (h - n))
                out[row], kept[row], acted[row] = h, sn, torch.cat([r, z, n])
        ctx.save_for_backward(weight, out, acted, kept)
        ctx.lengths = lengths
        return out

    @staticmethod
    def backward(ctx, gradient):
        weight, out, acted, kept = ctx.saved_tensors
        gradient, of_gates, of_sums = half(gradient), torch.zeros_like(acted), torch.zeros_like(acted)
        before = torch.zeros_like(out)
        for first, length in steps_of(ctx.lengths):
            of_product, carry = torch.zeros_like(out[0]), torch.zeros_like(out[0])
            for row in reversed(range(first, first + length)):
                r, z, n = acted[row].chunk(3)
                before[row] = 0 if row == first else out[row - 1]
                of_h = gradient[row] + of_product + carry
                of_n = of_h * (1 - z) * (1 - n**2)
                of_r = half(of_n * kept[row] * r * (1 - r))
                of_z = half(of_h * (before[row] - n) * z * (1 - z))
                of_gates[row] = torch.cat([of_r, of_z, half(of_n)])
                of_sums[row] = torch.cat([of_r, of_z, half(of_n * r)])
                carry = half(of_h * z)
                of_product = half(of_sums[row] @ weight)
        return of_gates, half(of_sums.T @ before), half(of_sums.sum(0)), None


class Context(torch.autograd.Function):
    """query [queries, units], key [keys, units], value [keys, width] of one source, FP16 already;
    scores are products, or with network [units] w · tanh(query + key).
    """

    @staticmethod
    def forward(ctx, query, key, value, network):
        if network is None:
            scores = half(query @ key.T)
        else:
            network = half(network)
            scores = half((query[:, None] + key[None]).tanh() @ network)
        weights = scores.softmax(-1)
        ctx.save_for_backward(query, key, value, network, weights)
        return half(half(weights) @ value)

    @staticmethod
    def backward(ctx, gradient):
        query, key, value, network, weights = ctx.saved_tensors
        gradient = half(gradient)
        slopes = half(gradient @ value.T)
        slopes = half(weights * (slopes - (weights * slopes).sum(-1, keepdim=True)))
        of_value = half(half(weights).T @ gradient)
        if network is None:
            return half(slopes @ key), half(slopes.T @ query), of_value, None
        hidden = (query[:, None] + key[None]).tanh()
        inner = slopes[..., None] * network * (1 - hidden**2)
        of_network = half((slopes[..., None] * hidden).sum((0, 1)))
        return half(inner.sum(1)), half(inner.sum(0)), of_value, of_network


class Stored(torch.autograd.Function):
    """What stands between two layers."""

    @staticmethod
    def forward(ctx, x):
        return half(x)

    @staticmethod
    def backward(ctx, gradient):
        return half(gradient)


def norm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)


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
    lengths = [5, 1, 3]
    case("lstm", {
        "gates": half(draw(random, [sum(lengths), 4 * 37])), "weight": draw(random, [4 * 37, 37], 37**-0.5),
    }, lambda *leaves: Lstm.apply(*leaves, lengths))
    case("gru", {
        "gates": half(draw(random, [sum(lengths), 3 * 37])), "weight": draw(random, [3 * 37, 37], 37**-0.5),
        "bias": draw(random, [3 * 37], 0.1),
    }, lambda *leaves: Gru.apply(*leaves, lengths))
    looked_at = {"query": half(draw(random, [9, 21])), "key": half(draw(random, [13, 21])), "value": half(draw(random, [13, 10]))}
    case("context_products", looked_at, lambda *leaves: Context.apply(*leaves, None))
    case("context_network", {**looked_at, "network": draw(random, [21])}, Context.apply)
    # A sub-layer of a Transformer with the norm before it: what enters the residual stream is
    # stored, and so is the stream.
    case("sublayer", {
        "x": draw(random, [21, 32]), "scale": 1 + draw(random, [32], 0.1), "shift": draw(random, [32], 0.1),
        "weight": draw(random, [32, 32], 32**-0.5), "bias": draw(random, [32], 0.1),
    }, lambda x, scale, shift, weight, bias: Stored.apply(
        (stream := Stored.apply(x)) + Linear.apply(Stored.apply(norm(stream, scale, shift)), weight, bias)
    ))
    convolutions = [
        {"name": name, "stride": stride, "padding": padding, "groups": groups}
        for name, (_, _, stride, padding, groups) in CONVOLUTIONS.items()
    ]
    save("half_precision", tensors, {"producer": f"PyTorch {torch.__version__}", "convolutions": convolutions})


if __name__ == "__main__":
    main()
