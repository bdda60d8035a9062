"""Greedy and beam search in the two published forms, for one sentence, as a specification.

`next_log_p(prefix)` returns the log-probabilities [vocabulary] of what follows a list of tokens; nothing is cached. A hypothesis is
(tokens, log p); a result is a list of (tokens, score, log p), best first. Every choice between near equals is noted in
`gaps`, so that a fixture can leave out sentences that rounding could decide.
"""

import math


def penalty(spec, n):
    """What log p is divided by for n tokens, the end token included."""
    if spec["kind"] == "gnmt":
        return ((5 + n) / 6) ** spec["alpha"]
    return n ** spec["alpha"] if spec["kind"] == "length-power" else 1.0


def limit(spec, source_tokens):
    """Most tokens of an output, the end token included; the source's tokens include its end token as well."""
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

    Each step looks at the 2 * beam likeliest extensions. Those that end are scored and join the finished, of which `beam` are kept; of
    the others the first `beam` stay alive. It ends at the limit, or when the worst finished hypothesis is better than the best
    alive one could become: its log p now, with the penalty of the limit. Finished places that are still empty do not
    count. If nothing has finished, the alive ones are returned, their score being log p without a penalty. No token is forbidden.
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

    Each step looks at the 2 * beam likeliest extensions. Those of the first `beam` places that end are finished; ending ones further
    down are dropped; the first `beam` that do not end stay alive, always `beam` of them. It ends as soon as `beam` hypotheses have
    finished. Padding is never written, the first token is not the end token, the last one allowed by the limit must be.
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


def search(next_log_p, spec, source_tokens, vocabulary, gaps):
    """Runs a recipe's `[decode.NAME]`."""
    longest, end = limit(spec["max_length"], source_tokens), vocabulary["end"]
    if spec["kind"] == "greedy":
        return greedy(next_log_p, longest, end, gaps)
    rule = (spec["beam"], spec["length_penalty"], longest, end)
    if spec["stop"] == "cannot-improve":
        return beam_until_no_improvement(next_log_p, *rule, gaps)
    return beam_until_full(next_log_p, *rule, vocabulary["pad"], gaps)
