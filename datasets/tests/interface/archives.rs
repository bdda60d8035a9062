//! Unpacking of valid and hostile archives.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tar::{EntryType, Header};
use zoo_datasets::fetch::{
    Packing, Silent, UnpackError, UnpackLimits, Unpacked, Wanted, content_digest, gunzip, sha256_of, unpack,
};

/// A tar entry with any name and kind, as an attacker could write it.
fn entry(tar: &mut Vec<u8>, name: &[u8], kind: EntryType, link: &[u8], data: &[u8]) {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(data.len() as u64);
    header.set_cksum();
    tar.extend_from_slice(header.as_bytes());
    tar.extend_from_slice(data);
    tar.resize(tar.len().next_multiple_of(512), 0);
}

fn tar_of(files: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, data) in files {
        entry(&mut tar, name, EntryType::Regular, b"", data);
    }
    tar.extend_from_slice(&[0; 1024]);
    tar
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn archive(&self, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join("a.tar.gz");
        fs::write(&path, bytes).unwrap();
        path
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out").join("files")
    }

    fn unpack(&self, bytes: &[u8], limits: UnpackLimits) -> Result<Unpacked, UnpackError> {
        unpack(&self.archive(bytes), Packing::TarGz, &self.out(), None, limits, &Silent)
    }

    /// Checks that there is nothing besides the archive.
    fn untouched(&self) -> bool {
        let out = self.dir.path().join("out");
        let rest = fs::read_dir(self.dir.path()).unwrap().count();
        let inside = fs::read_dir(out).map_or(0, Iterator::count);
        rest <= 2 && inside == 0
    }
}

fn refusal(bytes: &[u8]) -> String {
    let place = Place::new();
    let error = place.unpack(bytes, UnpackLimits::default()).unwrap_err().to_string();
    assert!(place.untouched(), "{error}");
    assert!(error.contains("a.tar.gz") && error.contains("hint:"), "{error}");
    error
}

#[test]
fn files_come_out_with_their_digests() {
    let mut tar = Vec::new();
    entry(&mut tar, b"pax_global_header", EntryType::XGlobalHeader, b"", b"13 comment=x\n");
    entry(&mut tar, b"./top/", EntryType::Directory, b"", b"");
    entry(&mut tar, b"./top/b.txt", EntryType::Regular, b"", b"zwei");
    entry(&mut tar, b"top/a.txt", EntryType::Regular, b"", b"");
    tar.extend_from_slice(&[0; 1024]);
    let place = Place::new();
    let unpacked = place.unpack(&gz(&tar), UnpackLimits::default()).unwrap();
    assert_eq!(fs::read(place.out().join("top/b.txt")).unwrap(), b"zwei");
    assert_eq!(fs::read(place.out().join("top/a.txt")).unwrap(), b"");
    let members: Vec<_> = unpacked.members.iter().map(|m| (m.path.as_str(), m.bytes)).collect();
    assert_eq!(members, [("top/b.txt", 4), ("top/a.txt", 0)]);
    assert_eq!(unpacked.members[0].sha256, sha256_of(b"zwei"));
    // Existing files are not overwritten.
    let again = place.unpack(&gz(&tar), UnpackLimits::default()).unwrap_err().to_string();
    assert!(again.contains("exists already"), "{again}");
}

#[test]
fn long_names_of_both_conventions_are_read() {
    let long = format!("{}/file.txt", ["folder"; 40].join("/"));
    for gnu in [true, false] {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = if gnu { Header::new_gnu() } else { Header::new_ustar() };
        header.set_size(2);
        header.set_mode(0o644);
        if gnu {
            builder.append_data(&mut header, &long, &b"ok"[..]).unwrap();
        } else {
            builder.append_pax_extensions([("path", long.as_bytes())]).unwrap();
            header.set_path("short").unwrap();
            header.set_cksum();
            builder.append(&header, &b"ok"[..]).unwrap();
        }
        let place = Place::new();
        let unpacked = place.unpack(&gz(&builder.into_inner().unwrap()), UnpackLimits::default()).unwrap();
        assert_eq!(unpacked.members[0].path, long, "gnu: {gnu}");
    }
}

#[test]
fn only_the_members_asked_for_are_written_but_all_are_judged() {
    let only = Wanted::from(BTreeSet::from(["b".to_owned()]));
    let place = Place::new();
    let archive = place.archive(&gz(&tar_of(&[(b"a", b"1"), (b"b", b"2")])));
    let unpacked =
        unpack(&archive, Packing::TarGz, &place.out(), Some(&only), UnpackLimits::default(), &Silent)
            .unwrap();
    assert_eq!(unpacked.members.len(), 1);
    assert!(!place.out().join("a").exists() && place.out().join("b").exists());

    let place = Place::new();
    let archive = place.archive(&gz(&tar_of(&[(b"b", b"2"), (b"../a", b"1")])));
    unpack(&archive, Packing::TarGz, &place.out(), Some(&only), UnpackLimits::default(), &Silent)
        .unwrap_err();
    assert!(place.untouched());

    let place = Place::new();
    let archive = place.archive(&gz(&tar_of(&[(b"a", b"1")])));
    let error = unpack(&archive, Packing::TarGz, &place.out(), Some(&only), UnpackLimits::default(), &Silent)
        .unwrap_err();
    assert!(error.to_string().contains("\"b\" is not in it"), "{error}");
    assert!(place.untouched());
}

