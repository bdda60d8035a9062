"""Classifiers of texts with the layers of a language model -> tests/fixtures/transfer.safetensors.

The layout is that of text_classifier_fixtures.py. Texts have padding in front, behind and on both
sides; its number is -1, and it is not read: each text is computed alone, without it. One text has
no words. The layers are OpenSeq2Seq's layer-normalised LSTM cells of language_fixtures.py; the
score reads the last state of the last layer, or its output and its cell state. No dropout.
"""

import numpy as np
import torch
import torch.nn.functional as F

import fixture
from language_fixtures import NormedCell

ROWS, TEXTS, POSITIONS, RATE = 11, 6, 9, 0.5
START = {"weights": {"kind": "uniform", "bound": 0.1}}
EMBEDDING = {"kind": "embedding", "width": 5, "element_dropout": 0.4, **START}
DENSE = {"kind": "dense", **START}


def layers(**more):
    return {"kind": "layer-norm-lstm", "candidate_dropout": 0.3, "dropout": 0.2, "forget_bias": 1.0, "epsilon": 1e-12, **more}


CASES = {
    "output": (2, [EMBEDDING, layers(units=7, width=5, layers=3, state="output"), DENSE | {"units": 2}]),
    "output-and-cell": (2, [EMBEDDING, layers(units=6, width=5, layers=2, state="output-and-cell"), DENSE | {"units": 2}]),
    "one-layer": (3, [EMBEDDING, layers(units=4, width=6, layers=1, state="output"), DENSE | {"units": 3}]),
}

# As in language_fixtures.py: PyTorch's gradients in FP32 are within 1e-6 of those in FP64.
DRAWS = {"output": 8}


class Classifier(torch.nn.Module):
    def __init__(self, spec):
        super().__init__()
        embedding, stack, dense = spec
        self.embedding = torch.nn.Embedding(ROWS, embedding["width"])
        widths = [embedding["width"], *[stack["units"]] * (stack["layers"] - 1), stack["width"]]
        self.stack = torch.nn.ModuleList(NormedCell(*sizes, stack) for sizes in zip(widths, widths[1:]))
        self.both = stack["state"] == "output-and-cell"
        self.output = torch.nn.Linear(stack["width"] * (1 + self.both), dense["units"])

    def forward(self, text):
        if len(text) == 0:
            return self.output(torch.zeros(1, self.output.in_features))[0]
        x = self.embedding(text).unsqueeze(0)
        for cell in self.stack:
            # The cell state behind the last word: the output is tanh(c) sigmoid(o).
            outs, state = [], None
            for step in x.unbind(1):
                state = self.step(cell, step, state)
                outs.append(state[0])
            x = torch.stack(outs, 1)
        h, c = state
        return self.output(torch.cat([h, c] if self.both else [h], 1))[0]

    @staticmethod
    def step(cell, x, state):
        h, c = state or (x.new_zeros(1, cell.units), x.new_zeros(1, cell.units))
        kernel = torch.cat([cell.weight_ih, cell.weight_hh], 1).T
        i, j, f, o = (torch.cat([x, h], 1) @ kernel).split(cell.units, 1)
        i, j, f, o = cell.input_norm(i), cell.transform_norm(j), cell.forget_norm(f), cell.output_norm(o)
        c = cell.state_norm(c * torch.sigmoid(f + cell.forget_bias) + torch.sigmoid(i) * torch.tanh(j))
        return torch.tanh(c) * torch.sigmoid(o), c

    def paths(self):
        for name, value in self.named_parameters():
            yield name.replace("stack.", "layers.1.layers.", 1) if name.startswith("stack.") else name, value


def main():
    torch.set_default_dtype(torch.float64)
    tensors, described = {}, {}
    for seed, (name, (classes, spec)) in enumerate(CASES.items()):
        seed += DRAWS.get(name, 0)
        draw = np.random.default_rng(4100 + seed)
        model = Classifier(spec)
        fixture.randomize(model, 4200 + seed)
        # The number of words of each text, and where they begin: in front, behind, and between.
        lengths = [POSITIONS, 4, 1, 6, 0, 3]
        begins = [0, POSITIONS - 4, POSITIONS - 1, 0, 0, 2]
        ids = np.full((TEXTS, POSITIONS), -1)
        for text, (length, begin) in enumerate(zip(lengths, begins)):
            ids[text, begin:begin + length] = draw.integers(0, ROWS, length)
        ids, labels = torch.from_numpy(ids), torch.from_numpy(draw.integers(0, classes, TEXTS))
        weights = dict(model.paths())
        tensors |= {f"{name}/weights/{path}": value.detach().clone() for path, value in weights.items()}
        logits = torch.stack([model(text[text >= 0]) for text in ids])
        # The loop above is the cell of the language models.
        alone = ids[3][ids[3] >= 0].unsqueeze(0)
        outs = model.embedding(alone)
        for cell in model.stack:
            outs = cell(outs)
        if not model.both:
            assert torch.allclose(model.output(outs[:, -1])[0], logits[3])
        loss = F.cross_entropy(logits, labels, reduction="sum")
        (loss / TEXTS).backward()
        tensors |= {
            f"{name}/ids": ids, f"{name}/labels": labels, f"{name}/logits": logits, f"{name}/loss": loss,
            f"{name}/top1": (logits.argmax(1) == labels).sum().double(),
        }
        tensors |= {f"{name}/gradients/{path}": value.grad for path, value in weights.items()}
        tensors |= {f"{name}/updated/{path}": value.detach() - RATE * value.grad for path, value in weights.items()}
        described[name] = {"classes": classes, "layer": spec}
    description = {"layout": 1, "computed_in": "float64", "rows": ROWS, "positions": POSITIONS, "learning_rate": RATE}
    description["optimizer"] = {"kind": "sgd", "momentum": 0.0}
    fixture.save("transfer", tensors, description | {"cases": described})


if __name__ == "__main__":
    main()
