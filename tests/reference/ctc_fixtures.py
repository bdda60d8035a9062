"""PyTorch's CTC loss of 200 random utterances -> tests/fixtures/ctc.safetensors.

Each of `frames`, `classes`, `blank`, `label_lengths`, `loss` has a number for each utterance;
`labels`, and `logits` and `gradient` [frames, classes] of one utterance after the other, are behind
each other. `loss` is infinite where no alignment exists; the gradients are those of
`zero_infinity`.
"""

import numpy as np
import torch

import fixture

CASES = 200


def main():
    draw = np.random.default_rng(1300)
    columns = {key: [] for key in ["frames", "classes", "blank", "label_lengths", "loss"]}
    labels, logits, gradients = [], [], []
    for case in range(CASES):
        frames, classes = int(draw.integers(1, 25)), int(draw.integers(2, 9))
        # Few classes make repeats, and more labels than frames have no alignment.
        count = int(draw.integers(0, frames + (2 if case % 5 == 0 else 1)))
        count = count if case % 5 == 0 else count // 2
        blank = int(draw.integers(0, classes))
        others = [c for c in range(classes) if c != blank]
        target = torch.tensor(draw.choice(others, size=count), dtype=torch.long)
        # Some are nearly certain, as a trained model is.
        x = draw.standard_normal((frames, classes)) * (8.0 if case % 3 == 0 else 1.5)
        x = torch.from_numpy(x).float().double().requires_grad_()

        def loss(zero_infinity):
            return torch.nn.functional.ctc_loss(
                x.log_softmax(1).unsqueeze(1), target.unsqueeze(0), [frames], [count],
                blank=blank, reduction="sum", zero_infinity=zero_infinity,
            )

        loss(True).backward()
        for key, value in zip(columns, [frames, classes, blank, count, loss(False).item()]):
            columns[key].append(value)
        labels.append(target)
        logits.append(x.detach().flatten())
        gradients.append(x.grad.flatten())
    tensors = {key: torch.tensor(values) for key, values in columns.items()}
    tensors |= {"labels": torch.cat(labels), "logits": torch.cat(logits), "gradient": torch.cat(gradients)}
    impossible = int(torch.isinf(tensors["loss"]).sum())
    assert 5 <= impossible <= 60, impossible
    fixture.save("ctc", tensors, {"layout": 1, "computed_in": "float64", "impossible": impossible})


if __name__ == "__main__":
    main()
