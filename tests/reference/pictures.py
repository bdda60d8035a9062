"""Pictures by Pillow and torchvision -> tests/fixtures/pictures.safetensors.

pip install torch torchvision "pillow<13" safetensors (written with torch 2.15.0, torchvision
0.29.2, Pillow 12.3.0 with libjpeg-turbo). From Pillow 13.0 on, a picture whose height shrinks much
more than its width is resized in the other order, and some numbers differ. Published results are of
earlier versions.

`encoded/NAME` is a file's bytes, `decoded/NAME` what Pillow reads in it, [height, width, channels]:
grey as `L`, else `RGB`. `source` and `tall` are pictures, `grey` is `source` by `convert("L")`.
`resized/FILTER/HEIGHTxWIDTH`, `shorter/SIDE` (of `source`), `shorter_tall/SIDE`,
`center/HEIGHTxWIDTH` and `flipped` are derived from them. `random_crop/windows` [n, 4] holds top,
left (both of the unpadded picture), height and width for picture n at step n % 3;
`resized_crop/SIZES/windows` the same; `resized_crop/pictures` [n, 24, 20, 3] are crops of `source`,
resized and flipped. `numbers/NAME` [3, height, width] are FP32 values of `decoded/rgb.png`.

torchvision's transforms run as they are, but draw from Philox4x32-10 as `datasets/src/random.rs`
does, in FP64.
"""

import io
from unittest import mock

import numpy as np
import torch
from PIL import Image
from safetensors.numpy import save_file
from torchvision import transforms
from torchvision.transforms import InterpolationMode

SEED, CROP, FLIP = 7, 11, 12
M32 = 0xFFFFFFFF


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & M32, (a >> 32) ^ c[3] ^ k[1], a & M32]
        k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
    return c


class Stream:
    """The numbers of one (seed, purpose, step, element)."""

    def __init__(self, purpose, step, element):
        self.stream = (purpose << 56) | (step << 32) | element
        self.block, self.words = 0, []

    def word(self):
        if not self.words:
            counter = [self.block & M32, self.block >> 32, self.stream & M32, self.stream >> 32]
            self.words = philox(counter, [SEED & M32, SEED >> 32])
            self.block += 1
        return self.words.pop(0)

    def unit(self):
        return self.word() / 2**32

    def below(self, bound):
        while True:
            product = self.word() * bound
            if product & M32 >= (2**32 - bound) % bound:
                return product >> 32


class Drawn:
    """Stands for `torch.empty(1)` until it is filled."""

    def __init__(self, stream):
        self.stream = stream

    def uniform_(self, low, high):
        return torch.tensor([float(low) + (float(high) - float(low)) * self.stream.unit()])


def with_draws(crop, flip=None):
    """Patches for torchvision's draws: crops from one stream, flips from another."""
    torch.set_default_dtype(torch.float64)
    return mock.patch.multiple(
        torch,
        empty=lambda *_: Drawn(crop),
        randint=lambda low, high, size: torch.tensor([low + crop.below(high - low)]),
        rand=lambda *_: torch.tensor([flip.unit()]),
    )


def scene(height, width, seed):
    y, x = np.mgrid[0:height, 0:width]
    red = 127 + 90 * np.sin(x / 7) + 30 * np.cos(y / 5)
    green = 255 * ((x - width / 2) ** 2 + (y - height / 2) ** 2 < (height / 3) ** 2)
    noise = np.random.default_rng(seed).normal(0, 12, (height, width, 3))
    pixels = np.stack([red, green, 255 * x / width], -1) + noise
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def bytes_of(picture, name, **options):
    file = io.BytesIO()
    picture.save(file, name, **options)
    return file.getvalue()


def array(picture):
    pixels = np.asarray(picture)
    return np.ascontiguousarray(pixels if pixels.ndim == 3 else pixels[..., None])


tensors = {}
source, tall = scene(37, 51, 1), scene(53, 29, 2)
tensors |= {"source": array(source), "tall": array(tall), "grey": array(source.convert("L"))}

# Files.
alpha = Image.fromarray((np.arange(13 * 17) % 256).astype(np.uint8).reshape(13, 17))
small = scene(13, 17, 3)
with_alpha = small.copy()
with_alpha.putalpha(alpha)
palette = small.quantize(7)
files = {
    "grey.png": bytes_of(small.convert("L"), "PNG"),
    "bits.png": bytes_of(small.convert("1"), "PNG"),
    "grey_alpha.png": bytes_of(with_alpha.convert("LA"), "PNG"),
    "palette.png": bytes_of(palette, "PNG"),
    "palette_clear.png": bytes_of(palette, "PNG", transparency=3),
    "rgb.png": bytes_of(small, "PNG"),
    "rgb_clear.png": bytes_of(small, "PNG", transparency=(1, 2, 3)),
    "rgba.png": bytes_of(with_alpha, "PNG"),
    "grey.jpg": bytes_of(source.convert("L"), "JPEG", quality=80),
    "rgb.jpg": bytes_of(source, "JPEG", quality=80, keep_rgb=True),
}
for name, subsampling in [("444", 0), ("422", 1), ("420", 2)]:
    for quality in [75, 95]:
        files[f"{name}_{quality}.jpg"] = bytes_of(source, "JPEG", quality=quality, subsampling=subsampling)
