//! The same valid and hostile contents in every archive format.

use std::fs;
use std::io::{Cursor, Write};
use std::path::PathBuf;

use flate2::Compression;
use proptest::prelude::*;
use tar::{EntryType, Header};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;
use zoo_datasets::fetch::{
    Packing, Silent, UnpackError, UnpackLimits, Unpacked, content_digest, sha256_of, unpack,
};

const ALL: [Packing; 5] = [Packing::Tar, Packing::TarGz, Packing::TarBz2, Packing::TarXz, Packing::Zip];
/// The compressed formats.
const PACKED: [Packing; 4] = [Packing::TarGz, Packing::TarBz2, Packing::TarXz, Packing::Zip];

fn tar_of(files: &[(&[u8], EntryType, &[u8])]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, kind, data) in files {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(data.len() as u64);
        header.set_cksum();
        tar.extend_from_slice(header.as_bytes());
        tar.extend_from_slice(data);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.extend_from_slice(&[0; 1024]);
    tar
}

fn compressed(packing: Packing, bytes: &[u8]) -> Vec<u8> {
    match packing {
        Packing::Tar => bytes.to_vec(),
        Packing::TarGz => {
            let mut to = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
            to.write_all(bytes).unwrap();
            to.finish().unwrap()
        }
        Packing::TarBz2 => {
            let mut to = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            to.write_all(bytes).unwrap();
            to.finish().unwrap()
        }
        Packing::TarXz => {
            let options = lzma_rust2::XzOptions::with_preset(1);
            let mut to = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
            to.write_all(bytes).unwrap();
            to.finish().unwrap()
        }
        Packing::Zip => unreachable!("zip compresses each entry"),
    }
}

fn packed_as(packing: Packing, files: &[(&[u8], EntryType, &[u8])]) -> Vec<u8> {
    if packing != Packing::Zip {
        return compressed(packing, &tar_of(files));
    }
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, kind, data) in files {
        // The zip writer takes only text, so bytes that are not UTF-8 become U+FFFD.
        let name = String::from_utf8_lossy(name).into_owned();
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        match kind {
            EntryType::Symlink => zip.add_symlink(name, "/etc", options).unwrap(),
            EntryType::Directory => zip.add_directory(name, options).unwrap(),
            _ => {
                zip.start_file(name, options.unix_permissions(0o644)).unwrap();
                zip.write_all(data).unwrap();
            }
        }
    }
    zip.finish().unwrap().into_inner()
}

fn packed(packing: Packing, files: &[(&[u8], &[u8])]) -> Vec<u8> {
    let files: Vec<_> = files.iter().map(|(name, data)| (*name, EntryType::Regular, *data)).collect();
    packed_as(packing, &files)
}

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn archive(&self, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join("archive");
        fs::write(&path, bytes).unwrap();
        path
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out").join("files")
    }

    fn unpack(&self, packing: Packing, bytes: &[u8], limits: UnpackLimits) -> Result<Unpacked, UnpackError> {
        unpack(&self.archive(bytes), packing, &self.out(), None, limits, &Silent)
    }

    /// Checks that there is nothing besides the archive.
    fn untouched(&self) -> bool {
        let inside = fs::read_dir(self.dir.path().join("out")).map_or(0, Iterator::count);
        fs::read_dir(self.dir.path()).unwrap().count() <= 2 && inside == 0
    }
}

fn refusal(packing: Packing, bytes: &[u8]) -> String {
    let place = Place::new();
    let error = place.unpack(packing, bytes, UnpackLimits::default()).unwrap_err().to_string();
    assert!(place.untouched(), "{packing}: {error}");
    assert!(error.contains("archive: ") && error.contains("hint:"), "{packing}: {error}");
    error
}

