"""Seconds of audio that one core turns into features in a second: zoo, python_speech_features,
librosa, Kaldi's, resamplers.

    pip install -r as in audio_features.py
    python bench_features.py --recording FILE.wav --example ../../target/release/examples/features_speed

The same recording, repeated to the same length, each library as `audio_features.py` calls it, with
the normalisation that OpenSeq2Seq does behind it. The libraries and zoo take turns, round by round,
and the fastest pass of all rounds counts: on a machine that others use as well, one of them alone
is what the step takes.
"""

import argparse
import json
import os
import subprocess
import time

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[threads] = "1"

import numpy as np  # noqa: E402
import soundfile  # noqa: E402
import torch  # noqa: E402
import resampy  # noqa: E402
from audio_features import kaldi_native_fbank, python_speech_features, through_librosa, through_lhotse  # noqa: E402
from lhotse.augmentation.torchaudio import Speed  # noqa: E402

# Passes of a round, and seconds after which it ends.
PASSES, LONGEST = 10, 2.0


def fastest(work):
    begin, least = time.perf_counter(), float("inf")
    for _ in range(PASSES):
        start = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - start)
        if time.perf_counter() - begin > LONGEST:
            break
    return least


def of_zoo(options):
    shown = subprocess.run([options.example, options.recording, str(options.seconds)], check=True, capture_output=True, text=True).stdout
    return {step["step"]: step["audio_seconds_per_second"] for step in map(json.loads, shown.splitlines())}


def globally(made):
    return ((made - np.mean(made)) / np.std(made)).astype(np.float32)


def per_feature(made):
    return ((made - np.mean(made, axis=0)) / np.std(made, axis=0)).astype(np.float32)


def native(samples, rate):
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.samp_freq, options.frame_opts.dither, options.frame_opts.snip_edges = rate, 0.0, False
    options.mel_opts.num_bins = 80
    computer = kaldi_native_fbank.OnlineFbank(options)
    computer.accept_waveform(rate, samples)
    computer.input_finished()
    return computer.num_frames_ready


def steps(sound, rate):
    floats = sound.astype(np.float32) / 32768
    yield "psf.spectrogram", "python_speech_features", lambda: globally(python_speech_features(sound, rate, "spectrogram", 160))
    yield "psf.log-mel", "python_speech_features", lambda: globally(python_speech_features(sound, rate, "log-mel", 64))
    yield "psf.mfcc", "python_speech_features", lambda: globally(python_speech_features(sound, rate, "mfcc", 13))
    yield "librosa.log-mel", "librosa", lambda: per_feature(through_librosa(sound, rate, "log-mel", 64))
    yield "kaldi.log-mel", "lhotse", lambda: through_lhotse(sound, rate, 80)
    listed = floats.tolist()
    yield "kaldi.log-mel", "kaldi-native-fbank", lambda: native(listed, rate)
    yield "resampy-0.4", "resampy", lambda: resampy.resample(floats, rate, int(rate * 0.95), filter="kaiser_best")
    speed = Speed(0.9)
    yield "torchaudio", "torchaudio", lambda: speed(floats[None], rate)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--recording", required=True)
    parser.add_argument("--example", required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    sound, rate = soundfile.read(options.recording, dtype="int16")
    sound = np.resize(sound, options.seconds * rate)
    zoo, theirs = {}, {}
    for work in (work for *_, work in steps(sound, rate)):
        work()  # what is compiled or read on the first call
    for _ in range(options.rounds):
        for step, speed in of_zoo(options).items():
            zoo[step] = max(speed, zoo.get(step, 0))
        for step, library, work in steps(sound, rate):
            theirs[step, library] = max(options.seconds / fastest(work), theirs.get((step, library), 0))
    print("| step | library | zoo | library | zoo / library |")
    print("|---|---|---:|---:|---:|")
    for (step, library), speed in theirs.items():
        print(f"| {step} | {library} | {zoo[step]:,.0f} | {speed:,.0f} | {zoo[step] / speed:.1f} |")
    print(f"zoo: librosa.log-mel with dither {zoo['librosa.log-mel.dither']:,.0f}, resampy-0.2 {zoo['resampy-0.2']:,.0f}")


if __name__ == "__main__":
    main()
