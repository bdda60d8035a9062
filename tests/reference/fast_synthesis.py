"""Tacotron 2 as plain PyTorch trains it and lets it speak, on full batches: its own convolutions,
LSTM, LSTM cells, batch norm and Adam.

The sizes are those of a recipe's resolved `[model]`. All utterances have the same length, and all
texts, so that nothing is masked. What the decoder's loop does not need is outside of it: the
pre-net, the projections of frames and stops, the post-net.
"""

import torch
from torch import nn
from torch.nn import functional as F

from products import autocast, scaler

# Of text in a second of speech; as zoo makes texts up.
SYMBOLS_PER_SECOND = 15.2


class Convolution(nn.Module):
    """[utterances, channels, steps], with a norm and an activation."""

    def __init__(self, source, out, spec, kernel, activation, dropout):
        super().__init__()
        self.pad = (kernel - 1) // 2, kernel // 2
        norm = spec["norm"]
        self.convolution = nn.Conv1d(source, out, kernel, bias=spec.get("bias", False))
        self.norm = nn.BatchNorm1d(out, norm["epsilon"], norm["momentum"])
        self.end = nn.Sequential(*[part for part in (activation, nn.Dropout(dropout) if dropout else None) if part])

    def forward(self, x):
        return self.end(self.norm(self.convolution(F.pad(x, self.pad))))


class Model(nn.Module):
    def __init__(self, model, symbols, mels, bins):
        super().__init__()
        encoder, spec = model["encoder"], model["decoder"]
        self.spec, self.mels = spec, mels
        self.embedding = nn.Embedding(symbols, encoder["width"])
        conv, source, layers = encoder["convolutions"], encoder["width"], []
        for _ in range(conv["layers"]):
            layers.append(Convolution(source, conv["channels"], conv, conv["kernel"], nn.ReLU(), conv["dropout"]))
            source = conv["channels"]
        self.convolutions = nn.Sequential(*layers)
        # A second bias that is always zeros is no parameter of the published system, but PyTorch's
        # layer has it.
        self.lstm = nn.LSTM(source, encoder["units"], bidirectional=True, batch_first=True)
        memory, prenet, units, layers = 2 * encoder["units"], spec["prenet"], spec["units"], []
        source = mels
        for out in prenet["units"]:
            layers.append(nn.Linear(source, out, bias=prenet["bias"]))
            source = out
        self.prenet = nn.ModuleList(layers)
        self.asking, cells = spec["asking_layer"], []
        for i in range(spec["layers"]):
            reads = source + memory if i == 0 else units + (memory if i == self.asking else 0)
            cells.append(nn.LSTMCell(reads, units))
        self.cells = nn.ModuleList(cells)
        look = spec["attention"]
        self.last_weights, kernel = look["last_weights"], look["kernel"]
        self.pad = (kernel - 1) // 2, kernel // 2
        self.query = nn.Linear(units, look["units"], bias=False)
        self.keys = nn.Linear(memory, look["units"], bias=False)
        self.location = nn.Conv1d(2 if self.last_weights else 1, look["filters"], kernel, bias=look["bias"])
        self.of_location = nn.Linear(look["filters"], look["units"], bias=False)
        self.energy_bias = nn.Parameter(torch.zeros(look["units"])) if look["bias"] else None
        self.vector = nn.Linear(look["units"], 1, bias=False)
        self.frame = nn.Linear(units + memory, mels)
        self.stop = nn.Linear(units + memory if spec["stop_reads"] == "output" else mels, 1)
        post, source, layers = spec["postnet"], mels, []
        for i in range(post["layers"]):
            last = i + 1 == post["layers"]
            out = mels if last else post["channels"]
            layers.append(Convolution(source, out, post, post["kernel"], None if last else nn.Tanh(), post["dropout"]))
            source = out
        self.postnet = nn.Sequential(*layers)
        self.magnitudes, self.projection = None, None
        if spec.get("magnitudes"):
            high, source, layers = spec["magnitudes"], mels, []
            for out in high["channels"]:
                layers.append(Convolution(source, out, high, high["kernel"], nn.ReLU(), 0))
                source = out
            self.magnitudes, self.projection = nn.Sequential(*layers), nn.Linear(source, bins, bias=False)

    def encode(self, texts):
        return self.lstm(self.convolutions(self.embedding(texts).transpose(1, 2)).transpose(1, 2))[0]

    def read(self, frames):
        for layer in self.prenet:
            frames = F.dropout(F.relu(layer(frames)), self.spec["prenet"]["dropout"])
        return frames

    def begin(self, memory):
        utterances, symbols, _ = memory.shape
        zeros = lambda *shape: memory.new_zeros(utterances, *shape)  # noqa: E731
        states = [(zeros(self.spec["units"]), zeros(self.spec["units"])) for _ in self.cells]
        return memory, self.keys(memory), states, zeros(memory.shape[2]), zeros(symbols), zeros(symbols)

    def step(self, x, at):
        """One step of the loop: what the last layer and the attention say."""
        memory, keys, states, found, last, total = at
        x, states = torch.cat([x, found], 1), list(states)
        for i, cell in enumerate(self.cells):
            if i == self.asking:
                x = torch.cat([x, found], 1)
            h, c = cell(x, states[i])
            dropped = F.dropout(h, self.spec["dropout"], self.training)
            states[i] = (dropped if self.spec["state_dropout"] else h, c)
            x = dropped
            if i + 1 == self.asking:
                past = torch.stack([last, total], 1) if self.last_weights else total.unsqueeze(1)
                location = self.of_location(self.location(F.pad(past, self.pad)).transpose(1, 2))
                energy = keys + self.query(x).unsqueeze(1) + location
                energy = energy if self.energy_bias is None else energy + self.energy_bias
                last = self.vector(torch.tanh(energy)).squeeze(2).float().softmax(1)
                total = total + last
                found = torch.bmm(last.to(memory.dtype).unsqueeze(1), memory).squeeze(1)
        return torch.cat([x, found], 1), (memory, keys, states, found, last, total)

    def ends(self, out):
        frames = self.frame(out)
        return frames, self.stop(out if self.spec["stop_reads"] == "output" else frames).squeeze(-1)

    def correct(self, frames):
        corrected = frames + self.postnet(frames.transpose(1, 2)).transpose(1, 2)
        if self.magnitudes is None:
            return corrected, None
        return corrected, self.projection(torch.exp(self.magnitudes(corrected.transpose(1, 2)).transpose(1, 2)))

    def forward(self, texts, mels):
        before = self.read(F.pad(mels[:, :-1], (0, 0, 1, 0)))
        at, outs = self.begin(self.encode(texts)), []
        for step in range(mels.shape[1]):
            out, at = self.step(before[:, step], at)
            outs.append(out)
        frames, stops = self.ends(torch.stack(outs, 1))
        return frames, stops, *self.correct(frames)

    @torch.no_grad()
    def speak(self, texts, count):
        at = self.begin(self.encode(texts))
        frame, frames = at[0].new_zeros(len(texts), self.mels), []
        for _ in range(count):
            out, at = self.step(self.read(frame), at)
            frame, _ = self.ends(out)
            frames.append(frame)
        return self.correct(torch.stack(frames, 1))


