//! Archive headers that try to exhaust memory, and names with terminal control sequences.
//! Allocations are counted, so these tests need their own process.

mod memory;

use std::fs;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};
use zip::write::FullFileOptions;
use zoo_datasets::fetch::{Packing, Silent, UnpackLimits, unpack};

/// Less than the 16 MiB from which on the compression ratio is checked.
const LONG: usize = 15 << 20;
/// Maximum memory for an archive and its decompressor.
const MOST_MEMORY: usize = 6 << 20;

/// Runs one test at a time, because the allocator counts for the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Appends an entry of a tar archive: header and data.
fn entry(tar: &mut impl Write, name: &[u8], kind: EntryType, data: &[u8]) {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(data.len() as u64);
    header.set_cksum();
    tar.write_all(header.as_bytes()).unwrap();
    tar.write_all(data).unwrap();
    tar.write_all(&vec![0; data.len().next_multiple_of(512) - data.len()]).unwrap();
}

fn archive(entries: &[(&[u8], EntryType, &[u8])]) -> Vec<u8> {
    let mut tar = GzEncoder::new(Vec::new(), Compression::fast());
    for (name, kind, data) in entries {
        entry(&mut tar, name, *kind, data);
    }
    tar.write_all(&[0; 1024]).unwrap();
    tar.finish().unwrap()
}

/// Returns the error for a refused archive, and the peak memory.
fn refusal(bytes: &[u8], packing: Packing) -> (String, usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, bytes).unwrap();
    let (result, peak) = memory::peak_of(|| {
        unpack(&path, packing, &folder.path().join("out"), None, UnpackLimits::default(), &Silent)
    });
    assert!(!folder.path().join("out").exists());
    (result.unwrap_err().to_string(), peak)
}

/// One record of a pax header, with about this many bytes.
fn pax_record(key: &str, bytes: usize) -> Vec<u8> {
    let length = bytes.to_string().len() + 1 + key.len() + 1 + bytes + 1;
    format!("{length} {key}={}\n", "x".repeat(bytes)).into_bytes()
}

#[test]
fn a_header_of_many_megabytes_is_refused_before_it_is_in_memory() {
    let _alone = alone();
    let (name, path, comment) = (vec![b'x'; LONG], pax_record("path", LONG), pax_record("comment", LONG));
    let headers: [(EntryType, &[u8]); 4] = [
        (EntryType::GNULongName, &name),
        (EntryType::GNULongLink, &name),
        (EntryType::XHeader, &path),
        (EntryType::XGlobalHeader, &comment),
    ];
    for (kind, data) in headers {
        let bytes = archive(&[(b"header", kind, data), (b"a", EntryType::Regular, b"text")]);
        let (error, peak) = refusal(&bytes, Packing::TarGz);
        assert!(error.contains("the header of an entry has more than 1048576 bytes"), "{kind:?}: {error}");
        assert!(peak < MOST_MEMORY, "{kind:?}: {peak} bytes");
    }
}

#[test]
fn a_name_that_no_system_has_is_refused_and_cut_in_the_message() {
    let _alone = alone();
    let name = ["\u{1b}[2J".repeat(100_000).into_bytes(), b"\0".to_vec()].concat();
    let bytes = archive(&[(b"name", EntryType::GNULongName, &name), (b"a", EntryType::Regular, b"text")]);
    let (error, peak) = refusal(&bytes, Packing::TarGz);
    assert!(error.contains("has a name of more than 4096 bytes"), "{error}");
    assert!(error.len() < 2_000 && error.contains("bytes left out"), "{error}");
    assert!(peak < MOST_MEMORY, "{peak} bytes");
}

#[test]
fn a_zip_directory_of_many_megabytes_is_refused() {
    let _alone = alone();
    // Comments of entries count towards the limit; these have 68 MiB.
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let comment = "x".repeat(65_000);
    for at in 0..1_100 {
        let options = FullFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        zip.start_file(format!("{at}"), options.with_file_comment(comment.as_str())).unwrap();
    }
    let bytes = zip.finish().unwrap().into_inner();
    let (error, _) = refusal(&bytes, Packing::Zip);
    assert!(error.contains("its directory has more than"), "{error}");
}

#[test]
fn control_characters_of_an_archive_stay_out_of_messages() {
    let _alone = alone();
    let clean = |error: &str| assert!(!error.chars().any(|c| c.is_control() && c != '\n'), "{error:?}");
    // A name in a message of this crate.
    let (error, _) =
        refusal(&archive(&[(b"../\x1b]0;owned\x07\n", EntryType::Regular, b"")]), Packing::TarGz);
    assert!(error.contains(r#"entry "../\u{1b}]0;owned\u{7}\n" leaves its folder"#), "{error}");
    clean(&error);
    // A name in a message of the tar library, which prints it beside an invalid number.
    let mut tar = Vec::new();
    entry(&mut tar, b"\x1b[31mred", EntryType::Regular, b"");
    tar[124..136].copy_from_slice(b"zzzzzzzzzzz\0");
    let mut header = Header::from_byte_slice(&tar[..512]).clone();
    header.set_cksum();
    tar[..512].copy_from_slice(header.as_bytes());
    tar.extend_from_slice(&[0; 1024]);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&tar).unwrap();
    let (error, _) = refusal(&encoder.finish().unwrap(), Packing::TarGz);
    assert!(error.contains(r"\u{1b}[31mred"), "{error}");
    clean(&error);
}
