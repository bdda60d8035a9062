"""Features and resampled waveforms as the libraries themselves compute them.

    pip install numpy librosa python_speech_features kaldi-native-fbank resampy soundfile safetensors torch torchaudio lhotse
    python -m venv old && old/bin/pip install resampy==0.2.2 "setuptools<80"
    python audio_features.py --recording sense_and_sensibility_01_austen_64kb-0930.wav --old-python old/bin/python

Writes tests/fixtures/audio_features.safetensors: a piece of a recording at 16 kHz (LibriVox, public
domain; as packed with pocketsphinx, test/data/librivox) and of generated sound at 8 kHz, and for
each case its features; `zoo` in the metadata lists the cases with their specs.
tests/fixtures/speech.flac is the same piece of the recording. The committed file was written with
python_speech_features 0.6, librosa 0.11.0, kaldi-native-fbank 1.23.0, lhotse 1.33.0, resampy 0.2.2
and 0.4.3, torchaudio 2.11.0.

The recipes around the libraries are OpenSeq2Seq's
(`open_seq2seq/data/speech2text/speech_utils.py`), before normalisation.
"""

import argparse
import json
import math
import subprocess
import tempfile
from pathlib import Path

import kaldi_native_fbank
import librosa
import numpy as np
import python_speech_features as psf
import resampy
import safetensors.numpy
import soundfile
import torch
from lhotse import Fbank, FbankConfig
from lhotse.augmentation.torchaudio import Speed

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
OUT = FIXTURES / "audio_features.safetensors"
RATE, SECONDS, START = 16000, 0.6, 1.0


def peak_normalised(signal):
    """int16 values as FP32, over their peak."""
    signal = signal.astype(np.float32)
    return signal / (np.max(np.abs(signal)) + 1e-5)


def python_speech_features(signal, rate, output, features, pad_to=8, window=0.02, hop=0.01, **_):
    signal = (peak_normalised(signal) * 32767.0).astype(np.int16)
    length, step = int(rate * window), int(rate * hop)
    frames = 1 + math.ceil((len(signal) - length) / step)
    if frames % pad_to:
        signal = np.pad(signal, (0, (pad_to - frames % pad_to) * step))
    if output == "spectrogram":
        made = psf.sigproc.framesig(signal, length, step, np.hanning)
        return psf.sigproc.logpowspec(made, length)[:, :features]
    if output == "mfcc":
        return psf.mfcc(signal, rate, window, hop, features, 2 * features, 512, 0, None, 0.97, 2 * features, False)
    return psf.logfbank(signal, rate, window, hop, features, 512, 0, rate / 2, 0.97)


def through_librosa(signal, rate, output, features, window=np.hanning, pad_mode="reflect", precision=np.float32, mel={}, length=0.02, hop=0.01, **_):
    signal = peak_normalised(signal).astype(precision)
    length, hop = int(rate * length), int(rate * hop)
    fft = length if output == "spectrogram" else 2 ** math.ceil(math.log2(length))
    if output != "spectrogram":
        signal = np.append(signal[0], signal[1:] - precision(0.97) * signal[:-1])
    spectrum = librosa.stft(signal, n_fft=fft, hop_length=hop, win_length=length, window=window, center=True, pad_mode=pad_mode)
    power = np.abs(spectrum) ** 2
    if output == "spectrogram":
        return 10 * np.log10(np.maximum(power, 1e-30)).T[:, :features]
    filters = 2 * features if output == "mfcc" else features
    energies = librosa.filters.mel(sr=rate, n_fft=fft, n_mels=filters, dtype=np.float64, **mel).astype(precision) @ power
    if output == "mfcc":
        return librosa.feature.mfcc(S=librosa.power_to_db(energies), n_mfcc=features).T
    return np.log(energies + 1e-20).T


def through_lhotse(signal, rate, features, precision=np.float32, **options):
    """lhotse computes in the samples' precision; its mel filters are FP32 in any case."""
    extractor = Fbank(FbankConfig(sampling_rate=rate, num_filters=features, **options))
    if precision == np.float64:
        extractor.extractor.double()
    return extractor.extract(signal.astype(precision) / 32768, rate).astype(np.float32)


def through_kaldi(signal, rate, features, window="povey", snip_edges=True, low=20.0, high=0.0, scale=1.0):
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.samp_freq = rate
    options.frame_opts.dither = 0.0
    options.frame_opts.snip_edges = snip_edges
    options.frame_opts.window_type = window
    options.mel_opts.num_bins = features
    options.mel_opts.low_freq = low
    options.mel_opts.high_freq = high
    computer = kaldi_native_fbank.OnlineFbank(options)
    computer.accept_waveform(rate, (signal.astype(np.float32) * scale).tolist())
    computer.input_finished()
    return np.stack([computer.get_frame(frame) for frame in range(computer.num_frames_ready)])


# Reads the sound's file, writes the result's.
OLD_RESAMPY = """
import sys, numpy, resampy
assert resampy.__version__.startswith("0.2"), resampy.__version__
sound, made, rate, new_rate = sys.argv[1:]
numpy.save(made, resampy.resample(numpy.load(sound), int(rate), int(new_rate), filter="kaiser_best"))
"""


def old_kaiser_best(python, samples, rate, new_rate):
    """By resampy 0.2, in the interpreter that has it."""
    with tempfile.TemporaryDirectory() as folder:
        sound, made = f"{folder}/sound.npy", f"{folder}/made.npy"
        np.save(sound, samples)
        subprocess.run([python, "-c", OLD_RESAMPY, sound, made, str(rate), str(new_rate)], check=True)
        return np.load(made)


