"""Update rules written from their formulas, in FP64, for one tensor at a time.

A rule is described by the same JSON as a recipe's `[train.optimizer]`. `state` starts as an empty
dict.
"""

import torch


def adam(weight, gradient, state, lr, spec):
    """One step of Adam. The two places of epsilon differ by the factor sqrt(1 - beta2^t) on it:

    corrected-root: lr m' / (sqrt(v') + eps), with m' and v' bias-corrected (Kingma and Ba 2015,
    algorithm 1; PyTorch); raw-root: lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + eps) (the
    same paper, end of section 2; TensorFlow, fairseq).
    """
    beta1, beta2, epsilon = spec["beta1"], spec["beta2"], spec["epsilon"]
    step = state["step"] = state.get("step", 0) + 1
    first = state.get("first", torch.zeros_like(weight))
    second = state.get("second", torch.zeros_like(weight))
    gradient = gradient + spec.get("weight_decay", 0.0) * weight
    state["first"] = first = beta1 * first + (1 - beta1) * gradient
    state["second"] = second = beta2 * second + (1 - beta2) * gradient**2
    one, two = 1 - beta1**step, 1 - beta2**step
    if spec.get("epsilon_place", "corrected-root") == "raw-root":
        return weight - lr * two**0.5 / one * first / (second.sqrt() + epsilon)
    return weight - lr * (first / one) / ((second / two).sqrt() + epsilon)


def adamw(weight, gradient, state, lr, spec):
    """Decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2) with PyTorch's scale: w - lr
    d w before Adam's step.
    """
    decays = spec.get("decayed", "all") == "all" or weight.dim() >= 2
    weight_decay = spec["weight_decay"] if decays else 0.0
    return adam(weight, gradient, state, lr, {**spec, "weight_decay": 0.0}) - lr * weight_decay * weight


def lazy_adam(weight, gradient, state, lr, spec, rows):
    """Adam on the given rows alone: the others keep their weights and moments. The step count is
    one for the whole tensor.
    """
    moved_state = dict(state)
    moved = adam(weight, gradient, moved_state, lr, spec)
    touched = torch.zeros(weight.shape[0], dtype=torch.bool)
    touched[rows] = True
    touched = touched[:, None]
    for name in ("first", "second"):
        before = state.get(name, torch.zeros_like(weight))
        state[name] = torch.where(touched, moved_state[name], before)
    state["step"] = moved_state["step"]
    return torch.where(touched, moved, weight)


def novograd(weight, gradient, state, lr, spec):
    """One step of NovoGrad (Ginsburg et al. 2019, algorithm 1); the tensor has one norm.

    published: v = |g|^2 at first, then beta2 v + (1 - beta2) |g|^2; divide by sqrt(v) + eps.
    as-coded (OpenSeq2Seq): v is never stored, so that every update is a first one; divide by sqrt(v
    + eps).
    """
    square = (gradient**2).sum()
    if spec["variant"] == "as-coded":
        direction = gradient / (square + spec["epsilon"]).sqrt()
    else:
        if "second" in state:
            square = spec["beta2"] * state["second"] + (1 - spec["beta2"]) * square
        state["second"] = square
        direction = gradient / (square.sqrt() + spec["epsilon"])
    direction = direction + spec["weight_decay"] * weight
    if spec["grad_averaging"]:
        direction = (1 - spec["beta1"]) * direction
    state["first"] = spec["beta1"] * state.get("first", torch.zeros_like(weight)) + direction
    return weight - lr * state["first"]


def rmsprop(weight, gradient, state, lr, spec):
    """Keras 2 (keras/optimizers.py, `RMSprop`), neither centred nor with momentum; epsilon stands
    outside the root.
    """
    rho = spec["rho"]
    state["second"] = rho * state.get("second", torch.zeros_like(weight)) + (1 - rho) * gradient**2
    return weight - lr * gradient / (state["second"].sqrt() + spec["epsilon"])


def adadelta(weight, gradient, state, lr, spec):
    """Zeiler 2012, algorithm 1, with a rate (Keras 2, `Adadelta`): the old mean of squared updates,
    the new one of squared gradients.
    """
    rho, epsilon = spec["rho"], spec["epsilon"]
    state["second"] = rho * state.get("second", torch.zeros_like(weight)) + (1 - rho) * gradient**2
    delta = state.get("delta", torch.zeros_like(weight))
    update = gradient * (delta + epsilon).sqrt() / (state["second"] + epsilon).sqrt()
    state["delta"] = rho * delta + (1 - rho) * update**2
    return weight - lr * update


def adagrad(weight, gradient, state, lr, spec):
    """Duchi et al. 2011 (TensorFlow, `AdagradOptimizer`): no epsilon; the sum of squares begins
    above 0.
    """
    first = torch.full_like(weight, spec["initial_accumulator"])
    state["second"] = state.get("second", first) + gradient**2
    return weight - lr * gradient / state["second"].sqrt()


def sgd(weight, gradient, state, lr, spec):
    """Heavy ball: v = momentum v + (g + decay w), no dampening, then w - lr v; Nesterov's (PyTorch)
    takes g + decay w + momentum v.
    """
    gradient = gradient + spec.get("weight_decay", 0.0) * weight
    if spec.get("velocity", "gradients") == "steps":
        # Caffe, src/caffe/solvers/sgd_solver.cpp: `Regularize`, then `ComputeUpdateValue` (history
        # = momentum history + rate diff); nesterov_solver.cpp: (1 + momentum) of the new history
        # less momentum of the old one.
        old = state.get("velocity", torch.zeros_like(weight))
        state["velocity"] = new = spec["momentum"] * old + lr * gradient
        if spec.get("nesterov", False):
            return weight - ((1 + spec["momentum"]) * new - spec["momentum"] * old)
        return weight - new
    state["velocity"] = spec["momentum"] * state.get("velocity", torch.zeros_like(weight)) + gradient
    if spec.get("nesterov", False):
        return weight - lr * (gradient + spec["momentum"] * state["velocity"])
    return weight - lr * state["velocity"]


def larc(weight, gradient, lr, spec):
    """The gradient that the rule sees: layer-wise adaptive rate control as OpenSeq2Seq has it in
    its mode `clip`.
    """
    least, epsilon = spec.get("min_update", 1e-7), spec.get("epsilon", 1e-7)
    factor = max(spec["eta"] * float(weight.norm()) / (lr * (float(gradient.norm()) + epsilon)), least)
    return min(factor, 1.0) * gradient


def clip(gradients, limit):
    """Gradients scaled down to a global norm, and the norm before. The 1e-6 is PyTorch's and
    fairseq's; it is below rounding.
    """
    norm = torch.sqrt(sum((g**2).sum() for g in gradients.values()))
    factor = 1.0 if limit is None else min(1.0, limit / (float(norm) + 1e-6))
    return {name: g * factor for name, g in gradients.items()}, norm
