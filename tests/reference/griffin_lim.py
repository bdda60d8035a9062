"""Spectra, magnitudes and mels turned back, and silence trimmed, as librosa does; silence also as
DALI's nonsilent_region does, by its text.

    pip install numpy librosa soundfile safetensors torch
    python griffin_lim.py --clips LJSpeech-1.1/wavs

Writes tests/fixtures/griffin_lim.safetensors with librosa 0.11.0; `zoo` in the metadata lists the
cases. The sound is tests/fixtures/speech.flac, its samples taken as if there were 22,050 a second.
librosa computes in FP64 here; how far its own FP32 is from that stands beside each waveform. Of the
clips (LJSpeech 1.1) only numbers are kept: how near the spectra came, and where silence ends.
"""

import argparse
from pathlib import Path

import librosa
import numpy as np
import soundfile

from fixture import FOLDER, save

RATE, FLOOR = 22050, 1e-5
# Of Tacotron 2, and of OpenSeq2Seq's Tacotron where its features are htk's.
MELS = {
    "slaney": ({"scale": "slaney", "area_normalized": True, "low_hz": 0.0, "high_hz": 8000.0}, {"fmax": 8000.0}),
    "htk": ({"scale": "htk", "area_normalized": False, "low_hz": 0.0, "high_hz": 11025.0}, {"htk": True, "norm": None}),
}
WINDOWS = {"hann-periodic": "hann", "hamming-periodic": "hamming", "rectangular": "boxcar"}