def generated(rate):
    """A chirp from 50 Hz to 3.8 kHz that grows out of noise; its first tenth is silent, its last
    loud enough to be cut.
    """
    random = np.random.Generator(np.random.PCG64(20181015))
    time = np.arange(int(0.5 * rate)) / rate
    tone = np.sin(2 * np.pi * (50 * time + 3750 * time**2)) * np.linspace(0, 40000, len(time))
    noise = random.standard_normal(len(time)) * 30
    sound = np.clip(np.round(tone + noise), -32768, 32767).astype(np.int16)
    sound[: len(sound) // 10] = 0
    return sound


def cases(recording, chirp):
    """(name, sound, rate, spec, features); the features are of the precision in which the library
    computes.
    """
    one = {"normalize": "none"}
    for output, features, pad_to in [("spectrogram", 96, 8), ("mfcc", 13, 8), ("log-mel", 64, 1)]:
        spec = {"kind": "python-speech-features", "output": output, "features": features, "pad_frames_to": pad_to, **one}
        yield f"psf.{output}", "recording", RATE, spec, python_speech_features(recording, RATE, output, features, pad_to)
    spec = {"kind": "python-speech-features", "output": "spectrogram", "features": 40, "pad_frames_to": 4, **one}
    yield "psf.chirp", "chirp", 8000, spec, python_speech_features(chirp, 8000, "spectrogram", 40, 4)

    for precision in (np.float32, np.float64):
        bits = np.dtype(precision).itemsize * 8
        for output, features in [("spectrogram", 64), ("log-mel", 64), ("mfcc", 13)]:
            if bits == 64 and output == "mfcc":
                continue
            spec = {"kind": "librosa", "output": output, "features": features, **one}
            yield f"librosa.{output}.fp{bits}", "recording", RATE, spec, through_librosa(recording, RATE, output, features, precision=precision)
    # In FP32 librosa's own noise on the loud chirp is 1.3e-4 of a frame's largest value.
    mel = {"htk": True, "norm": None, "fmin": 60.0, "fmax": 3500.0}
    spec = {"kind": "librosa", "output": "log-mel", "features": 40, "window": "hann-periodic", "padding": "zeros", "window_ms": 25.0, **one}
    spec["mel"] = {"scale": "htk", "area_normalized": False, "low_hz": 60.0, "high_hz": 3500.0}
    options = {"window": "hann", "pad_mode": "constant", "mel": mel, "length": 0.025, "precision": np.float64}
    made = through_librosa(chirp, 8000, "log-mel", 40, **options)
    yield "librosa.chirp", "chirp", 8000, spec, made

    # In FP32 the noise of the loud chirp's own transform is 1.8e-4 of a frame's largest value.
    for rate, sound, signal, bins, precision in [(8000, "chirp", chirp, 23, np.float64), (RATE, "recording", recording, 80, np.float32)]:
        for snip in (False, True):
            spec = {"kind": "kaldi", "features": bins, "snip_edges": snip}
            yield f"lhotse.{sound}.{'snip' if snip else 'whole'}", sound, rate, spec, through_lhotse(signal, rate, bins, precision, snip_edges=snip)
    for snip in (False, True):
        spec = {"kind": "kaldi", "features": 40, "snip_edges": snip, "scale": "int16", "high_hz": 0.0, "window": "hamming"}
        made = through_kaldi(recording, RATE, 40, window="hamming", snip_edges=snip)
        yield f"kaldi.{'snip' if snip else 'whole'}", "recording", RATE, spec, made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--recording", required=True)
    parser.add_argument("--old-python", required=True)
    options = parser.parse_args()
    recording, rate = soundfile.read(options.recording, dtype="int16")
    assert rate == RATE and recording.ndim == 1
    recording = recording[int(START * RATE) : int((START + SECONDS) * RATE)]
    chirp = generated(8000)
    soundfile.write(FIXTURES / "speech.flac", recording, RATE, subtype="PCM_16")
    tensors = {"recording": recording, "chirp": chirp}
    described = {"features": [], "resampled": []}
    for name, sound, rate, spec, made in cases(recording, chirp):
        tensors[name] = np.ascontiguousarray(made, dtype=np.float32)
        described["features"].append({"name": name, "sound": sound, "rate": rate, "bits": 8 * made.dtype.itemsize, "spec": spec})

    short = recording[2000:3000].astype(np.float32) / 32768
    for new_rate in (14400, 15217, 16000, 16800, 17600):
        for version in ("resampy-0.2", "resampy-0.4"):
            name = f"{version}.{new_rate}"
            if version == "resampy-0.2":
                tensors[name] = old_kaiser_best(options.old_python, short, RATE, new_rate)
            else:
                tensors[name] = resampy.resample(short, RATE, new_rate, filter="kaiser_best")
            described["resampled"].append({"name": name, "by": version, "from": RATE, "to": new_rate})
    for factor in (0.9, 1.1, 0.95):
        name = f"lhotse.speed.{factor}"
        tensors[name] = Speed(factor)(short[None], RATE)[0]
        described["resampled"].append({"name": name, "by": "lhotse", "from": round(RATE * factor), "to": RATE})
    described["short"] = [2000, 3000]

    for bits in ("spectrogram", "log-mel"):
        low, high = tensors[f"librosa.{bits}.fp32"], tensors[f"librosa.{bits}.fp64"]
        worst = np.max(np.abs(low - high) / np.max(np.abs(high), axis=1, keepdims=True))
        print(f"librosa {bits}: its FP32 and FP64 differ by {worst:.1e} of a frame's largest value")
    safetensors.numpy.save_file(tensors, OUT, metadata={"zoo": json.dumps(described)})
    print(f"{OUT.name}: {OUT.stat().st_size} bytes, {len(tensors)} tensors")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
