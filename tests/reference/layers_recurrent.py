"""Times PyTorch's recurrent layers, forward and backward, as zoo/examples/layers_recurrent.rs times ours: one JSON object a line.

`python layers_recurrent.py [repetitions]`. `fp32`; `bf16` is the faster of `torch.autocast` and of the module in bfloat16, whichever PyTorch
offers on this CPU; `how` says which. Threads: OMP_NUM_THREADS.
"""

import json
import sys
import time

import torch

LAYERS = [("lstm-512", 512, 16, 100), ("lstm-1024", 1024, 32, 50), ("gru-512", 512, 16, 100), ("bilstm-512", 512, 16, 100)]


def seconds(layer, x, repetitions, autocast):
    """The least of several forward and backward passes."""
    best = float("inf")
    for _ in range(repetitions):
        x = x.detach().requires_grad_()
        layer.zero_grad(set_to_none=True)
        start = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            out, _ = layer(x)
        out.float().sum().backward()
        best = min(best, time.perf_counter() - start)
    return best


def main():
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for name, width, count, steps in LAYERS:
        torch.manual_seed(0)
        kind = torch.nn.GRU if name.startswith("gru") else torch.nn.LSTM
        layer = kind(width, width, bidirectional=name.startswith("bi"))
        x = torch.randn(steps, count, width)
        ways = {"fp32": [("fp32", lambda: seconds(layer, x, repetitions, False))]}
        ways["bf16"] = [
            ("autocast", lambda: seconds(layer, x, repetitions, True)),
            ("module", lambda: seconds(layer.to(torch.bfloat16), x.bfloat16(), repetitions, False)),
        ]
        for mode, candidates in ways.items():
            found = {}
            for how, run in candidates:
                try:
                    found[how] = run()
                except RuntimeError as error:
                    print(f"{name} {how}: {str(error).splitlines()[0]}", file=sys.stderr)
            if not found:
                continue
            how = min(found, key=found.get)
            line = {"layer": name, "mode": mode, "forward_backward_seconds": found[how], "unit": "tokens"}
            print(json.dumps(line | {"work": count * steps, "how": how, "all": found}), flush=True)


if __name__ == "__main__":
    main()
