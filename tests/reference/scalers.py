"""Loss scales through scripted overflows -> tests/fixtures/scalers.json.

A step uses a scale, looks at the gradients and leaves a scale for the next step. Overflow: any
gradient element is not finite. All numbers are FP64. The published code keeps LogMax's statistics
in FP32, so a comparison needs a relative tolerance there (1e-6 suffices for FP64); the other
scalers are exact.
"""

import math

import numpy as np

import fixture


def backoff(spec, overflows, steps):
    """OpenSeq2Seq's rule: growth where the distance to the last overflow is a multiple of the
    window, counted from step -1.
    """
    scale = spec.get("scale_init", spec["scale_max"])
    last = -1
    scales = [scale]
    for step in range(steps):
        if step in overflows:
            scale = scale / spec["step_factor"]
            last = step
        elif (step - last) % spec["step_window"] == 0:
            scale = scale * spec["step_factor"]
        scale = min(max(scale, spec["scale_min"]), spec["scale_max"])
        scales.append(scale)
    return scales


def clean_run(spec, overflows, steps):
    """NVIDIA's rule in its own form: a counter of clean steps that starts again at growth and at
    overflow.
    """
    scale, clean = spec.get("scale_init", spec["scale_max"]), 0
    scales = [scale]
    for step in range(steps):
        if step in overflows:
            scale, clean = scale / spec["step_factor"], 0
        else:
            clean += 1
        if clean >= spec["step_window"]:
            scale, clean = scale * spec["step_factor"], 0
        scale = min(max(scale, spec["scale_min"]), spec["scale_max"])
        scales.append(scale)
    return scales


def logmax(spec, largest):
    """OpenSeq2Seq's LogMax. `largest`: greatest absolute unscaled gradient of each step, None where
    it is not finite.

    Published: an overflow enters as x = 2^log_max although x is a logarithm. Corrected: as log_max.
    """
    fast = slow = square = 0.0
    scale, scales = 1.0, [1.0]
    beta1, beta2 = spec["beta1"], spec["beta2"]
    for step, value in enumerate(largest, start=1):
        if value is None:
            x = 2.0 ** spec["log_max"] if spec["published_overflow_defect"] else spec["log_max"]
        else:
            x = math.log2(value)
        fast = beta1 * fast + (1 - beta1) * x
        slow = beta2 * slow + (1 - beta2) * x
        square = beta2 * square + (1 - beta2) * x * x
        mean = fast / (1 - beta1**step)
        slow_mean = slow / (1 - beta2**step)
        deviation = math.sqrt(max(0.0, square / (1 - beta2**step) - slow_mean**2))
        exponent = spec["log_max"] - (mean + spec["overflow_std_dev"] * deviation)
        scale = min(max(2.0**exponent, spec["scale_min"]), spec["scale_max"])
        scales.append(scale)
    return scales


def changes(scales):
    """[step, scale] wherever the scale that a step uses is another than before."""
    return [[i, s] for i, s in enumerate(scales) if i == 0 or s != scales[i - 1]]


def backoff_spec(scale_max, window, init=None, scale_min=1.0, factor=2.0):
    spec = {"kind": "backoff", "scale_min": scale_min, "scale_max": scale_max, "step_factor": factor}
    return spec | {"step_window": window} | ({} if init is None else {"scale_init": init})


