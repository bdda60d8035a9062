"""Five updates of one 7 x 5 tensor by each update rule -> tests/fixtures/optimizers.safetensors.

Tensors: `weight`, `gradients` [5, 7, 5], `sparse_gradients` [5, 7, 5] in which most rows are 0, `learning_rates` [5], and for each
rule `RULE/weights` [5, 7, 5], the weights after each update. The rules' settings stand in the metadata.
"""

import numpy as np
import torch

import fixture
import update_rules

ADAM = {"kind": "adam", "beta1": 0.9, "beta2": 0.98}
NOVOGRAD = {"kind": "novograd", "beta1": 0.95, "beta2": 0.99, "epsilon": 1e-8, "weight_decay": 1e-5, "grad_averaging": False}

# The published epsilons, and one so large that its place shows.
RULES = {
    "adam-corrected-root": {**ADAM, "epsilon": 1e-8, "epsilon_place": "corrected-root"},
    "adam-raw-root": {**ADAM, "beta2": 0.997, "epsilon": 1e-9, "epsilon_place": "raw-root"},
    "adam-corrected-root-large-epsilon": {**ADAM, "epsilon": 0.01, "epsilon_place": "corrected-root"},
    "adam-raw-root-large-epsilon": {**ADAM, "epsilon": 0.01, "epsilon_place": "raw-root"},
    "adam-decay": {**ADAM, "epsilon": 1e-3, "epsilon_place": "corrected-root", "weight_decay": 0.1},
    "sgd": {"kind": "sgd", "momentum": 0.0},
    "sgd-momentum": {"kind": "sgd", "momentum": 0.9},
    "sgd-decay": {"kind": "sgd", "momentum": 0.9, "weight_decay": 0.1},
    "sgd-nesterov": {"kind": "sgd", "momentum": 0.9, "nesterov": True},
    "sgd-nesterov-decay": {"kind": "sgd", "momentum": 0.9, "weight_decay": 0.1, "nesterov": True},
    # On rows without a gradient Adam still moves (by its old moments); LazyAdam does not, and keeps the moments.
    "adam-sparse": {**ADAM, "epsilon": 1e-3, "epsilon_place": "raw-root"},
    "lazy-adam-sparse": {**ADAM, "kind": "lazy-adam", "epsilon": 1e-3, "epsilon_place": "raw-root"},
    "lazy-adam-dense": {**ADAM, "kind": "lazy-adam", "epsilon": 1e-3, "epsilon_place": "raw-root"},
    # transformer-nvgrad's numbers, and some that show the places of beta2, epsilon, decay and averaging.
    "novograd-published": {**NOVOGRAD, "variant": "published"},
    "novograd-as-coded": {**NOVOGRAD, "variant": "as-coded"},
    "novograd-published-averaging": {
        **NOVOGRAD, "beta2": 0.5, "epsilon": 0.3, "weight_decay": 0.1, "grad_averaging": True, "variant": "published"},
    "novograd-as-coded-averaging": {
        **NOVOGRAD, "beta2": 0.5, "epsilon": 0.3, "weight_decay": 0.1, "grad_averaging": True, "variant": "as-coded"},
}  # fmt: skip

# Of momentum 0.9; the published one, and one that leaves some updates as they are.
LARC = {"larc": {"eta": 0.001}, "larc-rarely": {"eta": 0.03, "min_update": 1e-3, "epsilon": 0.1}}

# Rows that have a gradient in each update. Row 6 never has one, row 2 only at first.
ROWS = [[0, 2, 3], [0], [1, 3, 4], [5], [0, 1]]


def main():
    draw = np.random.default_rng(800)
    weight = torch.from_numpy(draw.standard_normal((7, 5))).float().double()
    # From 1e-4 to 1, so that epsilon matters for some elements and not for others.
    size = 10.0 ** draw.uniform(-4, 0, (5, 7, 5))
    gradients = torch.from_numpy(size * draw.choice([-1.0, 1.0], (5, 7, 5))).float().double()
    sparse = torch.zeros_like(gradients)
    for update, rows in enumerate(ROWS):
        sparse[update, rows] = gradients[update, rows]
    rates = torch.tensor([0.1, 0.02, 0.05, 0.2, 0.01]).double()
    tensors = {"weight": weight, "gradients": gradients, "sparse_gradients": sparse, "learning_rates": rates}
    for name, spec in RULES.items():
        state, current, after = {}, weight, []
        for update in range(5):
            is_sparse = name.endswith("sparse")
            arguments = (current, (sparse if is_sparse else gradients)[update], state, float(rates[update]), spec)
            if spec["kind"] == "lazy-adam":
                rows = ROWS[update] if is_sparse else list(range(7))
                current = update_rules.lazy_adam(*arguments, rows)
            else:
                current = getattr(update_rules, spec["kind"])(*arguments)
            after.append(current)
        tensors[f"{name}/weights"] = torch.stack(after)
    for name, spec in LARC.items():
        state, current, after = {}, weight, []
        for update in range(5):
            lr = float(rates[update])
            gradient = update_rules.larc(current, gradients[update], lr, spec)
            current = update_rules.sgd(current, gradient, state, lr, RULES["sgd-momentum"])
            after.append(current)
        tensors[f"{name}/weights"] = torch.stack(after)
    fixture.save("optimizers", tensors, {"layout": 1, "computed_in": "float64", "rules": RULES, "larc": LARC})


if __name__ == "__main__":
    main()
