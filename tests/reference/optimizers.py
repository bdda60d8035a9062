"""Five updates of one 7 x 5 tensor by each update rule -> tests/fixtures/optimizers.safetensors.

Tensors: `weight`, `gradients` [5, 7, 5], `sparse_gradients` [5, 7, 5] in which most rows are 0,
`learning_rates` [5], and for each rule `RULE/weights` [5, 7, 5], the weights after each update. The
rules' settings stand in the metadata. A rule whose name ends with "-vector" moves the same numbers
as a vector of 35.
"""

import numpy as np
import torch

import fixture
import update_rules

ADAM = {"kind": "adam", "beta1": 0.9, "beta2": 0.98}
NOVOGRAD = {"kind": "novograd", "beta1": 0.95, "beta2": 0.99, "epsilon": 1e-8, "weight_decay": 1e-5, "grad_averaging": False}

NANOGPT = {"kind": "adamw", "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "weight_decay": 0.1}

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
    # Caffe's, and those of its LeNet.
    "sgd-steps": {"kind": "sgd", "momentum": 0.9, "velocity": "steps"},
    "sgd-steps-decay": {"kind": "sgd", "momentum": 0.9, "weight_decay": 5e-4, "velocity": "steps"},
    "sgd-steps-large-decay": {"kind": "sgd", "momentum": 0.5, "weight_decay": 0.1, "velocity": "steps"},
    "sgd-steps-nesterov": {"kind": "sgd", "momentum": 0.9, "weight_decay": 0.1, "nesterov": True, "velocity": "steps"},
    # On rows without a gradient Adam still moves (by its old moments); LazyAdam does not, and keeps
    # the moments.
    "adam-sparse": {**ADAM, "epsilon": 1e-3, "epsilon_place": "raw-root"},
    "lazy-adam-sparse": {**ADAM, "kind": "lazy-adam", "epsilon": 1e-3, "epsilon_place": "raw-root"},
    "lazy-adam-dense": {**ADAM, "kind": "lazy-adam", "epsilon": 1e-3, "epsilon_place": "raw-root"},
    # transformer-nvgrad's numbers, and some that show the places of beta2, epsilon, decay and
    # averaging.
    "novograd-published": {**NOVOGRAD, "variant": "published"},
    "novograd-as-coded": {**NOVOGRAD, "variant": "as-coded"},
    "novograd-published-averaging": {
        **NOVOGRAD, "beta2": 0.5, "epsilon": 0.3, "weight_decay": 0.1, "grad_averaging": True, "variant": "published"},
    "novograd-as-coded-averaging": {
        **NOVOGRAD, "beta2": 0.5, "epsilon": 0.3, "weight_decay": 0.1, "grad_averaging": True, "variant": "as-coded"},
    # PyTorch's AdamW: its default numbers, and nanoGPT's groups of parameters, in which a vector
    # does not decay.
    "adamw": {"kind": "adamw", "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01},
    "adamw-large-decay": {"kind": "adamw", "beta1": 0.9, "beta2": 0.99, "epsilon": 0.05, "weight_decay": 0.5},
    "adamw-vector": {"kind": "adamw", "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "weight_decay": 0.1},
    "adamw-matrices": {**NANOGPT, "decayed": "matrices"},
    "adamw-matrices-vector": {**NANOGPT, "decayed": "matrices"},
    # Keras's numbers, and some whose epsilon shows its place. What these tensors are, PyTorch's
    # optimizers computed.
    "rmsprop": {"kind": "rmsprop", "rho": 0.9, "epsilon": 1e-7},
    "rmsprop-large-epsilon": {"kind": "rmsprop", "rho": 0.5, "epsilon": 0.05},
    "adadelta": {"kind": "adadelta", "rho": 0.95, "epsilon": 1e-7},
    "adadelta-large-epsilon": {"kind": "adadelta", "rho": 0.5, "epsilon": 0.05},
    # Jozefowicz's numbers, and a first value that is small beside the squares.
    "adagrad": {"kind": "adagrad", "initial_accumulator": 1.0},
    "adagrad-small": {"kind": "adagrad", "initial_accumulator": 1e-3},
}  # fmt: skip

# Rules that PyTorch's own optimizers compute here: the formulas in update_rules.py must give the
# same to 1e-12.
PYTORCH = {
    "rmsprop": lambda moved, spec: torch.optim.RMSprop([moved], lr=1.0, eps=spec["epsilon"], alpha=spec["rho"]),
    "adadelta": lambda moved, spec: torch.optim.Adadelta([moved], lr=1.0, eps=spec["epsilon"], rho=spec["rho"]),
    "adagrad": lambda moved, spec: torch.optim.Adagrad([moved], lr=1.0, initial_accumulator_value=spec["initial_accumulator"], eps=0.0),
    "adamw": lambda moved, spec: torch.optim.AdamW(
        groups(moved, spec), lr=1.0, betas=(spec["beta1"], spec["beta2"]), eps=spec["epsilon"]),
}  # fmt: skip

# Of momentum 0.9; the published one, and one that leaves some updates as they are.
LARC = {"larc": {"eta": 0.001}, "larc-rarely": {"eta": 0.03, "min_update": 1e-3, "epsilon": 0.1}}

# Rows that have a gradient in each update. Row 6 never has one, row 2 only at first.
ROWS = [[0, 2, 3], [0], [1, 3, 4], [5], [0, 1]]


def groups(moved, spec):
    """Parameters of two or more dimensions decay, others only where all do: the two groups of
    nanoGPT's `configure_optimizers`.
    """
    decayed = [p for p in [moved] if p.dim() >= 2 or spec.get("decayed", "all") == "all"]
    others = [p for p in [moved] if not any(p is one for one in decayed)]
    return [{"params": decayed, "weight_decay": spec["weight_decay"]}, {"params": others, "weight_decay": 0.0}]


def by_pytorch(weight, gradients, rates, spec):
    """The weights after each update by PyTorch's optimizer, in FP64. RMSprop is not centred there
    by default.
    """
    moved, after = torch.nn.Parameter(weight.clone()), []
    rule = PYTORCH[spec["kind"]](moved, spec)
    for gradient, rate in zip(gradients, rates):
        moved.grad = gradient.clone()
        for group in rule.param_groups:
            group["lr"] = float(rate)
        rule.step()
        after.append(moved.detach().clone())
    return torch.stack(after)


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
        shape = (35,) if name.endswith("-vector") else (7, 5)
        state, current, after = {}, weight.reshape(shape), []
        for update in range(5):
            is_sparse = name.endswith("sparse")
            gradient = (sparse if is_sparse else gradients)[update].reshape(shape)
            arguments = (current, gradient, state, float(rates[update]), spec)
            if spec["kind"] == "lazy-adam":
                rows = ROWS[update] if is_sparse else list(range(7))
                current = update_rules.lazy_adam(*arguments, rows)
            else:
                current = getattr(update_rules, spec["kind"])(*arguments)
            after.append(current)
        tensors[f"{name}/weights"] = torch.stack(after)
        if spec["kind"] in PYTORCH:
            of_formula = tensors[f"{name}/weights"]
            of_pytorch = by_pytorch(weight.reshape(shape), gradients.reshape(5, *shape), rates, spec)
            torch.testing.assert_close(of_pytorch, of_formula, rtol=1e-12, atol=1e-12)
            tensors[f"{name}/weights"] = of_pytorch
        tensors[f"{name}/weights"] = tensors[f"{name}/weights"].reshape(5, 7, 5)
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
