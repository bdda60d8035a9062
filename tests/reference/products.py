"""Types of PyTorch's matrix products, by the names of zoo: fp32, tf32, fp16, bf16. All tensors are on
the default device (`torch.set_default_device`).
"""

import torch

HALVES = {"fp16": torch.float16, "bf16": torch.bfloat16}


def kind():
    return torch.get_default_device().type


def autocast(mode):
    """Half precision where a mode has it; on a GPU, products of FP32 are TF32 in `tf32` only."""
    if kind() == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = mode == "tf32"
    return torch.autocast(kind(), HALVES.get(mode, torch.bfloat16), enabled=mode in HALVES)


def scaler(mode):
    """The loss scale of PyTorch's AMP in FP16. In other modes it does nothing."""
    return torch.amp.GradScaler(kind(), enabled=mode == "fp16")


def wait():
    """Until the device has done what was queued."""
    if kind() == "cuda":
        torch.cuda.synchronize()
