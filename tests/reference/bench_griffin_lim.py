"""Seconds of audio for which one core finds phases in a second, and magnitudes behind mels: zoo and
librosa.

    pip install numpy librosa soundfile
    python bench_griffin_lim.py --recording FILE.wav --example ../../target/release/examples/griffin_lim_speed

The same recording, repeated to the same length, 50 iterations from random phases in FP32. Both take
turns, round by round, and the fastest pass of all rounds counts: on a machine that others use as
well, one of them alone is what the step takes.
"""

import argparse
import json
import os
import subprocess
import time

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[threads] = "1"

import librosa  # noqa: E402
import numpy as np  # noqa: E402
import soundfile  # noqa: E402

N_FFT, HOP, ITERATIONS = 1024, 256, 50


def of_zoo(options):
    shown = subprocess.run([options.example, options.recording, str(options.seconds)], check=True, capture_output=True, text=True).stdout
    return {step["step"]: step["audio_seconds_per_second"] for step in map(json.loads, shown.splitlines())}


def steps(sound, rate):
    magnitudes = np.abs(librosa.stft(sound, n_fft=N_FFT, hop_length=HOP))
    for name, momentum in (("griffin-lim", 0), ("griffin-lim.fast", 0.99)):
        options = {"n_iter": ITERATIONS, "momentum": momentum, "n_fft": N_FFT, "hop_length": HOP, "length": len(sound)}
        yield name, lambda options=options: librosa.griffinlim(magnitudes, random_state=1, **options)
    mel = {"sr": rate, "n_fft": N_FFT, "fmax": min(8000.0, rate / 2)}
    mels = librosa.filters.mel(n_mels=80, **mel) @ magnitudes
    yield "mel-inverse", lambda: librosa.feature.inverse.mel_to_stft(mels, power=1, **mel)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--recording", required=True)
    parser.add_argument("--example", required=True)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    sound, rate = soundfile.read(options.recording, dtype="float32")
    sound = np.resize(sound, options.seconds * rate)
    for _, work in steps(sound[:rate], rate):
        work()  # what is compiled or read on the first call
    zoo, theirs = {}, {}
    for _ in range(options.rounds):
        for step, speed in of_zoo(options).items():
            zoo[step] = max(speed, zoo.get(step, 0))
        for step, work in steps(sound, rate):
            start = time.perf_counter()
            work()
            theirs[step] = max(options.seconds / (time.perf_counter() - start), theirs.get(step, 0))
    print("| step | zoo | librosa | zoo / librosa |")
    print("|---|---:|---:|---:|")
    for step, speed in theirs.items():
        print(f"| {step} | {zoo[step]:,.1f} | {speed:,.1f} | {zoo[step] / speed:.1f} |")


if __name__ == "__main__":
    main()
