"""What Tacotron 2 learns to write, by librosa: NVIDIA's mels, and OpenSeq2Seq's mels with linear
magnitudes beside them.

    pip install numpy librosa safetensors
    python audio_features_tacotron.py --recording LJSpeech-1.1/wavs/LJ001-0002.wav

Writes tests/fixtures/audio_features_tacotron.safetensors: a piece of a recording of LJSpeech 1.1
(public domain) at 22,050 Hz, for each case its frames, and where `librosa.effects.trim` cuts; `zoo`
in the metadata lists the cases with their specs. librosa computes in FP64 here: in FP32 its own
noise is what is seen in the quiet bins. NVIDIA's transform is a convolution in PyTorch with the
same window, centring and mirrored ends as `librosa.stft` with `pad_mode="reflect"`; OpenSeq2Seq
calls librosa of 2018, whose default that was. Written with librosa 0.11.0.
"""

import argparse
import json
import wave
from pathlib import Path

import librosa
import numpy as np
import safetensors.numpy

OUT = Path(__file__).resolve().parent.parent / "fixtures" / "audio_features_tacotron.safetensors"
RATE, START, SECONDS = 22050, 0.0, 0.45


def magnitudes(signal, fft=1024, hop=256, window=1024):
    spectrum = librosa.stft(signal, n_fft=fft, hop_length=hop, win_length=window, window="hann", center=True, pad_mode="reflect")
    return librosa.magphase(spectrum, power=1)[0]


def log_mels(linear, floor, fft=1024, **mel):
    filters = librosa.filters.mel(sr=RATE, n_fft=fft, n_mels=80, dtype=np.float64, **mel).astype(np.float32).astype(np.float64)
    return np.log(np.clip(filters @ linear, floor, None)).T


def trimmed(signal, fft, hop, top_db):
    return librosa.effects.trim(signal, top_db=top_db, frame_length=fft // 2, hop_length=hop // 2)


def cases(signal):
    linear = magnitudes(signal)
    yield "tacotron.nvidia", {}, log_mels(linear, 1e-5, fmin=0.0, fmax=8000.0)
    htk = {"htk": True, "norm": None}
    both = {"floor": 1e-2, "mel": {"scale": "htk", "area_normalized": False}, "magnitude": {"bins": 513}}
    mels = log_mels(linear, 1e-2, **htk)
    yield "tacotron.openseq2seq", both, np.concatenate([mels, np.clip(linear, 1e-5, None).T], axis=1)
    logs = {**both, "magnitude": {"bins": 40, "floor": 1e-3, "log": True}}
    yield "tacotron.log", logs, np.concatenate([mels, np.log(np.clip(linear, 1e-3, None)).T[:, :40]], axis=1)
    # MAILABS' transform, and a window shorter than it.
    odd = {"fft": 800, "window_samples": 600, "hop_samples": 200, "mel": {"high_hz": 7600.0}, "trim_db": 25.0}
    part, _ = trimmed(signal, 800, 200, 25.0)
    yield "tacotron.trimmed", odd, log_mels(magnitudes(part, 800, 200, 600), 1e-5, fft=800, fmax=7600.0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--recording", required=True)
    with wave.open(parser.parse_args().recording) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
        recording = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
    recording = recording[int(START * RATE) : int((START + SECONDS) * RATE)]
    signal = recording.astype(np.float64) / 32768
    tensors, described = {"clip": recording}, {"features": []}
    for name, spec, made in cases(signal):
        tensors[name] = np.ascontiguousarray(made, dtype=np.float32)
        spec = {"kind": "tacotron", **spec}
        described["features"].append({"name": name, "sound": "clip", "rate": RATE, "bits": 64, "spec": spec})
        print(name, made.shape)
    safetensors.numpy.save_file(tensors, OUT, metadata={"zoo": json.dumps(described)})
    print(f"{OUT.name}: {OUT.stat().st_size} bytes; trimmed to {trimmed(signal, 800, 200, 25.0)[1]} of {len(signal)}")


if __name__ == "__main__":
    main()