HUGE = 2.0**60
CASES = {
    # It starts at its largest scale, so it can only shrink at first.
    "openseq2seq": (backoff_spec(2.0**14, 2000), [0, 1, 2, 1500, 5000, 5001], 12000),
    "openseq2seq-to-the-floor": (backoff_spec(2.0**14, 2000), list(range(20)), 6100),
    "nvidia-gnmt": (backoff_spec(2.0**24, 128, init=8192.0), [200, 327, 328, 584], 900),
    "nvidia-gnmt-capped": (backoff_spec(8192.0, 128, init=8192.0), [5, 200, 584], 900),
    "fairseq": (backoff_spec(HUGE, 2000, init=128.0, scale_min=1e-4), [1999, 2500, 4500, 8500], 13000),
    # The settings of the recipes: the window is 2^14 batches, over 2 and over 128 of them an
    # update. fairseq has no largest scale.
    "multi30k-transformer-tiny": (
        backoff_spec(65536.0, 8192, init=128.0, scale_min=1e-4), [8000, 8191, 16383, 30000], 120000),
    "fairseq-transformer-big": (backoff_spec(HUGE, 128, init=128.0, scale_min=1e-4), [127, 128, 256, 900, 901], 2600),
    # PyTorch's gradient scaler from 2^15 on; it has neither bound.
    "transformer-big-nvidia": (
        backoff_spec(HUGE, 2000, init=32768.0, scale_min=1e-4), [0, 1999, 2000, 4000, 9001], 20000),
    "convs2s-fairseq": (backoff_spec(65536.0, 16384, init=128.0, scale_min=1e-4), [16000, 16384, 40000], 120000),
    "yesno-tdnn": (backoff_spec(65536.0, 2000, init=128.0, scale_min=1e-4), [1999, 2500, 4500, 8500], 13000),
    # NVIDIA's Jasper has a largest scale of 512. DeepSpeech's guide names TensorFlow's rewrite,
    # which begins at 2^15.
    "jasper-nvidia": (backoff_spec(512.0, 2000), [0, 1, 1500, 5000], 9000),
    "tacotron2-nvidia": (backoff_spec(HUGE, 2000, init=65536.0), [0, 1, 2001, 4001, 4500], 20000),
    "deepspeech-mozilla": (backoff_spec(HUGE, 2000, init=32768.0), [0, 1999, 2000, 4000, 9001], 20000),
    "window-of-one": (backoff_spec(1024.0, 1, init=1.0), [3, 4, 9], 16),
    "factor-of-four": (backoff_spec(4096.0, 7, init=64.0, factor=4.0), [6, 13, 14, 22, 60], 70),
}  # fmt: skip


def logmax_spec(log_max=16.0, defect=False, scale_max=2.0**14):
    return {
        "kind": "logmax", "scale_min": 1.0, "scale_max": scale_max, "log_max": log_max, "beta1": 0.99, "beta2": 0.999,
        "overflow_std_dev": 3.09, "published_overflow_defect": defect,
    }  # fmt: skip


def gradients(seed, steps, overflows, level):
    """Greatest gradients whose logarithms wander around a level, six digits each."""
    draw = np.random.default_rng(seed)
    walk = level + np.cumsum(0.3 * draw.standard_normal(steps)) + draw.standard_normal(steps)
    values = [float(f"{2.0**x:.6g}") for x in walk]
    return [None if step in overflows else value for step, value in enumerate(values)]


LOGMAX_CASES = {
    "logmax-clean": (logmax_spec(), gradients(701, 160, [], 2.0)),
    "logmax-overflows": (logmax_spec(), gradients(702, 160, [20, 21, 90], 4.0)),
    "logmax-published-defect": (logmax_spec(defect=True), gradients(702, 160, [20, 21, 90], 4.0)),
    "logmax-overflow-first": (logmax_spec(), gradients(703, 40, [0], 0.0)),
    "logmax-other-target": (logmax_spec(log_max=15.0, scale_max=2.0**24), gradients(704, 80, [30], -6.0)),
}


def main():
    # 128 is the scale of bigLSTM in Micikevicius et al. 2018; the powers of two after it are what `zoo
    # profile` suggests for small systems.
    static = {"static": 512.0} | {f"static-{scale}": float(scale) for scale in (128, 2, 64, 1024, 4096, 8192, 32768)}
    cases = [{
        "name": name, "scaler": {"kind": "static", "scale": scale}, "steps": 100, "overflows": [3, 50], "updates": 98,
        "scales": [[0, scale]],
    } for name, scale in static.items()]  # fmt: skip
    for name, (spec, overflows, steps) in CASES.items():
        scales = backoff(spec, overflows, steps)
        assert scales == clean_run(spec, overflows, steps), name
        cases.append({
            "name": name, "scaler": spec, "steps": steps, "overflows": overflows, "updates": steps - len(overflows),
            "scales": changes(scales),
        })  # fmt: skip
    for name, (spec, largest) in LOGMAX_CASES.items():
        cases.append({
            "name": name, "scaler": spec, "steps": len(largest), "largest_gradients": largest,
            "updates": sum(value is not None for value in largest), "scales": logmax(spec, largest),
        })  # fmt: skip
    note = (
        "overflows: steps (from 0) whose gradients are not finite; scales: [step, scale it uses] where it changes, the last may be "
        "the scale after the last step; for logmax: the scale of every step and the one after, largest_gradients null where not finite; "
        "updates: steps that change weights"
    )
    fixture.save_json("scalers", {"note": note, "cases": cases})


if __name__ == "__main__":
    main()
