//! Pictures compared with Pillow and torchvision (`tests/reference/pictures.py`).

use std::collections::BTreeSet;
use std::path::Path;

use safetensors::SafeTensors;
use zoo_datasets::image::{
    CenterCrop, Filter, Normalization, Picture, PictureError, PixelScale, Pixels, RandomCrop,
    RandomResizedCrop, Turn, Variation, VariedCrop, decode_bytes, resize, resize_shorter_side,
};
use zoo_datasets::random::Purpose;

const FIXTURE: &[u8] = include_bytes!("../../../tests/fixtures/pictures.safetensors");
const SEED: u64 = 7;
const RATIO: (f64, f64) = (3.0 / 4.0, 4.0 / 3.0);

fn fixture() -> SafeTensors<'static> {
    SafeTensors::deserialize(FIXTURE).unwrap()
}

/// The picture in a tensor, or several if the tensor has a further dimension in front.
fn pictures(name: &str) -> Vec<Picture> {
    let fixture = fixture();
    let tensor = fixture.tensor(name).unwrap();
    let [.., height, width, channels] = *tensor.shape() else { panic!("{name}: {:?}", tensor.shape()) };
    let pixels = tensor.data().chunks_exact(height * width * channels);
    pixels.map(|pixels| Picture::new(height, width, channels, pixels.to_vec()).unwrap()).collect()
}

fn picture(name: &str) -> Picture {
    pictures(name).remove(0)
}

/// The parts of the tensors' names after `prefix`.
fn names(prefix: &str) -> BTreeSet<String> {
    let names: BTreeSet<String> =
        fixture().names().iter().filter_map(|name| Some(name.strip_prefix(prefix)?.to_owned())).collect();
    assert!(!names.is_empty(), "{prefix}");
    names
}

fn size(name: &str) -> (usize, usize) {
    let (height, width) = name.split_once('x').unwrap();
    (height.parse().unwrap(), width.parse().unwrap())
}

fn decoded(folder: &str, name: &str) -> Result<Picture, PictureError> {
    decode_bytes(fixture().tensor(&format!("{folder}/{name}")).unwrap().data(), Path::new(name))
}

fn turn(n: usize) -> Turn {
    Turn { seed: SEED, step: n as u32 % 3, element: n as u32 }
}

/// Top, left, height and width of windows.
fn windows(name: &str) -> Vec<[i64; 4]> {
    let fixture = fixture();
    let numbers = fixture.tensor(name).unwrap().data().chunks_exact(4);
    let numbers: Vec<i64> =
        numbers.map(|bytes| i64::from(i32::from_le_bytes(bytes.try_into().unwrap()))).collect();
    numbers.chunks_exact(4).map(|window| window.try_into().unwrap()).collect()
}

#[test]
fn png_is_read_as_by_pillow() {
    for name in names("encoded/").iter().filter(|name| name.ends_with(".png")) {
        assert_eq!(decoded("encoded", name).unwrap(), picture(&format!("decoded/{name}")), "{name}");
    }
}

/// libjpeg-turbo is not matched bit for bit: its inverse transform and its colour upsampling round
/// differently.
#[test]
fn jpeg_is_read_as_by_pillow_up_to_rounding() {
    for name in names("encoded/").iter().filter(|name| name.ends_with(".jpg")) {
        let (ours, theirs) = (decoded("encoded", name).unwrap(), picture(&format!("decoded/{name}")));
        assert_eq!((ours.height(), ours.width()), (theirs.height(), theirs.width()), "{name}");
        assert_eq!(ours.channels(), theirs.channels(), "{name}");
        let differences = ours.bytes().iter().zip(theirs.bytes()).map(|(a, b)| a.abs_diff(*b));
        let (most, sum) = differences.fold((0, 0_u64), |(m, s), d| (d.max(m), s + u64::from(d)));
        let mean = sum as f64 / ours.bytes().len() as f64;
        // Measured maximum and mean: 2 and 0.023 without subsampling, 4 and 0.41 with it.
        let subsampled = ["420", "422", "progressive"].iter().any(|kind| name.starts_with(kind));
        let bounds = if subsampled { (4, 0.45) } else { (2, 0.03) };
        assert!(most <= bounds.0 && mean < bounds.1, "{name}: {most} at most, {mean} in the mean");
    }
}