def inverse_transforms(tensors):
    """Spectra of noise: nothing that an STFT could have made."""
    draw = np.random.default_rng(1984)
    cases = []
    for name, n_fft, hop, window, window_length, centred, frames, length in [
        ("plain", 64, 16, "hann-periodic", 64, True, 12, None),
        ("shorter", 64, 16, "hann-periodic", 64, True, 12, 150),
        ("longer", 64, 16, "hamming-periodic", 64, True, 12, 230),
        ("short-window", 64, 12, "hamming-periodic", 40, True, 9, None),
        ("odd", 45, 9, "hann-periodic", 45, True, 7, 50),
        ("from-the-first", 64, 16, "hamming-periodic", 64, False, 5, None),
        ("gaps", 32, 32, "rectangular", 20, True, 6, None),
    ]:
        spectra = draw.standard_normal((2, n_fft // 2 + 1, frames)).astype(np.float32).astype(np.float64)
        made = librosa.istft(
            spectra[0] + 1j * spectra[1], hop_length=hop, win_length=window_length, n_fft=n_fft, window=WINDOWS[window], center=centred, length=length
        )
        tensors[f"istft.{name}.spectra"] = np.ascontiguousarray(spectra.T)
        tensors[f"istft.{name}.samples"] = made
        cases.append(
            {"name": name, "n_fft": n_fft, "hop": hop, "window": window, "window_length": window_length, "centred": centred, "length": length}
        )
    return cases


def phases(sound, tensors):
    n_fft, hop = 512, 128
    piece = sound[2000:5000]
    cases = []
    for padding, pad_mode in [("zeros", "constant"), ("reflect", "reflect")]:
        magnitudes = np.abs(librosa.stft(piece, n_fft=n_fft, hop_length=hop, pad_mode=pad_mode))
        tensors[f"phases.{padding}.magnitudes"] = np.ascontiguousarray(magnitudes.T)
        for momentum in (0, 0.99):
            for iterations in (1, 8, 32):
                if padding == "reflect" and iterations != 8:
                    continue
                wide, narrow = (
                    librosa.griffinlim(
                        magnitudes.astype(precision),
                        n_iter=iterations,
                        hop_length=hop,
                        n_fft=n_fft,
                        momentum=momentum,
                        init=None,
                        pad_mode=pad_mode,
                        length=len(piece),
                        dtype=precision,
                    )
                    for precision in (np.float64, np.float32)
                )
                name = f"phases.{padding}.{momentum}.{iterations}"
                tensors[name] = wide
                own = float(np.max(np.abs(wide - narrow)) / np.max(np.abs(wide)))
                cases.append(
                    {"name": name, "padding": padding, "n_fft": n_fft, "hop": hop, "momentum": momentum, "iterations": iterations, "own": own}
                )
                print(cases[-1])
    return cases


def filters_of(options):
    return librosa.filters.mel(sr=RATE, n_fft=1024, n_mels=80, dtype=np.float64, **options)


def features(sound, tensors):
    """Magnitudes and log mels of both Tacotrons, of mirrored samples."""
    magnitudes = np.abs(librosa.stft(sound.astype(np.float64), n_fft=1024, hop_length=256, pad_mode="reflect"))
    tensors["features.magnitudes"] = np.ascontiguousarray(magnitudes.T[[0, 12, 37]])
    for name, (_, options) in MELS.items():
        filters = filters_of(options)
        places = np.flatnonzero(filters)
        tensors[f"filters.{name}.places"], tensors[f"filters.{name}.weights"] = places, filters.reshape(-1)[places]
        tensors[f"features.{name}"] = np.log(np.maximum(filters @ magnitudes, FLOOR)).T.copy()
    return {"frames": [0, 12, 37], "floor": FLOOR}


def residual(filters, magnitudes, mels):
    return float(np.linalg.norm(filters @ magnitudes - mels) / np.linalg.norm(mels))


def mel_inverses(sound, tensors):
    """Of mels that a spectrum has, and of such as a model writes: no spectrum has them."""
    magnitudes = np.abs(librosa.stft(sound, n_fft=1024, hop_length=256))[:, 8:24]
    noise = np.exp(0.3 * np.random.default_rng(2018).standard_normal((80, magnitudes.shape[1])))
    cases = []
    for name, (spec, options) in MELS.items():
        filters = filters_of(options)
        for power in (1, 2):
            for kind, factors in (("true", 1), ("noisy", noise)):
                mels = ((filters @ magnitudes**power) * factors).astype(np.float32).astype(np.float64)
                made = librosa.feature.inverse.mel_to_stft(mels, sr=RATE, n_fft=1024, power=power, **options)
                key = f"mels.{name}.{power}.{kind}"
                tensors[key] = np.ascontiguousarray(mels.T)
                # OpenSeq2Seq's inverse_mel; a few frames are enough.
                tensors[f"{key}.transposed"] = np.dot(mels.T[:3], filters) ** (1 / power)
                least = residual(filters, made**power, mels)
                cases.append({"name": key, "filters": name, "power": power, "residual": least})
                print(cases[-1])
    return cases


TRIMS = [(2048, 512, 60), (512, 128, 60), (512, 128, 30), (512, 128, 20), (300, 77, 12), (301, 50, 6), (64, 64, 1)]


def trims(sound):
    return [
        {"frame_length": length, "hop": hop, "top_db": top_db, "interval": trimmed(sound, length, hop, top_db)} for length, hop, top_db in TRIMS
    ]


def trimmed(sound, length, hop, top_db):
    return [int(at) for at in librosa.effects.trim(sound, frame_length=length, hop_length=hop, top_db=top_db)[1]]


NONSILENT = [(2048, 60), (2048, 3), (2048, 1), (512, 6), (512, 3), (301, 8), (64, 1), (1, 6)]


def nonsilent(sound, window, below_db):
    before = np.concatenate([np.zeros(window - 1), sound.astype(np.float64)])
    power = np.lib.stride_tricks.sliding_window_view(before**2, window).mean(axis=1)
    loud = np.flatnonzero(power >= power.max() / 10 ** (below_db / 10))
    return [max(int(loud[0]) - window + 1, 0), int(loud[-1]) + 1]


def clips(folder):
    """How near 32 iterations come: the distance of the magnitudes over their length. Random phases:
    the mean of three seeds.
    """
    cases = []
    for path in sorted(folder.glob("*.wav"))[:4]:
        sound, rate = soundfile.read(path, dtype="float32")
        assert rate == RATE
        shape = {"n_fft": 1024, "hop_length": 256}
        magnitudes = np.abs(librosa.stft(sound, **shape))

        def reached(momentum, init, seed):
            made = librosa.griffinlim(magnitudes, n_iter=32, momentum=momentum, init=init, random_state=seed, length=len(sound), **shape)
            return np.linalg.norm(np.abs(librosa.stft(made, **shape)) - magnitudes) / np.linalg.norm(magnitudes)

        near = [
            {
                "momentum": momentum,
                "zero": float(reached(momentum, None, 0)),
                "random": float(np.mean([reached(momentum, "random", seed) for seed in range(3)])),
            }
            for momentum in (0, 0.99)
        ]
        silence = [{"top_db": top_db, "interval": trimmed(sound, 512, 128, top_db)} for top_db in (60, 40, 25)]
        mels = {}
        for name, (_, options) in MELS.items():
            filters = filters_of(options)
            energies = filters @ magnitudes.astype(np.float64)
            mels[name] = residual(filters, librosa.feature.inverse.mel_to_stft(energies, sr=RATE, n_fft=1024, power=1, **options), energies)
        cases.append({"name": path.name, "reached": near, "trims": silence, "mel_residuals": mels})
        print(cases[-1])
    return cases


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clips", type=Path, required=True)
    options = parser.parse_args()
    sound, _ = soundfile.read(FOLDER / "speech.flac", dtype="float32")
    tensors = {}
    description = {
        "librosa": librosa.__version__,
        "rate": RATE,
        "mels": {name: spec for name, (spec, _) in MELS.items()},
        "istft": inverse_transforms(tensors),
        "phases": phases(sound, tensors),
        "features": features(sound, tensors),
        "inverses": mel_inverses(sound, tensors),
        "trims": trims(sound),
        "nonsilent": [
            {"window": window, "below_db": below_db, "interval": nonsilent(sound, window, below_db)} for window, below_db in NONSILENT
        ],
        "clips": clips(options.clips),
    }
    save("griffin_lim", tensors, description)


if __name__ == "__main__":
    main()
