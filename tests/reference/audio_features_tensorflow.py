"""Cepstra as TensorFlow's own ops compute them, called as Mozilla's DeepSpeech does
(`util/feeding.py`).

    pip install numpy safetensors tensorflow-cpu
    python audio_features_tensorflow.py

Reads the sounds of tests/fixtures/audio_features.safetensors; writes
audio_features_tensorflow.safetensors beside it, in its layout. The committed file was written with
tensorflow-cpu 2.21.0.
"""

import json
from pathlib import Path

import numpy as np
import safetensors.numpy
import tensorflow as tf

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
OUT = FIXTURES / "audio_features_tensorflow.safetensors"


def through_tensorflow(signal, rate, features, window_ms=32.0, hop_ms=20.0, filters=40, low_hz=20.0, high_hz=4000.0):
    samples = signal.astype(np.float32)[:, None] / 32768
    spectrogram = tf.raw_ops.AudioSpectrogram(
        input=samples, window_size=int(rate * window_ms / 1000), stride=int(rate * hop_ms / 1000), magnitude_squared=True
    )
    made = tf.raw_ops.Mfcc(
        spectrogram=spectrogram,
        sample_rate=rate,
        dct_coefficient_count=features,
        filterbank_channel_count=filters,
        lower_frequency_limit=low_hz,
        upper_frequency_limit=high_hz,
    )
    return made.numpy()[0]


# Mozilla's, windows that are no power of two, every cepstrum; filters that end below half the rate,
# of silence as well.
CASES = [
    ("tensorflow.mozilla", "recording", 16000, {"features": 26}),
    ("tensorflow.25ms", "recording", 16000, {"features": 40, "window_ms": 25.0, "hop_ms": 10.0, "high_hz": 8000.0}),
    ("tensorflow.chirp", "chirp", 8000, {"features": 13, "filters": 20, "low_hz": 60.0, "high_hz": 3500.0}),
]


def main():
    sounds = safetensors.numpy.load_file(FIXTURES / "audio_features.safetensors")
    tensors, described = {}, {"features": []}
    for name, sound, rate, options in CASES:
        made = through_tensorflow(sounds[sound], rate, **options)
        tensors[name] = np.ascontiguousarray(made)
        spec = {"kind": "tensorflow", **options}
        # One op hands the other its FP32; within them they are FP64.
        described["features"].append({"name": name, "sound": sound, "rate": rate, "bits": 64, "spec": spec})
    safetensors.numpy.save_file(tensors, OUT, metadata={"zoo": json.dumps(described)})
    print(f"{OUT.name}: {OUT.stat().st_size} bytes, {len(tensors)} tensors")


if __name__ == "__main__":
    main()
