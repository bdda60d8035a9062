"""Language models with a sampled softmax: LSTMs with projections, and the layer-normalised LSTM of
language_fixtures.py -> tests/fixtures/big_lstm.safetensors.

For each case two consecutive windows of a text, `CASE/K/inputs` and `CASE/K/targets` [rows, steps],
with the candidates of each part of the rows, `CASE/K/candidates` [draws, sampled] and
`CASE/K/tries` [draws], which numpy draws as TensorFlow's log-uniform sampler does; the expected
counts of targets and candidates; and what PyTorch computes: `CASE/K/logits`, `CASE/K/nll`, the
summed loss of the full softmax, `CASE/K/loss`, that among targets and candidates, every
`CASE/K/gradients/PATH`, and `CASE/K/updated/PATH`, the weights after one update by Adagrad whose
gradients are multiplied and clipped in groups. The second window of an LSTM begins with the state of
the first, computed before the first update and carried without a gradient. `CASE/weights/PATH` are the
first weights. No dropout.

The sampler: tensorflow/core/kernels/range_sampler.cc, LogUniformSampler and ExpectedCountHelper;
the loss: tensorflow/python/ops/nn_impl.py, sampled_softmax_loss. TensorFlow's forget bias of 1 is
one of the given biases; its gates i, j, f, o are PyTorch's in another order.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import fixture
import language_fixtures

UNITS, ROWS, STEPS, RATE, INITIAL = 29, 4, 5, 0.2, 1.0
GROUPS = [
    {"parameters": "embedding", "factor": 4.0},
    {"parameters": "layers", "clip_norm": 0.05},
    {"parameters": "softmax", "factor": 2.0},
]
LSTM = {
    "kind": "lstm", "width": 6, "units": 9, "layers": 2, "tied": False, "dropout": 0.1, "biases": "one-of-zeros", "bound": 0.1,
    "embedding_bound": 0.1, "softmax_bias_bound": 0.1, "forget_bias": 1.0, "projection": {"width": 6, "bound": 0.1},
}  # fmt: skip
SAMPLED = {"kind": "sampled-softmax", "over": "sum-of-steps", "sampled": 11, "draws": 2}
CASES = {
    "big-lstm": (LSTM, SAMPLED),
    "one-layer": (LSTM | {"layers": 1, "width": 5}, SAMPLED | {"draws": 1}),
    "tied-mean": (LSTM | {"tied": True}, SAMPLED | {"over": "mean", "sampled": 7}),
    "layer-norm": (language_fixtures.NORMED, SAMPLED | {"over": "mean", "draws": 1}),
}

# As in language_fixtures.py: PyTorch's gradients in FP32 are within 2e-6 of those in FP64.
DRAWS = {"layer-norm": 11}


class Lstm(nn.Module):
    def __init__(self, spec):
        super().__init__()
        width = spec["projection"]["width"]
        self.embedding = nn.Embedding(UNITS, spec["width"])
        self.lstm = nn.LSTM(spec["width"], spec["units"], spec["layers"], batch_first=True, proj_size=width)
        self.softmax = nn.Linear(width, UNITS)
        if spec["tied"]:
            self.softmax.weight = self.embedding.weight

    def forward(self, inputs, state):
        out, (h, c) = self.lstm(self.embedding(inputs), state)
        return out, (h.detach(), c.detach())

    def paths(self):
        for name, value in self.named_parameters():
            if name.startswith(("embedding.", "softmax.")):
                yield name, value
            elif "bias_hh" not in name:
                part, layer = name.rsplit("_l", 1)
                yield f"layers.{layer}.{part.removeprefix('lstm.')}", value


class Normed(language_fixtures.NormedLstm):
    def __init__(self, spec):
        super().__init__(spec, UNITS)

    def forward(self, inputs, state):
        return self.outputs(inputs), None


MODELS = {"lstm": Lstm, "layer-norm-lstm": Normed}


def sampler(draw, count, limit):
    """Different values below `limit`, and the number of tries."""
    found, tries = [], 0
    while len(found) < count:
        tries += 1
        value = int(np.exp(draw.random() * np.log1p(limit))) - 1
        if value % limit not in found:
            found.append(value % limit)
    return torch.tensor(found), tries


def expected_count(ids, count, tries, limit):
    p = torch.log((ids + 2.0) / (ids + 1.0)) / np.log1p(limit)
    return p * count if tries == count else -torch.expm1(tries * torch.log1p(-p))


def sampled_loss(x, weight, bias, targets, candidates, tries):
    """The losses of all rows, and the expected counts of their targets and of the candidates."""
    of_targets, of_candidates = (expected_count(ids.double(), len(candidates), tries, UNITS) for ids in (targets, candidates))
    true = (x * weight[targets]).sum(1) + bias[targets] - of_targets.log()
    sampled = x @ weight[candidates].T + bias[candidates] - of_candidates.log()
    hits = targets[:, None] == candidates[None]
    sampled = sampled + hits * torch.finfo(torch.float32).min
    losses = F.cross_entropy(torch.cat([true[:, None], sampled], 1), torch.zeros_like(targets), reduction="sum")
    return losses, of_targets, of_candidates, hits.any(1)


def main():
    torch.set_default_dtype(torch.float64)
    tensors, described, repeated = {}, {}, []
    for seed, (name, (spec, loss_spec)) in enumerate(CASES.items()):
        seed += DRAWS.get(name, 0)
        model = MODELS[spec["kind"]](spec)
        fixture.randomize(model, 2800 + seed)
        if spec["kind"] == "lstm":
            for layer in range(spec["layers"]):
                getattr(model.lstm, f"bias_hh_l{layer}").data.zero_().requires_grad_(False)
        learned = dict(model.paths())
        tensors |= {f"{name}/weights/{path}": value.detach().clone() for path, value in learned.items()}
        draw = np.random.default_rng(2900 + seed)
        # Low numbers are frequent, as the sampler takes them to be.
        text = torch.from_numpy((draw.random((ROWS, 2 * STEPS + 1)) ** 2 * UNITS).astype(np.int64))
        optimizer = torch.optim.Adagrad(learned.values(), lr=RATE, initial_accumulator_value=INITIAL, eps=0.0)
        state, part = None, ROWS // loss_spec["draws"] * STEPS
        for window in range(2):
            inputs, targets = (text[:, window * STEPS + shift:][:, :STEPS] for shift in (0, 1))
            out, state = model(inputs, state)
            x, flat = out.reshape(ROWS * STEPS, -1), targets.reshape(-1)
            logits = model.softmax(x)
            nll = F.cross_entropy(logits, flat, reduction="sum")
            drawn = [sampler(draw, loss_spec["sampled"], UNITS) for _ in range(loss_spec["draws"])]
            parts = [
                sampled_loss(x[at * part:][:part], model.softmax.weight, model.softmax.bias, flat[at * part:][:part], *one)
                for at, one in enumerate(drawn)
            ]
            losses, of_targets, of_candidates, hit = zip(*parts)
            assert torch.cat(hit).any() and not torch.cat(hit).all(), name
            repeated += [tries > loss_spec["sampled"] for _, tries in drawn]
            loss = sum(losses)
            model.zero_grad()
            (loss / len(flat) * (STEPS if loss_spec["over"] == "sum-of-steps" else 1)).backward()
            at = f"{name}/{window}"
            tensors |= {
                f"{at}/inputs": inputs, f"{at}/targets": targets, f"{at}/logits": logits, f"{at}/nll": nll, f"{at}/loss": loss,
                f"{at}/candidates": torch.stack([ids for ids, _ in drawn]), f"{at}/tries": torch.tensor([tries for _, tries in drawn]),
                f"{at}/expected_targets": torch.cat(of_targets), f"{at}/expected_candidates": torch.cat(of_candidates),
            }  # fmt: skip
            tensors |= {f"{at}/gradients/{path}": value.grad.clone() for path, value in learned.items()}
            for group in GROUPS:
                values = [value for path, value in learned.items() if path.startswith(group["parameters"] + ".")]
                norm, limit = torch.stack([value.grad.norm() for value in values]).norm(), group.get("clip_norm")
                assert limit is None or norm > limit, (name, norm)
                for value in values:
                    value.grad *= group.get("factor", 1.0) * (1.0 if limit is None else limit / norm)
            optimizer.step()
            tensors |= {f"{at}/updated/{path}": value.detach().clone() for path, value in learned.items()}
        described[name] = {"model": spec, "loss": loss_spec}
    assert any(repeated) and not all(repeated)
    description = {"layout": 1, "computed_in": "float64", "units": UNITS, "rows": ROWS, "steps": STEPS, "learning_rate": RATE, "groups": GROUPS}
    optimizer = {"kind": "adagrad", "initial_accumulator": INITIAL}
    fixture.save("big_lstm", tensors, description | {"optimizer": optimizer, "cases": described})


if __name__ == "__main__":
    main()
