"""Greedy and beam search in the published forms, for one sentence, as a specification.

`next_log_p(prefix)` returns the log-probabilities [vocabulary] of what follows a list of tokens;
nothing is cached. `attention(prefix)` returns the weights [source tokens] of that step. A
hypothesis is (tokens, log p); a result is a list of (tokens, score, log p), best first. Every
choice between near equals is noted in `gaps`, so that a fixture can leave out sentences that
rounding could decide.
"""

import math


def penalty(spec, n):
    """What log p is divided by for n tokens, the end token included."""
    if spec["kind"] == "gnmt":
        return ((5 + n) / 6) ** spec["alpha"]
    return n ** spec["alpha"] if spec["kind"] == "length-power" else 1.0


def limit(spec, source_tokens):
    """Most tokens of an output, the end token included; the source's tokens include its end token
    as well.
    """
    return math.floor(spec["factor"] * source_tokens) + spec["extra"]


def greedy(next_log_p, longest, end, gaps):
    """The likeliest token each time, until the end token or the limit."""
    tokens, log_p = [], 0.0
    while len(tokens) < longest and (not tokens or tokens[-1] != end):
        row = next_log_p(tokens)
        best, second = row.topk(2).values.tolist()
        gaps.append(best - second)
        tokens, log_p = [*tokens, int(row.argmax())], log_p + best
    return [(tokens, log_p, log_p)]


def extensions(alive, rows, count, gaps):
    """The `count` likeliest one-token extensions of the alive hypotheses, best first."""
    every = [
        ([*tokens, token], log_p + step)
        for (tokens, log_p), row in zip(alive, rows)
        for token, step in enumerate(row.tolist())
        if step > -math.inf
    ]
    every.sort(key=lambda candidate: -candidate[1])
    gaps.extend(a[1] - b[1] for a, b in zip(every[:count], every[1 : count + 1]))
    return every[:count]


def beam_until_no_improvement(next_log_p, beam, spec, longest, end, gaps):
    """tensor2tensor and OpenSeq2Seq (`stop = "cannot-improve"`).

    Each step looks at the 2 * beam likeliest extensions. Those that end are scored and join the
    finished, of which `beam` are kept; of the others the first `beam` stay alive. It ends at the
    limit, or when the worst finished hypothesis is better than the best alive one could become: its
    log p now, with the penalty of the limit. Finished places that are still empty do not count. If
    nothing has finished, the alive ones are returned, their score being log p without a penalty. No
    token is forbidden.
    """
    alive, finished = [([], 0.0)], []
    for n in range(1, longest + 1):
        candidates = extensions(alive, [next_log_p(tokens) for tokens, _ in alive], 2 * beam, gaps)
        ended = [(t, p / penalty(spec, n), p) for t, p in candidates if t[-1] == end]
        alive = [(t, p) for t, p in candidates if t[-1] != end][:beam]
        finished = sorted(finished + ended, key=lambda hypothesis: -hypothesis[1])
        gaps.extend(a[1] - b[1] for a, b in zip(finished, finished[1:]))
        finished = finished[:beam]
        if finished:
            margin = finished[-1][1] - alive[0][1] / penalty(spec, longest)
            gaps.append(abs(margin))
            if margin > 0:
                break
    return finished or [(t, p, p) for t, p in alive]


def beam_until_full(next_log_p, beam, spec, longest, end, pad, gaps):
    """fairseq (`stop = "beam-finished"`).

    Each step looks at the 2 * beam likeliest extensions. Those of the first `beam` places that end
    are finished; ending ones further down are dropped; the first `beam` that do not end stay alive,
    always `beam` of them. It ends as soon as `beam` hypotheses have finished. Padding is never
    written, the first token is not the end token, the last one allowed by the limit must be.
    """
    alive, finished = [([], 0.0)], []
    for n in range(1, longest + 1):
        rows = [next_log_p(tokens).clone() for tokens, _ in alive]
        for row in rows:
            row[pad] = -math.inf
            if n == longest:
                row[:end] = -math.inf
                row[end + 1 :] = -math.inf
            elif n == 1:
                row[end] = -math.inf
        candidates = extensions(alive, rows, 2 * beam, gaps)
        ended = [(t, p / penalty(spec, n), p) for t, p in candidates[:beam] if t[-1] == end]
        finished += ended[: beam - len(finished)]
        if len(finished) == beam:
            break
        alive = [(t, p) for t, p in candidates if t[-1] != end][:beam]
    finished.sort(key=lambda hypothesis: -hypothesis[1])
    gaps.extend(a[1] - b[1] for a, b in zip(finished, finished[1:]))
    return finished


def first_of(candidates, beam, gaps):
    """The best, by their first entry; equal ones as they come."""
    candidates.sort(key=lambda candidate: -candidate[0])
    gaps.extend(a[0] - b[0] for a, b in zip(candidates[:beam], candidates[1 : beam + 1]) if b[0] > -math.inf)
    return candidates[:beam]


