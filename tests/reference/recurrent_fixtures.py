"""Recurrent layers of PyTorch over packed sequences -> tests/fixtures/recurrent.safetensors.

For each case CASE: `CASE/lengths`, `CASE/x` [rows, in] (the sequences behind each other, without
padding), `CASE/weights/NAME` under PyTorch's names, `CASE/initial/h` and `CASE/initial/c` [layers x
directions, sequences, hidden] where it has them, `CASE/out` [rows, directions x hidden],
`CASE/last/h` and `CASE/last/c`. The loss is the sum of these three times `CASE/upstream/out`,
`.../h` and `.../c`; `CASE/gradients/...` are those of x, the weights and the initial states.
"""

import numpy as np
import torch
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence

import fixture

LENGTHS = [3, 6, 1, 6, 4]
CASES = {
    "lstm-plain": {"kind": "LSTM", "hidden": 33, "layers": 1, "bidirectional": False, "bias": True, "initial": False},
    "lstm-stacked": {"kind": "LSTM", "hidden": 7, "layers": 2, "bidirectional": True, "bias": True, "initial": True},
    "lstm-unbiased": {"kind": "LSTM", "hidden": 4, "layers": 1, "bidirectional": False, "bias": False, "initial": True},
    "gru-plain": {"kind": "GRU", "hidden": 33, "layers": 1, "bidirectional": False, "bias": True, "initial": False},
    "gru-stacked": {"kind": "GRU", "hidden": 7, "layers": 2, "bidirectional": True, "bias": True, "initial": True},
    "gru-unbiased": {"kind": "GRU", "hidden": 4, "layers": 1, "bidirectional": False, "bias": False, "initial": True},
}
INPUT = 5


def rows_of(packed):
    """The sequences of a packed batch behind each other."""
    padded, lengths = pad_packed_sequence(packed, batch_first=True)
    return torch.cat([rows[:length] for rows, length in zip(padded, lengths)])


def main():
    draw = np.random.default_rng(900)

    def normal(*shape):
        return torch.from_numpy(draw.standard_normal(shape)).float().double()

    tensors = {}
    for name, case in CASES.items():
        layer = getattr(torch.nn, case["kind"])(
            INPUT, case["hidden"], case["layers"], bias=case["bias"], bidirectional=case["bidirectional"]
        ).double()
        with torch.no_grad():
            for weight in layer.parameters():
                scale = weight.shape[-1] ** -0.5 if weight.dim() > 1 else 0.3
                weight.copy_((scale * normal(*weight.shape)).float())
        x = normal(sum(LENGTHS), INPUT).requires_grad_()
        states = ["h", "c"] if case["kind"] == "LSTM" else ["h"]
        shape = (case["layers"] * (1 + case["bidirectional"]), len(LENGTHS), case["hidden"])
        initial = {state: normal(*shape).requires_grad_() for state in states} if case["initial"] else {}
        packed = pack_sequence(list(x.split(LENGTHS)), enforce_sorted=False)
        given = tuple(initial.values()) if len(initial) > 1 else initial.get("h")
        out, last = layer(packed, given)
        assert isinstance(out, PackedSequence)
        outputs = {"out": rows_of(out)}
        outputs |= dict(zip(states, last if len(states) > 1 else [last]))
        upstream = {key: normal(*value.shape) for key, value in outputs.items()}
        sum((outputs[key] * upstream[key]).sum() for key in outputs).backward()

        tensors[f"{name}/lengths"] = torch.tensor(LENGTHS)
        tensors[f"{name}/x"] = x
        tensors[f"{name}/gradients/x"] = x.grad
        tensors[f"{name}/out"] = outputs.pop("out")
        for state, value in outputs.items():
            tensors[f"{name}/last/{state}"] = value
        for key, value in upstream.items():
            tensors[f"{name}/upstream/{key}"] = value
        for key, value in layer.named_parameters():
            tensors[f"{name}/weights/{key}"] = value
            tensors[f"{name}/gradients/weights/{key}"] = value.grad
        for state, value in initial.items():
            tensors[f"{name}/initial/{state}"] = value
            tensors[f"{name}/gradients/initial/{state}"] = value.grad
    fixture.save("recurrent", tensors, {"layout": 1, "computed_in": "float64", "cases": CASES})


if __name__ == "__main__":
    main()