#[test]
fn paths_that_leave_the_folder_are_refused() {
    let cases: [(&[u8], &str); 8] = [
        (b"/etc/passwd", "absolute"),
        (b"../up", "leaves its folder"),
        (b"a/../../up", "leaves its folder"),
        (b"a/..", "leaves its folder"),
        (b"..\\up", "backslash"),
        (b"a\\b", "backslash"),
        (b"\xff\xfe", "not UTF-8"),
        (b"./.", "no name"),
    ];
    for (name, why) in cases {
        let error = refusal(&gz(&tar_of(&[(b"good", b"good"), (name, b"bad")])));
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_path_smuggled_in_by_an_extended_header_is_refused() {
    let mut builder = tar::Builder::new(Vec::new());
    builder.append_pax_extensions([("path", &b"../../up"[..])]).unwrap();
    let mut header = Header::new_ustar();
    header.set_path("innocent").unwrap();
    header.set_size(1);
    header.set_cksum();
    builder.append(&header, &b"x"[..]).unwrap();
    assert!(refusal(&gz(&builder.into_inner().unwrap())).contains("leaves its folder"));
}

#[test]
fn links_and_devices_are_refused() {
    let kinds = [
        (EntryType::Symlink, "a link"),
        (EntryType::Link, "a link"),
        (EntryType::Char, "not a plain file"),
        (EntryType::Block, "not a plain file"),
        (EntryType::Fifo, "not a plain file"),
        (EntryType::GNUSparse, "not a plain file"),
        (EntryType::new(b'Z'), "not a plain file"),
    ];
    for (kind, why) in kinds {
        let mut tar = Vec::new();
        entry(&mut tar, b"x", kind, b"/etc", b"");
        // An unpacker without checks would write this file through the link.
        entry(&mut tar, b"x/passwd", EntryType::Regular, b"", b"bad");
        tar.extend_from_slice(&[0; 1024]);
        let error = refusal(&gz(&tar));
        assert!(error.contains(why) || kind == EntryType::GNUSparse, "{kind:?}: {error}");
    }
}

#[test]
fn a_path_that_appears_twice_is_refused() {
    assert!(refusal(&gz(&tar_of(&[(b"a", b"1"), (b"./a", b"2")]))).contains("appears twice"));
    // A file in place of a folder.
    refusal(&gz(&tar_of(&[(b"a", b"1"), (b"a/b", b"2")])));
}

#[test]
fn bombs_are_refused() {
    let zeros = vec![0; 40 << 20];
    let bomb = gz(&tar_of(&[(b"zeros", &zeros)]));
    assert!(refusal(&bomb).contains("more than 100 times"), "ratio");
    let place = Place::new();
    let limits = UnpackLimits { bytes: 1 << 20, ..UnpackLimits::default() };
    let error = place.unpack(&bomb, limits).unwrap_err().to_string();
    assert!(error.contains("more than 1048576 bytes") && place.untouched(), "{error}");
    // A decompression bomb after the end of the tar, which only a reader of the whole stream finds.
    let mut tail = tar_of(&[(b"a", b"1")]);
    tail.extend_from_slice(&zeros);
    assert!(refusal(&gz(&tail)).contains("more than 100 times"), "tail");

    let names: Vec<String> = (0..20).map(|i| format!("f{i}")).collect();
    let files: Vec<(&[u8], &[u8])> = names.iter().map(|n| (n.as_bytes(), &b""[..])).collect();
    let limits = UnpackLimits { entries: 10, ..UnpackLimits::default() };
    let error = place.unpack(&gz(&tar_of(&files)), limits).unwrap_err().to_string();
    assert!(error.contains("more than 10 entries") && place.untouched(), "{error}");

    let path = place.archive(&gz(&zeros));
    let to = place.dir.path().join("zeros");
    let error = gunzip(&path, &to, UnpackLimits::default(), &Silent).unwrap_err().to_string();
    assert!(error.contains("more than 100 times") && !to.exists(), "{error}");
}

#[test]
fn what_is_no_archive_is_refused() {
    assert!(refusal(b"").contains("a.tar.gz"));
    refusal(b"<html>");
    refusal(&gz(b"not a tar"));
    assert!(refusal(&gz(b"")).contains("empty, or no tar"));
    // The tar header states more bytes than there are, while the gzip stream is complete.
    let mut tar = tar_of(&[(b"a", &[1; 2000])]);
    tar.truncate(1024);
    refusal(&gz(&tar));
}

#[test]
fn every_truncation_is_refused() {
    let whole = gz(&tar_of(&[(b"a", &[1; 3000]), (b"b", &[2; 700])]));
    for end in 0..whole.len() {
        refusal(&whole[..end]);
    }
    let place = Place::new();
    let to = place.dir.path().join("text");
    let text = gz(b"eins\nzwei\n");
    for end in 0..text.len() {
        let path = place.archive(&text[..end]);
        gunzip(&path, &to, UnpackLimits::default(), &Silent).unwrap_err();
        assert!(!to.exists());
    }
    let member = gunzip(&place.archive(&text), &to, UnpackLimits::default(), &Silent).unwrap();
    assert_eq!((member.bytes, fs::read(&to).unwrap()), (10, b"eins\nzwei\n".to_vec()));
    assert_eq!(member.sha256, sha256_of(b"eins\nzwei\n"));
    // Two concatenated gzip members form one text.
    let two = [gz(b"eins\n"), gz(b"zwei\n")].concat();
    fs::remove_file(&to).unwrap();
    assert_eq!(gunzip(&place.archive(&two), &to, UnpackLimits::default(), &Silent).unwrap().bytes, 10);
}

#[test]
fn the_content_digest_is_about_the_content_alone() {
    let place = Place::new();
    let digest = |bytes: &[u8]| content_digest(&place.archive(bytes)).unwrap();
    let files: [(&[u8], &[u8]); 3] = [(b"b/x", b"1"), (b"a", b"22"), (b"b.y", b"")];
    let due = sha256_of(
        format!("{}  a\n{}  b.y\n{}  b/x\n", sha256_of(b"22"), sha256_of(b""), sha256_of(b"1")).as_bytes(),
    );
    assert_eq!(digest(&gz(&tar_of(&files))), due);
    // Repacked with another order, folders, a leading `./` and another compression level.
    let mut tar = Vec::new();
    entry(&mut tar, b"./b", EntryType::Directory, b"", b"");
    for (name, data) in [(&b"./a"[..], &b"22"[..]), (b"./b/x", b"1"), (b"./b.y", b"")] {
        entry(&mut tar, name, EntryType::Regular, b"", data);
    }
    tar.extend_from_slice(&[0; 4096]);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&tar).unwrap();
    assert_eq!(digest(&encoder.finish().unwrap()), due);
    // The unpacked folder has the same digest.
    place.unpack(&gz(&tar), UnpackLimits::default()).unwrap();
    assert_eq!(content_digest(&place.out()).unwrap(), due);
    // Another byte, another name, or one file less gives another digest.
    for other in [[(&b"b/x"[..], &b"2"[..]), files[1], files[2]], [(b"b/z", b"1"), files[1], files[2]]] {
        assert_ne!(digest(&gz(&tar_of(&other))), due);
    }
    assert_ne!(digest(&gz(&tar_of(&files[..2]))), due);
    // The digest of one gzipped file is that of the file.
    assert_eq!(digest(&gz(b"text")), sha256_of(b"text"));
    content_digest(Path::new("/nowhere/at/all")).unwrap_err();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_name_writes_outside(names in prop::collection::vec("[./\\\\a:~\u{0}-\u{3}ü-]{1,24}", 1..4)) {
        let files: Vec<(&[u8], &[u8])> = names.iter().map(|n| (n.as_bytes(), &b"x"[..])).collect();
        let place = Place::new();
        match place.unpack(&gz(&tar_of(&files)), UnpackLimits::default()) {
            Err(_) => prop_assert!(place.untouched()),
            Ok(unpacked) => {
                for member in &unpacked.members {
                    prop_assert_eq!(fs::read(place.out().join(&member.path)).unwrap(), b"x");
                }
                // Nothing besides the archive and `out` with `files` appeared.
                prop_assert_eq!(fs::read_dir(place.dir.path()).unwrap().count(), 2);
                prop_assert_eq!(fs::read_dir(place.dir.path().join("out")).unwrap().count(), 1);
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_refused_or_changes_nothing(at in 0.0..1.0_f64, bit in 0..8_u32) {
        let data: Vec<u8> = (0..2000_u32).map(|i| ((i * i) >> 3) as u8).collect();
        let mut bytes = gz(&tar_of(&[(b"a", &data)]));
        let index = (at * bytes.len() as f64) as usize;
        bytes[index] ^= 1 << bit;
        let place = Place::new();
        match place.unpack(&bytes, UnpackLimits::default()) {
            Err(_) => prop_assert!(place.untouched()),
            // The time and the system in gzip's header do not matter.
            Ok(_) => prop_assert_eq!(fs::read(place.out().join("a")).unwrap(), data),
        }
    }
}