files["progressive.jpg"] = bytes_of(source, "JPEG", quality=75, subsampling=2, progressive=True)
for name, content in files.items():
    tensors[f"encoded/{name}"] = np.frombuffer(content, np.uint8)
    picture = Image.open(io.BytesIO(content))
    grey = picture.mode in ("1", "L", "LA")
    tensors[f"decoded/{name}"] = array(picture.convert("L" if grey else "RGB"))
# Not read: 16 bits a channel, CMYK.
tensors["refused/sixteen.png"] = np.frombuffer(
    bytes_of(Image.fromarray(np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000), "PNG"), np.uint8)
tensors["refused/cmyk.jpg"] = np.frombuffer(bytes_of(small.convert("CMYK"), "JPEG"), np.uint8)

# Geometry.
filters = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
for name, resampling in filters.items():
    for height, width in [(37, 20), (12, 51), (12, 20), (1, 1), (50, 70), (60, 9), (5, 80), (37, 51)]:
        resized = source.resize((width, height), resampling)
        tensors[f"resized/{name}/{height}x{width}"] = array(resized)
    tensors[f"resized_grey/{name}/20x30"] = array(source.convert("L").resize((30, 20), resampling))
for side in [16, 24, 37, 40]:
    tensors[f"shorter/{side}"] = array(transforms.Resize(side)(source))
    tensors[f"shorter_tall/{side}"] = array(transforms.Resize(side)(tall))
for height, width in [(8, 8), (9, 12), (10, 13), (36, 50), (37, 51), (40, 40), (12, 60), (44, 7), (44, 62)]:
    tensors[f"center/{height}x{width}"] = array(transforms.CenterCrop((height, width))(source))
tensors["flipped"] = array(transforms.functional.hflip(source))

# Draws.
windows, crops = [], []
for n in range(40):
    transform = transforms.RandomCrop((30, 40), padding=4)
    with with_draws(Stream(CROP, n % 3, n)):
        top, left, height, width = transform.get_params(transforms.functional.pad(source, [4]), (30, 40))
    windows.append([top - 4, left - 4, height, width])
    if n < 4:
        with with_draws(Stream(CROP, n % 3, n)):
            crops.append(array(transform(source)))
tensors["random_crop/windows"] = np.array(windows, np.int32)
tensors["random_crop/pictures"] = np.stack(crops)

for name, (height, width), scale, ratio in [
    ("usual", (37, 51), (0.08, 1.0), (3 / 4, 4 / 3)),
    ("photograph", (375, 500), (0.08, 1.0), (3 / 4, 4 / 3)),
    ("large", (375, 500), (0.9, 1.0), (3 / 4, 4 / 3)),
    ("flat", (10, 400), (0.5, 1.0), (3 / 4, 4 / 3)),
    ("high", (401, 11), (0.5, 1.0), (3 / 4, 4 / 3)),
    ("never", (37, 51), (1.5, 2.0), (1.0, 2.0)),
]:
    picture, windows = Image.new("L", (width, height)), []
    for n in range(60):
        with with_draws(Stream(CROP, n % 3, n)):
            windows.append(transforms.RandomResizedCrop.get_params(picture, list(scale), list(ratio)))
    tensors[f"resized_crop/{name}/windows"] = np.array(windows, np.int32)

varied = transforms.Compose([transforms.RandomResizedCrop((24, 20)), transforms.RandomHorizontalFlip()])
pictures = []
for n in range(8):
    with with_draws(Stream(CROP, n % 3, n), Stream(FLIP, n % 3, n)):
        pictures.append(array(varied(source)))
tensors["resized_crop/pictures"] = np.stack(pictures)

# Numbers.
torch.set_default_dtype(torch.float32)
unit = transforms.ToTensor()(small)
tensors["numbers/unit"] = unit.numpy()
tensors["numbers/imagenet"] = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))(unit).numpy()
tensors["numbers/halves"] = transforms.Normalize((0.5,), (0.5,))(unit).numpy()
# Caffe multiplies bytes by 0.00390625, OpenSeq2Seq subtracts means of bytes and divides by 127.5.
pixels = array(small).transpose(2, 0, 1).astype(np.float32)
tensors["numbers/caffe"] = pixels * np.float32(0.00390625)
means = np.array([123.68, 116.78, 103.94], np.float32)[:, None, None]
tensors["numbers/openseq2seq"] = (pixels - means) / np.float32(127.5)

save_file({name: np.ascontiguousarray(value) for name, value in tensors.items()}, "../fixtures/pictures.safetensors")
