"""Beam search of the models of fast_seq2seq.py and fast_transformer.py as a practitioner writes it
in PyTorch for speed: hypotheses of all sentences in one batch, states kept between steps and taken
along by `index_select`, one `topk` a step. What has ended goes on with its end token and keeps its
place. For full batches: no source is masked.
"""

import torch
from torch import nn
from torch.nn import functional

from fast_seq2seq import FastSeq2Seq
from products import autocast
from seq2seq import HALF

END = 1


class RecurrentSteps:
    def __init__(self, decoder, memory):
        self.decoder = decoder
        self.values, self.keys = memory[0], decoder.key(memory[0]).unsqueeze(1)
        rows, units = self.values.shape[0], decoder.spec["units"]
        nothing = torch.zeros(1, rows, units)
        self.states = [(nothing, nothing)] * (1 + len(decoder.layers))
        self.vector = decoder.magnitude * decoder.vector / decoder.vector.norm()

    def step(self, x, _number):
        decoder, spec = self.decoder, self.decoder.spec
        x, self.states[0] = decoder.first(x, self.states[0])
        hidden = decoder.query(x).unsqueeze(2) + self.keys + decoder.bias
        context = (hidden.tanh() @ self.vector).softmax(dim=-1) @ self.values
        for i, layer in enumerate(decoder.layers, start=1):
            y, self.states[i] = layer(torch.cat([x, context], dim=-1), self.states[i])
            x = x + y if i + 1 >= spec.get("residual_from", 1000) else y
        return x

    def take(self, rows):
        self.states = [(h.index_select(1, rows), c.index_select(1, rows)) for h, c in self.states]


class ConvolutionalSteps:
    def __init__(self, decoder, memory):
        self.decoder = decoder
        self.keys, self.values = memory
        self.keys = self.keys.transpose(1, 2)
        self.scale = self.values.shape[1] ** 0.5
        rows = self.values.shape[0]
        windows = ((layer.padding[0], layer.convolution.in_channels) for layer in decoder.layers)
        self.windows = [torch.zeros(rows, *window) for window in windows]

    def step(self, x, number):
        decoder = self.decoder
        if not isinstance(decoder.positions, nn.Identity):
            x = x + decoder.positions.weight[number]
        tokens, x = x, decoder.input(x)
        for i, (layer, query, context) in enumerate(zip(decoder.layers, decoder.queries, decoder.contexts)):
            window = torch.cat([self.windows[i].to(x.dtype), x], dim=1)
            self.windows[i] = window[:, 1:]
            y = functional.glu(layer.convolution(window.transpose(1, 2)), dim=1).transpose(1, 2)
            scores = ((query(y) + tokens) * HALF) @ self.keys
            attended = (context(scores.softmax(dim=-1) @ self.values * self.scale) + y) * HALF
            x = (attended + layer.shortcut(x)) * HALF
        return decoder.output(x)

    def take(self, rows):
        self.windows = [window.index_select(0, rows) for window in self.windows]


STEPS = {"recurrent": RecurrentSteps, "convolutional": ConvolutionalSteps}


class Decoding:
    """Batches of random full sources, written to their full length."""

    def __init__(self, recipe, rows, sentences, tokens, mode, beam):
        torch.manual_seed(1)
        self.spec = recipe["model"]
        self.model = FastSeq2Seq(self.spec, rows, tokens).eval()
        self.beam, self.tokens, self.mode = beam, tokens, mode
        self.batches = [torch.randint(4, rows, (sentences, tokens)) for _ in range(4)]
        self.made = 0

    def parameters(self):
        return sum(p.numel() for p in self.model.parameters())

    @torch.inference_mode()
    def batch(self):
        source = self.batches[self.made % len(self.batches)]
        self.made += 1
        # Normalised weights are computed once, and not at every step.
        with autocast(self.mode), torch.nn.utils.parametrize.cached():
            return self.search(source)

    def search(self, source):
        model, beam, sentences = self.model, self.beam, source.shape[0]
        memory = tuple(part.repeat_interleave(beam, dim=0) for part in model.encoder(model.embedding(source)))
        steps = STEPS[self.spec["decoder"]["kind"]](model.decoder, memory)
        first = torch.arange(sentences).unsqueeze(1) * beam
        total = torch.full((sentences, beam), float("-inf"))
        total[:, 0] = 0.0
        last = torch.full((sentences * beam, 1), 2)
        written = torch.zeros(sentences * beam, 0, dtype=torch.long)
        ended = torch.zeros(sentences * beam, 1, dtype=torch.bool)
        for number in range(self.tokens):
            logits = model.output(steps.step(model.target_embedding(last), number)).squeeze(1).float()
            log_p = logits.log_softmax(dim=-1)
            rows = log_p.shape[1]
            if ended.any():
                log_p = torch.where(ended, torch.full_like(log_p, float("-inf")), log_p)
                log_p[:, END] = torch.where(ended.squeeze(1), torch.zeros(()), log_p[:, END])
            total, best = (total.unsqueeze(-1) + log_p.view(sentences, beam, rows)).view(sentences, -1).topk(beam)
            parents, last = (first + best // rows).flatten(), (best % rows).view(-1, 1)
            steps.take(parents)
            written = torch.cat([written.index_select(0, parents), last], dim=1)
            ended = ended.index_select(0, parents) | (last == END)
            if ended.all():
                break
        return written.view(sentences, beam, -1)[:, 0]
