"""Classifiers of pictures -> tests/fixtures/classifier.safetensors.

For each case CASE: `CASE/pixels` [pictures, height, width, channels], `CASE/labels`,
`CASE/weights/PATH` under our paths, `CASE/logits`, `CASE/loss` (cross-entropy, summed over the
pictures), `CASE/top1` (number of right answers), `CASE/gradients/PATH` and `CASE/pixel_gradients`
of the mean over the pictures, and `CASE/updated/PATH`, the weights after one update by SGD.
Everything is computed in evaluation mode: dropout does nothing. Pixels have few different values,
so that many maxima of pixels are equal.

`CASE/half/logits`, `CASE/half/loss` and `CASE/half/gradients/PATH` are computed with FP16 products:
operands and results of products, results of other layers, and all their gradients are rounded to
FP16 (`half_precision.py`); the loss is not.
"""

import numpy as np
import torch
from torch import nn

import fixture
from half_precision import Convolution, Linear, half

CLASSES, RATE = 5, 0.5
START = {"weights": "xavier-uniform", "bias": "torch"}


def convolution(channels, kernel, **more):
    return {"kind": "convolution", "channels": channels, "kernel": kernel, **more, **START}


def pool(of, size, stride):
    return {"kind": "pool", "of": of, "size": size, "stride": stride}


def dense(units):
    return {"kind": "dense", "units": units, **START}


RELU, SIGMOID, DROPOUT = {"kind": "relu"}, {"kind": "sigmoid"}, {"kind": "dropout", "rate": 0.5}
ROWS, PLANES = {"kind": "flatten", "order": "channels-last"}, {"kind": "flatten", "order": "channels-first"}
CASES = {
    "sigmoid-average": ([12, 10, 1], [
        convolution(3, 5, padding=2), SIGMOID, pool("average", 2, 2), convolution(6, 3), SIGMOID, pool("average", 2, 2),
        PLANES, dense(9), SIGMOID, dense(CLASSES)]),
    "relu-max": ([13, 11, 2], [
        convolution(7, 3), RELU, convolution(8, 3, stride=2, padding=1), RELU, pool("max", 2, 2), DROPOUT,
        ROWS, dense(10), RELU, DROPOUT, dense(CLASSES)]),
    "max-first": ([15, 14, 2], [
        pool("max", 3, 2), convolution(17, 2), pool("max", 2, 2), pool("average", 2, 1), RELU, PLANES, dense(CLASSES)]),
    "max-of-pixels": ([7, 9, 3], [pool("max", 2, 2), pool("average", 3, 1), ROWS, dense(CLASSES)]),
    "dense": ([5, 4, 2], [ROWS, dense(9), RELU, DROPOUT, dense(8), RELU, DROPOUT, dense(CLASSES)]),
}
PICTURES = 6


class ChannelsLast(nn.Module):
    def forward(self, x):
        return x.permute(0, 2, 3, 1).flatten(1)


def module(layer, channels, units):
    kind = layer["kind"]
    if kind == "convolution":
        step, padding = layer.get("stride", 1), layer.get("padding", 0)
        return nn.Conv2d(channels, layer["channels"], layer["kernel"], step, padding)
    if kind == "pool":
        return {"max": nn.MaxPool2d, "average": nn.AvgPool2d}[layer["of"]](layer["size"], layer["stride"])
    if kind == "flatten":
        return {"channels-first": nn.Flatten, "channels-last": ChannelsLast}[layer["order"]]()
    if kind == "dense":
        return nn.Linear(units, layer["units"])
    return {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "dropout": lambda: nn.Dropout(layer["rate"])}[kind]()


class Rounded(torch.autograd.Function):
    """Rounds a number and its gradient."""

    @staticmethod
    def forward(ctx, x):
        return half(x)

    @staticmethod
    def backward(ctx, gradient):
        return half(gradient)


class RoundedSigmoid(torch.autograd.Function):
    """The slope follows from the rounded output, as in PyTorch."""

    @staticmethod
    def forward(ctx, x):
        y = half(torch.sigmoid(x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return half(half(gradient) * y * (1 - y))


def half_logits(model, x):
    """The modules of a model in FP16."""
    for layer in model:
        if isinstance(layer, nn.Conv2d):
            image, how = x.permute(0, 2, 3, 1), (layer.stride, layer.padding, 1)
            x = Convolution.apply(image, layer.weight, layer.bias, *how).permute(0, 3, 1, 2)
        elif isinstance(layer, nn.Linear):
            x = Linear.apply(x, layer.weight, layer.bias)
        elif isinstance(layer, nn.Sigmoid):
            x = RoundedSigmoid.apply(x)
        else:
            x = Rounded.apply(layer(Rounded.apply(x)))
    return x


def main():
    tensors, described = {}, {}
    for seed, (name, (size, layers)) in enumerate(CASES.items()):
        draw = np.random.default_rng(1900 + seed)
        pixels = torch.from_numpy(draw.integers(-3, 4, (PICTURES, *size)) / 4.0).requires_grad_()
        labels = torch.from_numpy(draw.integers(0, CLASSES, PICTURES))
        x, model, paths = pixels.permute(0, 3, 1, 2), nn.Sequential(), {}
        for i, layer in enumerate(layers):
            made = module(layer, x.shape[1], x.shape[1]).double()
            fan = next(iter(made.parameters()))[0].numel() if len(list(made.parameters())) else 1
            for part, value in made.named_parameters():
                normal = torch.from_numpy(draw.standard_normal(tuple(value.shape)))
                scale = 0.2 if part == "bias" else 1.5 * fan**-0.5
                value.data = (normal * scale).float().double()
                paths[f"{'output' if i + 1 == len(layers) else f'layers.{i}'}.{part}"] = value
            x = made.eval()(x)
            model.append(made)
        model.eval()
        logits = model(pixels.permute(0, 3, 1, 2))
        loss = nn.functional.cross_entropy(logits, labels, reduction="sum")
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        (loss / PICTURES).backward()
        tensors |= {
            f"{name}/top1": (logits.argmax(1) == labels).sum().double(),
            f"{name}/pixels": pixels, f"{name}/labels": labels, f"{name}/logits": logits, f"{name}/loss": loss,
            f"{name}/pixel_gradients": pixels.grad.clone(),
        }
        given = {}
        for path, value in paths.items():
            tensors[f"{name}/weights/{path}"] = value.detach().clone()
            tensors[f"{name}/gradients/{path}"] = value.grad.clone()
            given[path], value.grad = value.grad, None
        logits = half_logits(model, pixels.detach().permute(0, 3, 1, 2))
        loss = nn.functional.cross_entropy(Rounded.apply(logits), labels, reduction="sum")
        (loss / PICTURES).backward()
        tensors |= {f"{name}/half/logits": logits, f"{name}/half/loss": loss}
        for path, value in paths.items():
            tensors[f"{name}/half/gradients/{path}"] = value.grad
            value.grad = given[path]
        optimizer.step()
        for path, value in paths.items():
            tensors[f"{name}/updated/{path}"] = value
        described[name] = {"size": size, "layer": layers}
    description = {"layout": 1, "computed_in": "float64", "learning_rate": RATE, "cases": described}
    description["optimizer"] = {"kind": "sgd", "momentum": 0.0}
    fixture.save("classifier", tensors, description)


if __name__ == "__main__":
    main()
