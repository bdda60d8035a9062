"""Language models -> tests/fixtures/language.safetensors.

For each case CASE and each of two consecutive windows K in 0, 1: `CASE/K/inputs` and
`CASE/K/targets` [rows, steps], `CASE/K/logits`, `CASE/K/nll` (summed over the targets),
`CASE/K/gradients/PATH` of the loss, whose gradient is clipped by its global norm for the update,
and `CASE/K/updated/PATH`, the weights after one update by SGD. The second window begins with the
state at the end of the first, which is computed before the first update and carried without a
gradient. `CASE/weights/PATH` are the first weights. No dropout.

The LSTM is PyTorch's; with one bias vector the second is 0 and stays 0. The Transformer is
nanoGPT's without biases, with PyTorch's attention. The layer-normalised LSTM is OpenSeq2Seq's cell,
step by step; each of its windows begins with zeros. A case with `over` "sum-of-steps" multiplies
the mean loss by the steps, as TensorFlow's tutorial does.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import fixture

UNITS, ROWS, STEPS, RATE, CLIP = 13, 3, 5, 0.7, 0.25
LSTM = {"kind": "lstm", "width": 6, "units": 6, "layers": 2, "dropout": 0.2, "embedding_bound": 0.1, "softmax_bias_bound": 0.0}
GPT = {"kind": "gpt", "width": 8, "layers": 2, "heads": 2, "context": 7, "dropout": 0.1, "init_std": 0.02, "epsilon": 1e-5}
NORMED = {
    "kind": "layer-norm-lstm", "width": 6, "units": 7, "layers": 3, "embedding_dropout": 0.63, "candidate_dropout": 0.3, "dropout": 0.4,
    "forget_bias": 1.0, "embedding_bound": 0.1, "epsilon": 1e-12,
}  # fmt: skip
CASES = {
    "lstm-tied": (LSTM | {"tied": True, "biases": "two"}, "mean"),
    "lstm-untied": (LSTM | {"width": 5, "tied": False, "biases": "two"}, "mean"),
    "lstm-one-bias": (LSTM | {"tied": False, "biases": "one-of-zeros"}, "sum-of-steps"),
    "gpt": (GPT, "mean"),
    "layer-norm-lstm": (NORMED, "mean"),
}

# Norms divide by deviations, so a draw with small ones tests the arithmetic's noise and no wiring.
# In this draw PyTorch's gradients in FP32 are within 2e-6 of those in FP64; in draw 0, 2e-5.
DRAWS = {"layer-norm-lstm": 11}


class Lstm(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.embedding = nn.Embedding(UNITS, spec["width"])
        self.lstm = nn.LSTM(spec["width"], spec["units"], spec["layers"], batch_first=True)
        self.softmax = nn.Linear(spec["units"], UNITS)
        if spec["tied"]:
            self.softmax.weight = self.embedding.weight
        self.one_bias = spec["biases"] == "one-of-zeros"

    def forward(self, inputs, state):
        out, state = self.lstm(self.embedding(inputs), state)
        return self.softmax(out), tuple(part.detach() for part in state)

    def paths(self):
        """Our path of every parameter that learns."""
        for name, value in self.named_parameters():
            part, layer = name.rsplit("_l", 1) if name.startswith("lstm.") else (name, None)
            if layer is None:
                yield name, value
            elif not (self.one_bias and part == "lstm.bias_hh"):
                yield f"layers.{layer}.{part.removeprefix('lstm.')}", value


class NormedCell(nn.Module):
    """TensorFlow's kernel [in + hidden, 4 hidden] in two parts, transposed; the gates are i, j, f,
    o.
    """

    def __init__(self, width, units, spec):
        super().__init__()
        self.weight_ih, self.weight_hh = (nn.Parameter(torch.empty(4 * units, of)) for of in (width, units))
        norm = lambda: nn.LayerNorm(units, spec["epsilon"])
        self.input_norm, self.transform_norm, self.forget_norm, self.output_norm, self.state_norm = (norm() for _ in range(5))
        self.units, self.forget_bias = units, spec["forget_bias"]

    def forward(self, inputs):
        h = c = inputs.new_zeros(len(inputs), self.units)
        outs = []
        for x in inputs.unbind(1):
            kernel = torch.cat([self.weight_ih, self.weight_hh], 1).T
            i, j, f, o = (torch.cat([x, h], 1) @ kernel).split(self.units, 1)
            i, j, f, o = self.input_norm(i), self.transform_norm(j), self.forget_norm(f), self.output_norm(o)
            c = self.state_norm(c * torch.sigmoid(f + self.forget_bias) + torch.sigmoid(i) * torch.tanh(j))
            h = torch.tanh(c) * torch.sigmoid(o)
            outs.append(h)
        return torch.stack(outs, 1)


class NormedLstm(nn.Module):
    def __init__(self, spec, units=UNITS):
        super().__init__()
        self.embedding = nn.Embedding(units, spec["width"])
        widths = [spec["width"], *[spec["units"]] * (spec["layers"] - 1), spec["width"]]
        self.layers = nn.ModuleList(NormedCell(*sizes, spec) for sizes in zip(widths, widths[1:]))
        self.softmax = nn.Linear(spec["width"], units)
        self.softmax.weight = self.embedding.weight

    def outputs(self, inputs):
        x = self.embedding(inputs)
        for layer in self.layers:
            x = layer(x)
        return x

    def forward(self, inputs, state):
        return self.softmax(self.outputs(inputs)), None

    def paths(self):
        yield from self.named_parameters()


class Block(nn.Module):
    def __init__(self, width, heads, epsilon):
        super().__init__()
        linear = lambda of, to: nn.Linear(of, to, bias=False)
        self.attention_norm = nn.LayerNorm(width, epsilon, bias=False)
        self.query, self.key, self.value, self.output = (linear(width, width) for _ in range(4))
        self.feed_forward_norm = nn.LayerNorm(width, epsilon, bias=False)
        self.inner, self.outer, self.heads = linear(width, 4 * width), linear(4 * width, width), heads

    def forward(self, x):
        rows, steps, width = x.shape
        normed = self.attention_norm(x)
        heads = [of(normed).view(rows, steps, self.heads, -1).transpose(1, 2) for of in (self.query, self.key, self.value)]
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).reshape(rows, steps, width))
        return x + self.outer(F.gelu(self.inner(self.feed_forward_norm(x))))


class Gpt(nn.Module):
    def __init__(self, spec):
        super().__init__()
        width = spec["width"]
        self.embedding, self.position_embedding = nn.Embedding(UNITS, width), nn.Embedding(spec["context"], width)
        self.blocks = nn.ModuleList(Block(width, spec["heads"], spec["epsilon"]) for _ in range(spec["layers"]))
        self.norm = nn.LayerNorm(width, spec["epsilon"], bias=False)

    def forward(self, inputs, state):
        x = self.embedding(inputs) + self.position_embedding(torch.arange(inputs.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.embedding.weight.T, state

    def paths(self):
        yield from self.named_parameters()


MODELS = {"lstm": Lstm, "layer-norm-lstm": NormedLstm, "gpt": Gpt}


def main():
    torch.set_default_dtype(torch.float64)
    tensors, described = {}, {}
    for seed, (name, (spec, over)) in enumerate(CASES.items()):
        seed += DRAWS.get(name, 0)
        model = MODELS[spec["kind"]](spec)
        fixture.randomize(model, 2600 + seed)
        if spec["kind"] == "lstm" and model.one_bias:
            for layer in range(spec["layers"]):
                getattr(model.lstm, f"bias_hh_l{layer}").data.zero_().requires_grad_(False)
        learned = dict(model.paths())
        tensors |= {f"{name}/weights/{path}": value.detach().clone() for path, value in learned.items()}
        text = torch.from_numpy(np.random.default_rng(2700 + seed).integers(0, UNITS, (ROWS, 2 * STEPS + 1)))
        state = None
        for window in range(2):
            inputs, targets = (text[:, window * STEPS + shift:][:, :STEPS] for shift in (0, 1))
            logits, state = model(inputs, state)
            nll = F.cross_entropy(logits.reshape(-1, UNITS), targets.reshape(-1), reduction="sum")
            loss = nll / (ROWS * STEPS) * (STEPS if over == "sum-of-steps" else 1)
            model.zero_grad()
            loss.backward()
            at = f"{name}/{window}"
            tensors |= {f"{at}/inputs": inputs, f"{at}/targets": targets, f"{at}/logits": logits, f"{at}/nll": nll}
            tensors |= {f"{at}/gradients/{path}": value.grad.clone() for path, value in learned.items()}
            norm = torch.stack([value.grad.norm() for value in learned.values()]).norm()
            assert norm > CLIP, (name, norm)
            with torch.no_grad():
                for value in learned.values():
                    value -= RATE * value.grad * (CLIP / norm)
            tensors |= {f"{at}/updated/{path}": value.detach().clone() for path, value in learned.items()}
        described[name] = {"model": spec, "over": over}
    description = {"layout": 1, "computed_in": "float64", "units": UNITS, "rows": ROWS, "learning_rate": RATE, "clip_norm": CLIP}
    fixture.save("language", tensors, description | {"cases": described})


if __name__ == "__main__":
    main()
