"""Tacotron 2 of NVIDIA's examples and of OpenSeq2Seq, small -> tests/fixtures/tacotron.safetensors.

Written from the descriptions of both systems, with PyTorch's own layers where it has them, in FP64.
For each case CASE of the description: `CASE/weights/PATH` under our paths, running statistics among
them; a batch (`symbols`, `symbol_lengths`, `frames`, `lengths`, `stops`); `out/...` and
`losses/...` (sums) of a training pass, whose only dropout is the pre-net's; `gradients/PATH` of the
sum of the losses' means, `updated/PATH` after one update of Adam, `folded/PATH` of the running
statistics; and `spoken/I/...`, what each text becomes where the decoder hears itself, at
evaluation.
"""

import math

import numpy as np
import torch
from torch.nn import functional as F

import fixture

SYMBOLS, MELS, BINS = 11, 6, 9
TEXTS = [[3, 7, 2, 9, 1], [5, 5, 4], [1, 10, 8, 2, 6, 6, 3]]
LENGTHS = [9, 4, 12]
SEED, STEP, PRENET_SEED = 1, 1, 0x7AC07202
NORM = {"epsilon": 1e-5, "momentum": 0.1}
# An epsilon so large that an update does not hang on the sign of a rounding.
OPTIMIZER = {"kind": "adam", "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-3, "epsilon_place": "corrected-root"}
RATE = 1e-3
CASES = {
    "nvidia": {
        "encoder": {
            "kind": "tacotron", "width": 7, "units": 5, "biases": "two", "init": "nvidia",
            "convolutions": {"layers": 2, "channels": 8, "kernel": 5, "bias": True, "dropout": 0.0, "norm": NORM},
        },
        "decoder": {
            "kind": "tacotron", "layers": 2, "asking_layer": 1, "units": 10, "biases": "two", "dropout": 0.0,
            "state_dropout": True, "init": "nvidia",
            "prenet": {"units": [6, 4], "bias": False, "dropout": 0.5},
            "attention": {"units": 6, "filters": 3, "kernel": 5, "last_weights": True, "bias": False},
            "stop_reads": "output",
            "postnet": {"layers": 3, "channels": 7, "kernel": 5, "bias": True, "dropout": 0.0, "norm": NORM},
        },
        "loss": {"kind": "spectrogram", "padding": True},
    },
    "openseq2seq": {
        "encoder": {
            "kind": "tacotron", "width": 7, "units": 5, "biases": "two-of-zeros", "init": "openseq2seq", "reads_padding": True,
            "convolutions": {"layers": 2, "channels": 8, "kernel": 5, "bias": False, "dropout": 0.0, "norm": {"epsilon": 1e-5, "momentum": 0.9}},
        },
        "decoder": {
            "kind": "tacotron", "layers": 2, "asking_layer": 2, "units": 10, "biases": "one-of-zeros", "forget_bias": 1.0,
            "dropout": 0.0, "init": "openseq2seq",
            "prenet": {"units": [6, 4], "bias": True, "dropout": 0.5},
            "attention": {"units": 6, "filters": 3, "kernel": 4, "last_weights": False, "bias": True},
            "stop_reads": "frame",
            "postnet": {"layers": 3, "channels": 7, "kernel": 5, "bias": False, "dropout": 0.0, "norm": {"epsilon": 1e-5, "momentum": 0.9}},
            "magnitudes": {"channels": [5, 7], "kernel": 4, "norm": {"epsilon": 1e-5, "momentum": 0.9}, "exponential": True},
        },
        "loss": {"kind": "spectrogram", "padding": False},
    },
}
# NVIDIA's, with attention guided to the diagonal (Tachibana et al. 2018); our mean is over frames.
CASES["guided"] = {**CASES["nvidia"], "loss": {"kind": "spectrogram", "padding": True, "guide": {"width": 0.2, "weight": 3.0}}}
# Frames at most, where the decoder hears itself.
MOST, THRESHOLDS = 14, {"nvidia": 0.555, "openseq2seq": 0.711, "guided": 0.555}


class Key:
    """zoo's counter-based random bits."""

    WORD = (1 << 64) - 1

    def __init__(self, seed, stream, step):
        mix = self.mix64
        mixed = mix(mix(mix(seed ^ 0x9E3779B97F4A7C15) ^ stream) ^ step)
        self.low, self.high = mixed & 0xFFFFFFFF, mixed >> 32

    @classmethod
    def mix64(cls, x):
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & cls.WORD
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & cls.WORD
        return x ^ (x >> 31)

    @staticmethod
    def mix32(x):
        x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
        x = ((x ^ (x >> 15)) * 0x846CA68B) & 0xFFFFFFFF
        return x ^ (x >> 16)

    def factors(self, count, rate):
        threshold = int(rate * 4294967296.0)
        bits = [self.mix32((self.mix32(i ^ self.low) + self.high) & 0xFFFFFFFF) for i in range(count)]
        return torch.tensor([1 / (1 - rate) if b >= threshold else 0.0 for b in bits], dtype=torch.float64)


class Model:
    def __init__(self, name, spec, seed):
        self.threshold = math.log(THRESHOLDS[name] / (1 - THRESHOLDS[name]))
        self.draw = np.random.default_rng(seed)
        self.encoder, self.decoder = spec["encoder"], spec["decoder"]
        self.weights, self.running, self.folded = {}, {}, {}
        self.training = True

    def normal(self, *shape):
        return torch.from_numpy(self.draw.standard_normal(shape)).float().double()

    def weight(self, path, *shape):
        if path not in self.weights:
            value = self.normal(*shape)
            value = value * (2.2 * math.prod(shape[1:]) ** -0.5 if len(shape) > 1 else 0.3)
            value = value + (1.0 if path.endswith("norm.weight") else 0.0)
            self.weights[path] = value.float().double().requires_grad_()
        return self.weights[path]

    def linear(self, path, x, out, bias):
        y = x @ self.weight(f"{path}.weight", out, x.shape[-1]).t()
        return y + self.weight(f"{path}.bias", out) if bias else y

    def convolution(self, path, x, out, spec, behind, lengths):
        """x [sequences, steps, channels] -> the same with a norm and an activation; behind
        `lengths`, if given, zeros.
        """
        kernel, norm = spec["kernel"], spec["norm"]
        w = self.weight(f"{path}.convolution.weight", out, x.shape[2], kernel)
        b = self.weight(f"{path}.convolution.bias", out) if spec.get("bias") else None
        y = F.conv1d(F.pad(x.transpose(1, 2), [(kernel - 1) // 2, kernel // 2]), w, b).transpose(1, 2)
        gamma, beta = self.weight(f"{path}.norm.weight", out), self.weight(f"{path}.norm.bias", out)
        mean_of, variance_of = f"{path}.norm.running_mean", f"{path}.norm.running_variance"
        if mean_of not in self.running:
            self.running[mean_of] = (0.2 * self.normal(out)).float().double()
            self.running[variance_of] = (1 + 0.2 * self.normal(out).abs()).float().double()
        if self.training:
            rows = y.reshape(-1, out)
            mean, variance = rows.mean(0), rows.var(0, unbiased=False)
            m, n = norm["momentum"], len(rows)
            self.folded[mean_of] = (1 - m) * self.running[mean_of] + m * mean
            self.folded[variance_of] = (1 - m) * self.running[variance_of] + m * variance * n / (n - 1)
        else:
            mean, variance = self.running[mean_of], self.running[variance_of]
        y = (y - mean) / torch.sqrt(variance + norm["epsilon"]) * gamma + beta
        y = {"relu": torch.relu, "tanh": torch.tanh, "nothing": lambda y: y}[behind](y)
        if lengths is not None:
            y = y * (torch.arange(y.shape[1]) < torch.tensor(lengths).unsqueeze(1)).unsqueeze(2)
        return y

    def lstm_weights(self, path, inputs, units, biases):
        names = ["bias_ih"] if biases == "one-of-zeros" else ["bias_ih", "bias_hh"]
        w_ih = self.weight(f"{path}.weight_ih", 4 * units, inputs)
        w_hh = self.weight(f"{path}.weight_hh", 4 * units, units)
        return w_ih, w_hh, sum(self.weight(f"{path}.{name}", 4 * units) for name in names)

    def cell(self, weights, x, state):
        w_ih, w_hh, bias = weights
        h, c = state
        i, f, g, o = (x @ w_ih.t() + h @ w_hh.t() + bias).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    def encode(self, texts):
        """Memory of each text [symbols, 2 units]."""
        spec, lengths = self.encoder, [len(t) for t in texts]
        table = self.weight("encoder.embedding", SYMBOLS, spec["width"])
        x = table[fixture.padded(texts, 0)]
        counted = None
        if not self.training:
            counted = lengths
            x = x * (torch.arange(x.shape[1]) < torch.tensor(lengths).unsqueeze(1)).unsqueeze(2)
        for i in range(spec["convolutions"]["layers"]):
            conv = spec["convolutions"]
            x = self.convolution(f"encoder.convolutions.{i}", x, conv["channels"], conv, "relu", counted)
        units, memory = spec["units"], []
        directions = [
            self.lstm_weights(f"encoder.lstm.{way}", x.shape[2], units, spec["biases"]) for way in ("forward", "backward")
        ]
        for row, length in zip(x, lengths):
            steps = len(row) if spec.get("reads_padding") and self.training else length
            row, outs = row[:steps], []
            for way, weights in enumerate(directions):
                state, out = (torch.zeros(1, units).double(),) * 2, []
                for t in range(steps) if way == 0 else reversed(range(steps)):
                    state = self.cell(weights, row[t : t + 1], state)
                    out.append(state[0])
                outs.append(torch.cat(out if way == 0 else out[::-1]))
            memory.append(torch.cat(outs, 1)[:length])
        return memory

    def prenet(self, x, factors):
        spec = self.decoder["prenet"]
        for i, units in enumerate(spec["units"]):
            x = torch.relu(self.linear(f"decoder.prenet.layers.{i}", x, units, spec["bias"])) * factors(i, units)
        return x

    def steps(self, memory, read, count):
        """`read(step, last frame)` gives what the loop reads: pre-net outputs [1, units]. One text.
        -> frames, logits, weights.
        """
        spec, look = self.decoder, self.decoder["attention"]
        units, layers, asking, width = spec["units"], spec["layers"], spec["asking_layer"], memory.shape[1]
        at = "decoder.attention"
        keys = self.linear(f"{at}.memory", memory, look["units"], False)
        channels = 2 if look["last_weights"] else 1
        filters = self.weight(f"{at}.filter", look["filters"], channels, look["kernel"])
        filter_bias = self.weight(f"{at}.filter_bias", look["filters"]) if look["bias"] else None
        bias = self.weight(f"{at}.bias", look["units"]) if look["bias"] else 0.0
        vector = self.weight(f"{at}.vector", look["units"])
        states = [(torch.zeros(1, units).double(),) * 2 for _ in range(layers)]
        found = torch.zeros(1, width).double()
        last, total = torch.zeros(len(memory)).double(), torch.zeros(len(memory)).double()
        frames, stops, weights, frame = [], [], [], torch.zeros(1, MELS).double()
        for step in range(count):
            x = torch.cat([read(step, frame), found], 1)
            for i in range(layers):
                if i == asking:
                    x = torch.cat([x, found], 1)
                path = f"decoder.layers.{i}"
                states[i] = self.cell(self.lstm_weights(path, x.shape[1], units, spec["biases"]), x, states[i])
                x = states[i][0]
                if i + 1 == asking:
                    past = torch.stack([last, total]) if channels == 2 else total.unsqueeze(0)
                    kernel = look["kernel"]
                    location = F.conv1d(F.pad(past.unsqueeze(0), [(kernel - 1) // 2, kernel // 2]), filters, filter_bias)[0].t()
                    location = self.linear(f"{at}.location", location, look["units"], False)
                    query = self.linear(f"{at}.query", x, look["units"], False)
                    last = torch.softmax(torch.tanh(keys + query + location + bias) @ vector, 0)
                    total = total + last
                    found = last.unsqueeze(0) @ memory
                    weights.append(last)
            x = torch.cat([x, found], 1)
            frame = self.linear("decoder.frame", x, MELS, True)
            stops.append(self.linear("decoder.stop", x if spec["stop_reads"] == "output" else frame, 1, True)[0, 0])
            frames.append(frame)
            if not self.training and stops[-1] > self.threshold:
                break
        return torch.cat(frames), torch.stack(stops), torch.stack(weights)

    def correct(self, frames, lengths):
        """[sequences, frames, MELS] -> corrected frames, magnitudes."""
        post, x = self.decoder["postnet"], frames
        mask = 1.0
        if lengths is not None:
            mask = (torch.arange(x.shape[1]) < torch.tensor(lengths).unsqueeze(1)).unsqueeze(2)
            x = x * mask
        for i in range(post["layers"]):
            last = i + 1 == post["layers"]
            x = self.convolution(f"postnet.{i}", x, MELS if last else post["channels"], post, "nothing" if last else "tanh", lengths)
        corrected = frames + x
        if "magnitudes" not in self.decoder:
            return corrected, None
        spec, x = self.decoder["magnitudes"], corrected * mask
        for i, channels in enumerate(spec["channels"]):
            x = self.convolution(f"magnitudes.convolutions.{i}", x, channels, spec, "relu", lengths)
        return corrected, self.linear("magnitudes.projection", torch.exp(x), BINS, False)


def guided(weights, frames, width):
    """What the attention [frames, symbols] of an utterance of so many frames costs."""
    symbols = weights.shape[1]
    n, t = torch.arange(symbols).double() / symbols, torch.arange(frames).double().unsqueeze(1) / frames
    return (weights[:frames] * (1 - torch.exp(-((n - t) ** 2) / (2 * width**2)))).sum()


def train(model, frames, stops, loss):
    """Outputs, and the sums, counts and factors of the losses, of a training pass."""
    padding, guide = loss["padding"], loss.get("guide")
    longest, bins = frames.shape[1], frames.shape[2] - MELS
    before = torch.cat([torch.zeros(len(TEXTS), 1, MELS).double(), frames[:, :-1, :MELS]], 1)
    prenet = model.decoder["prenet"]
    factors = [
        Key(SEED, 1 + i, STEP).factors(len(TEXTS) * longest * units, prenet["dropout"]).reshape(len(TEXTS), longest, units)
        for i, units in enumerate(prenet["units"])
    ]
    memory, written = model.encode(TEXTS), []
    for b in range(len(TEXTS)):
        read = lambda step, _, b=b: model.prenet(before[b, step : step + 1], lambda i, units: factors[i][b, step])
        written.append(model.steps(memory[b], read, longest))
    out = torch.stack([w[0] for w in written])
    logits = torch.stack([w[1] for w in written])
    corrected, magnitudes = model.correct(out, None)
    counted = torch.ones(len(TEXTS), longest) if padding else (torch.arange(longest) < torch.tensor(LENGTHS).unsqueeze(1)).double()
    squares = lambda a, b: ((a - b) ** 2 * counted.unsqueeze(2)).sum()
    due = (torch.arange(longest) >= torch.tensor(stops).unsqueeze(1)).double()
    n = counted.sum().item()
    losses = {
        "mel": (squares(out, frames[:, :, :MELS]), n * MELS, 1),
        "corrected_mel": (squares(corrected, frames[:, :, :MELS]), n * MELS, 1),
        "stop": ((F.binary_cross_entropy_with_logits(logits, due, reduction="none") * counted).sum(), n, 1),
    }
    outputs = {"frames": out.reshape(-1, MELS), "stops": logits.reshape(-1), "corrected": corrected.reshape(-1, MELS)}
    outputs["weights"] = torch.cat([w[2] for w in written], 1)
    if magnitudes is not None:
        losses["magnitudes"] = (squares(magnitudes, frames[:, :, MELS:]), n * bins, 1)
        outputs["magnitudes"] = magnitudes.reshape(-1, bins)
    if guide is not None:
        far = sum(guided(w[2], frames, guide["width"]) for w, frames in zip(written, LENGTHS))
        losses["attention"] = (far, sum(LENGTHS), guide["weight"])
    return outputs, losses


def speak(model):
    """What each text becomes: mel frames, magnitudes, weights, and whether it ended by itself."""
    model.training = False
    prenet, said = model.decoder["prenet"], []
    with torch.no_grad():
        for memory in model.encode(TEXTS):
            def read(step, frame):
                return model.prenet(frame, lambda i, units: Key(PRENET_SEED, i, step).factors(units, prenet["dropout"]))

            frames, stops, weights = model.steps(memory, read, MOST)
            # Far enough from the threshold that FP32 decides alike.
            assert (stops - model.threshold).abs().min() > 1e-3
            corrected, magnitudes = model.correct(frames.unsqueeze(0), [len(frames)])
            said.append((corrected[0], None if magnitudes is None else magnitudes[0], weights, bool(stops[-1] > model.threshold)))
    return said


def main():
    tensors, described = {}, {}
    for seed, (name, spec) in enumerate(CASES.items()):
        model = Model(name, spec, 2100 + seed)
        bins = BINS if "magnitudes" in spec["decoder"] else 0
        longest = max(LENGTHS)
        frames = torch.stack([
            torch.cat([model.normal(n, MELS + bins), torch.zeros(longest - n, MELS + bins).double()]) for n in LENGTHS
        ])
        stops = [n - 1 for n in LENGTHS] if name != "openseq2seq" else [n - 2 for n in LENGTHS]
        outputs, losses = train(model, frames, stops, spec["loss"])
        sum(factor * total / count for total, count, factor in losses.values()).backward()
        put = lambda key, value: tensors.__setitem__(f"{name}/{key}", value)
        put("symbols", torch.tensor(sum(TEXTS, [])))
        put("symbol_lengths", torch.tensor([len(t) for t in TEXTS]))
        put("frames", frames.reshape(-1, MELS + bins))
        put("lengths", torch.tensor(LENGTHS))
        put("stops", torch.tensor(stops))
        for key, value in outputs.items():
            put(f"out/{key}", value)
        for key, (total, _, _) in losses.items():
            put(f"losses/{key}", total)
        for path, value in model.folded.items():
            put(f"folded/{path}", value)
        for path, value in model.running.items():
            put(f"weights/{path}", value)
        parameters = list(model.weights.items())
        for path, value in parameters:
            put(f"weights/{path}", value.detach().clone())
            put(f"gradients/{path}", value.grad)
        before = {path: value.detach().clone() for path, value in parameters}
        torch.optim.Adam([v for _, v in parameters], lr=RATE, betas=(0.9, 0.999), eps=1e-3).step()
        for path, value in parameters:
            put(f"updated/{path}", value.detach().clone())
        with torch.no_grad():
            for path, value in parameters:
                value.copy_(before[path])
        said = speak(model)
        print(name, [(len(one[0]), one[3]) for one in said])
        for i, (mels, magnitudes, weights, stopped) in enumerate(said):
            put(f"spoken/{i}/mels", mels)
            put(f"spoken/{i}/alignment", weights)
            put(f"spoken/{i}/stopped", torch.tensor([int(stopped)]))
            if magnitudes is not None:
                put(f"spoken/{i}/magnitudes", magnitudes)
        described[name] = {
            "model": {"encoder": spec["encoder"], "decoder": spec["decoder"]}, "loss": spec["loss"], "threshold": THRESHOLDS[name],
        }
    description = {
        "layout": 1, "computed_in": "float64", "symbols": SYMBOLS, "mels": MELS, "bins": BINS, "cases": described,
        "optimizer": OPTIMIZER, "rate": RATE, "pass": [SEED, STEP], "most_frames": MOST,
    }
    fixture.save("tacotron", tensors, description)


if __name__ == "__main__":
    main()
