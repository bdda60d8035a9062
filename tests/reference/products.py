"""Types of PyTorch's matrix products, by the names of zoo: fp32, tf32, fp16, bf16, and the device that
models and batches are built on.
"""

import contextlib

import torch

HALVES = {"fp16": torch.float16, "bf16": torch.bfloat16}
# A scale at which random batches do not overflow: no update is left out.
SCALE = 1024.0
device = torch.device("cpu")


def use(name):
    """Sets the device of what is built later."""
    global device
    device = torch.device(name)


def built():
    """Context in which models and batches are built. Not for updates: it makes every call slower."""
    return contextlib.nullcontext() if device.type == "cpu" else device


def autocast(mode):
    """Half precision where a mode has it; on a GPU, products of FP32 are TF32 in `tf32` only."""
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = mode == "tf32"
    return torch.autocast(device.type, HALVES.get(mode, torch.bfloat16), enabled=mode in HALVES)


def scaler(mode):
    """The loss scale of PyTorch's AMP in FP16. In other modes it does nothing."""
    return torch.amp.GradScaler(device.type, init_scale=SCALE, enabled=mode == "fp16")


def wait():
    """Until the device has done what was queued."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