def beam_of_tensorflow(next_log_p, beam, alpha, longest, end, gaps):
    """TensorFlow's BeamSearchDecoder, in the copy that OpenSeq2Seq has.

    A place is (tokens, log p, length, done). Of a place that is done the end token alone follows,
    with probability 1. All candidates are divided by their penalty before the best are chosen. A
    length grows by one with every token but an end token that was only just chosen, which is
    counted when it is looked at again.
    """
    places = [([], 0.0, 0, False)] + [([], -math.inf, 0, True)] * (beam - 1)
    for _ in range(longest):
        candidates = []
        for place, (tokens, log_p, length, done) in enumerate(places):
            for token, step in [(end, 0.0)] if done else enumerate(next_log_p(tokens).tolist()):
                counted = length + (not done and token != end)
                candidates.append(((log_p + step) / ((5 + counted) / 6) ** alpha, place, token, log_p + step))
        chosen = first_of(candidates, beam, gaps)
        old, places = places, []
        for _, place, token, log_p in chosen:
            tokens, _, length, done = old[place]
            places.append((tokens if done else [*tokens, token], log_p, length + (not done), done or token == end))
        if all(done for _, _, _, done in places):
            break
    return [(tokens, score, log_p) for (tokens, log_p, _, _), (score, _, _, _) in zip(places, chosen)]


def beam_of_gnmt(next_log_p, attention, spec, longest, source_tokens, end, gaps):
    """NVIDIA's GNMT v2: arrays of places, kept by log p. `as_coded` leaves the sums of attention
    where they are when places are filled anew, and returns log p of a sentence that the limit
    ended, for it is one step too late to weigh it.
    """
    beam = spec["beam"]
    tokens, scores = [[] for _ in range(beam)], [0.0] * beam
    received = [[0.0] * source_tokens for _ in range(beam)]
    over = [False] * beam

    def weighed():
        norm = [((spec["constant"] + 1 + len(t)) / (spec["constant"] + 1)) ** spec["alpha"] for t in tokens]
        cover = [sum(math.log(min(max(a, 0.0), 1.0)) for a in row if a > 0) for row in received]
        return [s / n + spec["coverage"] * c for s, n, c in zip(scores, norm, cover)]

    final = None
    for step in range(1, longest + 1):
        if all(over):
            final = weighed()
            break
        candidates = []
        for place in range(beam):
            if over[place]:
                candidates.append((scores[place], place, end))
                continue
            if spec["coverage"] > 0:
                received[place] = [a + b for a, b in zip(received[place], attention(tokens[place]).tolist())]
            if step == 1 and place > 0:
                continue
            rows = enumerate(next_log_p(tokens[place]).tolist())
            candidates.extend((scores[place] + log_p, place, token) for token, log_p in rows)
        chosen = first_of(candidates, beam, gaps)
        tokens = [tokens[p] if over[p] else [*tokens[p], token] for _, p, token in chosen]
        if not spec["as_coded"]:
            received = [received[p] for _, p, _ in chosen]
        scores, over = [score for score, _, _ in chosen], [token == end for _, _, token in chosen]
    if final is None:
        final = scores if spec["as_coded"] else weighed()
    results = sorted(zip(tokens, final, scores), key=lambda hypothesis: -hypothesis[1])
    gaps.extend(a[1] - b[1] for a, b in zip(results, results[1:]))
    return results


def beam_of_joeynmt(next_log_p, spec, longest, end, gaps):
    """JoeyNMT's: nothing leaves the beam. What has ended is extended by what the decoder says
    behind an end token, and competes by log p.

    Ranked is what ends in a step, under that step's penalty, and everything in the beam of the last
    step, ended or not: the one whose likeliest hypothesis ends, or the limit. The code of 2019
    (`as_coded`) ranks what ends a second time once more; later code does not. A result is cut
    behind its first end token.
    """
    places, ranked = [([], 0.0)], []
    for n in range(1, longest + 1):
        candidates = [
            (log_p + step, [*tokens, token])
            for tokens, log_p in places
            for token, step in enumerate(next_log_p(tokens).tolist())
        ]
        chosen = first_of(candidates, spec["beam"], gaps)
        places = [(tokens, log_p) for log_p, tokens in chosen]
        done = n == longest or places[0][0][-1] == end
        for tokens, log_p in places:
            if (done or tokens[-1] == end) and (spec["as_coded"] or tokens.count(end) < 2):
                cut = tokens[: tokens.index(end) + 1] if end in tokens else tokens
                ranked.append((cut, log_p / ((5 + n) / 6) ** spec["alpha"], log_p))
        if done:
            break
    ranked.sort(key=lambda hypothesis: -hypothesis[1])
    gaps.extend(a[1] - b[1] for a, b in zip(ranked[: spec["beam"]], ranked[1 : spec["beam"] + 1]))
    return ranked[: spec["beam"]]


def search(next_log_p, spec, source_tokens, vocabulary, gaps, attention=None):
    """Runs a recipe's `[decode.NAME]`."""
    longest, end = limit(spec["max_length"], source_tokens), vocabulary["end"]
    if spec["kind"] == "tensorflow-beam":
        return beam_of_tensorflow(next_log_p, spec["beam"], spec["alpha"], longest, end, gaps)
    if spec["kind"] == "gnmt-beam":
        return beam_of_gnmt(next_log_p, attention, spec, longest, source_tokens, end, gaps)
    if spec["kind"] == "joeynmt-beam":
        return beam_of_joeynmt(next_log_p, spec, longest, end, gaps)
    if spec["kind"] == "greedy":
        return greedy(next_log_p, longest, end, gaps)
    rule = (spec["beam"], spec["length_penalty"], longest, end)
    if spec["stop"] == "cannot-improve":
        return beam_until_no_improvement(next_log_p, *rule, gaps)
    return beam_until_full(next_log_p, *rule, vocabulary["pad"], gaps)