#[test]
fn files_that_are_not_read_are_named_with_the_reason() {
    let message = |folder, name| decoded(folder, name).unwrap_err().to_string();
    assert!(message("refused", "sixteen.png").contains("sixteen.png: PNG of 16 bits a channel"));
    assert!(message("refused", "cmyk.jpg").contains("cmyk.jpg: JPEG of 4 components (CMYK)"));
    for name in names("encoded/") {
        let fixture = fixture();
        let bytes = fixture.tensor(&format!("encoded/{name}")).unwrap().data();
        // A PNG ends with the 12 bytes of IEND, which hold no pixels.
        let end = if name.ends_with(".png") { 13 } else { 1 };
        for cut in [end, bytes.len() / 4, bytes.len() / 2, bytes.len() - 20, bytes.len() - 3, bytes.len()] {
            let error = decode_bytes(&bytes[..bytes.len() - cut], Path::new(&name)).unwrap_err();
            let refused = matches!(
                error,
                PictureError::Truncated { .. }
                    | PictureError::Corrupt { .. }
                    | PictureError::Unsupported { .. }
            );
            assert!(refused && error.to_string().contains(&name), "{error}");
        }
    }
}

#[test]
fn a_bomb_is_refused_by_its_header() {
    // A PNG and a JPEG whose headers state 65,500 x 65,500 pixels.
    let fixture = fixture();
    let mut png = fixture.tensor("encoded/rgb.png").unwrap().data().to_vec();
    png[16..24].copy_from_slice(&[0, 0, 0xff, 0xdc, 0, 0, 0xff, 0xdc]);
    let checksum = crc32(&png[12..29]).to_be_bytes();
    png[29..33].copy_from_slice(&checksum);
    let mut jpeg = fixture.tensor("encoded/444_75.jpg").unwrap().data().to_vec();
    let frame = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xdc, 0xff, 0xdc]);
    for bytes in [png, jpeg] {
        let error = decode_bytes(&bytes, Path::new("bomb")).unwrap_err();
        assert!(matches!(error, PictureError::TooLarge { .. }), "{error}");
        assert!(error.to_string().contains("65500 x 65500 pixels, the limit is 89478485"), "{error}");
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[test]
fn damaged_files_give_an_error_or_a_picture() {
    let fixture = fixture();
    for name in names("encoded/") {
        let bytes = fixture.tensor(&format!("encoded/{name}")).unwrap().data();
        let mut stream = zoo_datasets::random::RandomStream::new(1, Purpose::Examples, 0);
        for _ in 0..300 {
            let mut damaged = bytes.to_vec();
            for _ in 0..=stream.below(4) {
                let at = stream.below(bytes.len() as u32) as usize;
                damaged[at] = stream.next_u32() as u8;
            }
            let _ = decode_bytes(&damaged, Path::new(&name));
        }
    }
}

#[test]
fn resizing_equals_pillow_bit_for_bit() {
    let source = picture("source");
    for (filter, prefix) in [(Filter::Bilinear, "bilinear"), (Filter::Bicubic, "bicubic")] {
        for name in names(&format!("resized/{prefix}/")) {
            let (height, width) = size(&name);
            let resized = resize(&source, height, width, filter).unwrap();
            assert_eq!(resized, picture(&format!("resized/{prefix}/{name}")), "{prefix} {name}");
        }
        let resized = resize(&picture("grey"), 20, 30, filter).unwrap();
        assert_eq!(resized, picture(&format!("resized_grey/{prefix}/20x30")), "{prefix}");
    }
}

#[test]
fn the_shorter_side_is_that_of_torchvision() {
    for (source, prefix) in [("source", "shorter/"), ("tall", "shorter_tall/")] {
        for side in names(prefix) {
            let resized =
                resize_shorter_side(&picture(source), side.parse().unwrap(), Filter::Bilinear).unwrap();
            assert_eq!(resized, picture(&format!("{prefix}{side}")), "{prefix}{side}");
        }
    }
}

#[test]
fn the_middle_is_that_of_torchvision() {
    for name in names("center/") {
        let (height, width) = size(&name);
        let crop = CenterCrop::new(height, width).unwrap().apply(&picture("source"));
        assert_eq!(crop, picture(&format!("center/{name}")), "{name}");
    }
    assert_eq!(picture("source").flipped(), picture("flipped"));
    assert_eq!(picture("source").to_grey(), picture("grey"));
}

#[test]
fn random_crops_are_those_of_torchvision_for_the_same_draws() {
    let source = picture("source");
    let crop = RandomCrop::new(30, 40, 4).unwrap();
    for (n, expected) in windows("random_crop/windows").into_iter().enumerate() {
        let window = crop.window(37, 51, &mut turn(n).stream(Purpose::Crop)).unwrap();
        let ((top, left), (height, width)) = (window.origin(), window.size());
        assert_eq!([top, left, height as i64, width as i64], expected, "{n}");
    }
    let variation = Variation::new(VariedCrop::Random(crop), 0.0).unwrap();
    for (n, expected) in pictures("random_crop/pictures").into_iter().enumerate() {
        assert_eq!(variation.apply(&source, turn(n)).unwrap(), expected, "{n}");
    }
}

#[test]
fn random_resized_crops_are_those_of_torchvision_for_the_same_draws() {
    for (name, (height, width), scale, ratio) in [
        ("usual", (37, 51), (0.08, 1.0), RATIO),
        ("photograph", (375, 500), (0.08, 1.0), RATIO),
        ("large", (375, 500), (0.9, 1.0), RATIO),
        ("flat", (10, 400), (0.5, 1.0), RATIO),
        ("high", (401, 11), (0.5, 1.0), RATIO),
        ("never", (37, 51), (1.5, 2.0), (1.0, 2.0)),
    ] {
        let crop = RandomResizedCrop::new(24, 20, scale, ratio, Filter::Bilinear).unwrap();
        for (n, expected) in windows(&format!("resized_crop/{name}/windows")).into_iter().enumerate() {
            let window = crop.window(height, width, &mut turn(n).stream(Purpose::Crop));
            let ((top, left), (height, width)) = (window.origin(), window.size());
            assert_eq!([top, left, height as i64, width as i64], expected, "{name} {n}");
        }
    }
    let crop = RandomResizedCrop::new(24, 20, (0.08, 1.0), RATIO, Filter::Bilinear).unwrap();
    let variation = Variation::new(VariedCrop::Resized(crop), 0.5).unwrap();
    for (n, expected) in pictures("resized_crop/pictures").into_iter().enumerate() {
        assert_eq!(variation.apply(&picture("source"), turn(n)).unwrap(), expected, "{n}");
    }
}

/// Each number takes one or two FP32 operations in the reference's order, so the results are equal
/// bit for bit.
#[test]
fn numbers_are_those_of_to_tensor_and_normalize() {
    let normalization = |mean: &[f32], deviation: &[f32]| {
        Some(Normalization { mean: mean.to_vec(), deviation: deviation.to_vec() })
    };
    for (name, scale, normalization) in [
        ("unit", PixelScale::Unit, None),
        ("caffe", PixelScale::Caffe, None),
        ("imagenet", PixelScale::Unit, normalization(&[0.485, 0.456, 0.406], &[0.229, 0.224, 0.225])),
        ("halves", PixelScale::Unit, normalization(&[0.5], &[0.5])),
        ("openseq2seq", PixelScale::Bytes, normalization(&[123.68, 116.78, 103.94], &[127.5; 3])),
    ] {
        let mut ours = Vec::new();
        let pixels = Pixels::new(scale, normalization.as_ref()).unwrap();
        pixels.append(&picture("decoded/rgb.png"), &mut ours).unwrap();
        let ours: Vec<u8> = ours.iter().flat_map(|number| number.to_le_bytes()).collect();
        assert!(ours == fixture().tensor(&format!("numbers/{name}")).unwrap().data(), "{name}");
    }
}