#[test]
fn files_come_out_of_every_format_with_the_same_digests() {
    let text = "a line of text that is long enough to be packed\n".repeat(2000);
    for packing in ALL {
        let place = Place::new();
        let bytes = packed_as(
            packing,
            &[
                (b"top/", EntryType::Directory, b""),
                (b"top/b.txt", EntryType::Regular, text.as_bytes()),
                (b"top/a.txt", EntryType::Regular, b""),
            ],
        );
        assert_eq!(bytes.len() < text.len() / 4, PACKED.contains(&packing), "{packing} packs");
        let unpacked = place.unpack(packing, &bytes, UnpackLimits::default()).unwrap();
        assert_eq!(fs::read(place.out().join("top/b.txt")).unwrap(), text.as_bytes());
        assert_eq!(fs::read(place.out().join("top/a.txt")).unwrap(), b"");
        assert_eq!(unpacked.members.len(), 2);
        assert_eq!(unpacked.members[0].sha256, sha256_of(text.as_bytes()), "{packing}");
        let due = sha256_of(
            format!("{}  top/a.txt\n{}  top/b.txt\n", sha256_of(b""), sha256_of(text.as_bytes())).as_bytes(),
        );
        assert_eq!(content_digest(&place.archive(&bytes)).unwrap(), due, "{packing}");
        assert_eq!(content_digest(&place.out()).unwrap(), due);
    }
}

#[test]
fn a_single_compressed_file_has_the_digest_of_its_text() {
    for packing in [Packing::TarGz, Packing::TarBz2, Packing::TarXz] {
        let place = Place::new();
        let bytes = compressed(packing, b"text");
        assert_eq!(content_digest(&place.archive(&bytes)).unwrap(), sha256_of(b"text"), "{packing}");
    }
}

#[test]
fn hostile_entries_are_refused_in_every_format() {
    let cases: [(&[u8], EntryType, &str); 8] = [
        (b"/etc/passwd", EntryType::Regular, "absolute"),
        (b"../up", EntryType::Regular, "leaves its folder"),
        (b"a/../../up", EntryType::Regular, "leaves its folder"),
        (b"..\\up", EntryType::Regular, "backslash"),
        (b"./.", EntryType::Regular, "no name"),
        (b"link", EntryType::Symlink, "a link"),
        (b"good", EntryType::Regular, "twice"),
        (b"./good", EntryType::Regular, "twice"),
    ];
    for packing in ALL {
        for (name, kind, why) in cases {
            // The zip writer itself refuses a duplicate name.
            if packing == Packing::Zip && name == b"good" {
                continue;
            }
            let bytes = packed_as(packing, &[(b"good", EntryType::Regular, b"good"), (name, kind, b"bad")]);
            let error = refusal(packing, &bytes);
            assert!(error.contains(why), "{packing}: {error}");
        }
    }
}

