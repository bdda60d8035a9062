"""LSTM language models as plain PyTorch trains them: its own LSTM, loss and clipping, with the
state carried from window to window.

The model is that of a recipe's resolved `[model]`, as pytorch/examples word_language_model writes
it.
"""

import torch
from torch import nn
from torch.nn import functional

from products import autocast, scaler


class LanguageModel(nn.Module):
    def __init__(self, spec, units):
        super().__init__()
        self.dropout = nn.Dropout(spec["dropout"])
        self.embedding = nn.Embedding(units, spec["width"])
        self.lstm = nn.LSTM(spec["width"], spec["units"], spec["layers"], dropout=spec["dropout"], bias=spec["biases"] != "none")
        self.softmax = nn.Linear(spec["units"], units)
        nn.init.uniform_(self.embedding.weight, -spec["embedding_bound"], spec["embedding_bound"])
        if spec["tied"]:
            self.softmax.weight = self.embedding.weight

    def forward(self, ids, state):
        found, state = self.lstm(self.dropout(self.embedding(ids)), state)
        return self.softmax(self.dropout(found)), state


class Training:
    """Updates of a model on random windows, `[steps, rows]`; `mode` is the type of its products."""

    def __init__(self, resolved, units, rows, steps, mode):
        torch.manual_seed(1)
        self.model = LanguageModel(resolved["model"], units).train()
        self.clip = resolved["train"]["clip_norm"]
        # A rate at which random words are not a problem; it costs as much as any other.
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1, foreach=True)
        self.scaler = scaler(mode)
        self.windows = [torch.randint(units, (steps + 1, rows)) for _ in range(4)]
        # The sum over the steps instead of the mean.
        self.weight = steps if resolved["loss"]["over"] == "sum-of-steps" else 1
        self.state, self.mode, self.made = None, mode, 0

    def parameters(self):
        return sum(parameter.numel() for parameter in self.model.parameters())

    def update(self):
        window = self.windows[self.made % len(self.windows)]
        self.made += 1
        self.optimizer.zero_grad(set_to_none=True)
        with autocast(self.mode):
            logits, state = self.model(window[:-1], self.state)
        self.state = tuple(part.detach() for part in state)
        loss = functional.cross_entropy(logits.float().flatten(0, 1), window[1:].flatten())
        self.scaler.scale(loss * self.weight).backward()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip, foreach=True)
        self.scaler.step(self.optimizer)
        self.scaler.update()