def parts(recipe, symbols, utterances, frames):
    """The model, and texts of the length that is read in so many frames."""
    torch.manual_seed(1)
    features = recipe["data"]["features"]
    mels, bins = features["filters"], (features.get("magnitude") or {}).get("bins", 0)
    model = Model(recipe["model"], symbols, mels, bins)
    seconds = frames * features["hop_samples"] / recipe["data"]["reader"]["sample_rate_hz"]
    texts = torch.randint(1, symbols, (utterances, max(int(SYMBOLS_PER_SECOND * seconds), 1)))
    return model, texts, torch.randn(utterances, frames, mels + bins) - 5.0


class Training:
    """Updates of a resolved recipe on one batch of full utterances."""

    def __init__(self, recipe, symbols, utterances, frames, mode):
        self.model, self.texts, self.frames = parts(recipe, symbols, utterances, frames)
        self.mode, train = mode, recipe["train"]
        rule = train["optimizer"]
        self.scaler = scaler(mode)
        l2 = (train.get("regularizer") or {}).get("scale", 0.0) + rule.get("weight_decay", 0.0)
        self.clip = train["clip_norm"]
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), train["schedule"]["lr"], (rule["beta1"], rule["beta2"]), rule["epsilon"], l2, fused=True
        )

    def update(self):
        mels = self.frames[:, :, : self.model.mels]
        with autocast(self.mode):
            frames, stops, corrected, magnitudes = self.model(self.texts, mels)
        due = torch.zeros_like(stops, dtype=torch.float32)
        due[:, -1] = 1
        loss = F.mse_loss(frames.float(), mels) + F.mse_loss(corrected.float(), mels)
        loss = loss + F.binary_cross_entropy_with_logits(stops.float(), due)
        if magnitudes is not None:
            loss = loss + F.mse_loss(magnitudes.float(), self.frames[:, :, self.model.mels :])
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return loss.item()

    def parameters(self):
        return sum(p.numel() for p in self.model.parameters())


class Speaking:
    """Texts of a recipe, spoken freely, so many frames of each."""

    def __init__(self, recipe, symbols, utterances, frames, mode):
        self.model, self.texts, _ = parts(recipe, symbols, utterances, frames)
        self.model.eval()
        self.count, self.mode = frames, mode

    def batch(self):
        with autocast(self.mode):
            return self.model.speak(self.texts, self.count)

    def parameters(self):
        return sum(p.numel() for p in self.model.parameters())