#[test]
fn a_zip_that_names_an_entry_twice_or_lies_about_its_entries_is_refused() {
    let honest = packed(Packing::Zip, &[(b"aaaa", b"1"), (b"bbbb", b"2")]);
    let place = Place::new();
    place.unpack(Packing::Zip, &honest, UnpackLimits::default()).unwrap();
    let at = |needle: &[u8]| -> Vec<usize> {
        (0..honest.len() - needle.len()).filter(|&i| &honest[i..i + needle.len()] == needle).collect()
    };
    let places = at(b"bbbb");
    assert_eq!(places.len(), 2, "in its own header and in the directory");
    let renamed = |places: &[usize]| {
        let mut bytes = honest.clone();
        for &place in places {
            bytes[place..place + 4].copy_from_slice(b"aaaa");
        }
        bytes
    };
    assert!(refusal(Packing::Zip, &renamed(&places)).contains("twice"));
    assert!(refusal(Packing::Zip, &renamed(&places[..1])).contains("inconsistency"));
    // Write a wrong checksum in both places.
    let mut bytes = honest.clone();
    let crc = crc32(b"2").to_le_bytes();
    for place in at(&crc) {
        bytes[place] ^= 1;
    }
    refusal(Packing::Zip, &bytes);
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[test]
fn bombs_are_refused_in_every_format() {
    let zeros = vec![0; 18 << 20];
    for packing in PACKED {
        let bomb = packed(packing, &[(b"zeros", &zeros)]);
        assert!(refusal(packing, &bomb).contains("more than 100 times"), "{packing}");
        let place = Place::new();
        let limits = UnpackLimits { bytes: 1 << 20, ..UnpackLimits::default() };
        let error = place.unpack(packing, &bomb, limits).unwrap_err().to_string();
        assert!(error.contains("more than 1048576 bytes") && place.untouched(), "{packing}: {error}");
        let names: Vec<String> = (0..20).map(|i| format!("f{i}")).collect();
        let files: Vec<(&[u8], &[u8])> = names.iter().map(|n| (n.as_bytes(), &b""[..])).collect();
        let limits = UnpackLimits { entries: 10, ..UnpackLimits::default() };
        let error = place.unpack(packing, &packed(packing, &files), limits).unwrap_err().to_string();
        assert!(error.contains("more than 10 entries") && place.untouched(), "{packing}: {error}");
    }
}

#[test]
fn many_entries_count_together_against_the_limit() {
    let zeros = vec![0; 1 << 19];
    let names: Vec<String> = (0..40).map(|i| format!("f{i}")).collect();
    let files: Vec<(&[u8], &[u8])> = names.iter().map(|n| (n.as_bytes(), &zeros[..])).collect();
    for packing in PACKED {
        assert!(refusal(packing, &packed(packing, &files)).contains("more than 100 times"), "{packing}");
    }
}

#[test]
fn an_archive_of_another_type_is_refused_by_its_first_bytes() {
    for packing in ALL {
        for other in ALL.into_iter().filter(|other| *other != packing) {
            let error = refusal(packing, &packed(other, &[(b"a", b"1")]));
            assert!(error.contains(&format!("it is no {packing}: it begins with ")), "{error}");
        }
        assert!(refusal(packing, b"").contains("it is empty"));
        assert!(refusal(packing, b"<html>404</html>").contains("begins with 3c68746d6c3e3430"));
    }
}

#[test]
fn every_truncation_is_refused_in_every_format() {
    for packing in ALL {
        let data: Vec<u8> = (0..300_u32).map(|i| ((i * i) >> 3) as u8).collect();
        let whole = packed(packing, &[(b"a", &data), (b"b", b"some text")]);
        Place::new().unpack(packing, &whole, UnpackLimits::default()).unwrap();
        for end in 0..whole.len() {
            refusal(packing, &whole[..end]);
        }
    }
}

#[test]
fn an_xz_stream_that_asks_for_gigabytes_is_refused() {
    let options = {
        let mut options = lzma_rust2::XzOptions::with_preset(1);
        options.lzma_options.dict_size = 512 << 20;
        options
    };
    let mut to = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    to.write_all(&tar_of(&[(b"a", EntryType::Regular, b"1")])).unwrap();
    let error = refusal(Packing::TarXz, &to.finish().unwrap());
    assert!(error.contains("memory"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_flipped_bit_is_refused_or_changes_nothing(at in 0.0..1.0_f64, bit in 0..8_u32, which in 1_usize..4) {
        let data: Vec<u8> = (0..2000_u32).map(|i| ((i * i) >> 3) as u8).collect();
        let mut bytes = packed(PACKED[which], &[(b"a", &data)]);
        let index = (at * bytes.len() as f64) as usize;
        bytes[index] ^= 1 << bit;
        let place = Place::new();
        match place.unpack(PACKED[which], &bytes, UnpackLimits::default()) {
            Err(_) => prop_assert!(place.untouched()),
            // A changed time or attribute does not matter.
            Ok(_) => prop_assert_eq!(fs::read(place.out().join("a")).unwrap(), data),
        }
    }
}
