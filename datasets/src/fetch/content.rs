//! A digest of an archive's contents that does not depend on how they are packed.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::archive::{Member, UnpackError, UnpackLimits};
use super::digest::sha256_file;
use super::packing::{Compression, HEAD, Packing, begins_tar, decompressed};
use super::walk::walk;

/// SHA-256 over one line `<sha256>  <path>\n` for each regular file, sorted by path in byte order.
/// It equals the output of `find -type f -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum |
/// sha256sum` inside the folder.
///
/// `path` is a folder, an archive, or one file packed with gz, bz2 or xz (the digest is then that
/// of the file's bytes alone). The digest does not change if the archive is repacked or if times,
/// owners, orders or empty folders differ.
///
/// # Errors
/// The archive is refused (see [`super::unpack()`]), or the folder holds something other than plain
/// files.
pub fn content_digest(path: &Path) -> Result<String, UnpackError> {
    content_digest_of(path, &ContentPart::default())
}

/// Some of an archive's members. The default is all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContentPart {
    /// Suffix of the members' paths, such as `.wav`.
    pub suffix: String,
    /// Folders that the members are in, at any depth; empty for any folder.
    pub folders: Vec<String>,
}

impl ContentPart {
    /// Whether the member at `path` is one of them.
    fn takes(&self, path: &str) -> bool {
        let inside =
            |folder: &String| path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'));
        path.ends_with(&self.suffix) && (self.folders.is_empty() || self.folders.iter().any(inside))
    }
}

impl fmt::Display for ContentPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "*{}", self.suffix)?;
        match self.folders.is_empty() {
            true => Ok(()),
            false => write!(f, " in {}", self.folders.join(" and ")),
        }
    }
}

/// [`content_digest`] over only those files that `part` takes.
///
/// # Errors
/// As [`content_digest`].
pub fn content_digest_of(path: &Path, part: &ContentPart) -> Result<String, UnpackError> {
    let limits = UnpackLimits::default();
    let error = |e: io::Error| UnpackError::unreadable(path, &e);
    if path.is_dir() {
        let mut members = Vec::new();
        folder_members(path, "", &mut members).map_err(error)?;
        return Ok(combine(members, part));
    }
    let packing = match Compression::of_file(path).map_err(error)? {
        Some(Compression::Zip) => Packing::Zip,
        compression => {
            // An unknown file is read as gzip, and refused with an error that says so.
            let compression = compression.unwrap_or(Compression::Gzip);
            if !holds_tar(path, compression).map_err(error)? {
                let mut sha256 = Sha256::new();
                copy(&mut decompressed(path, compression, limits).map_err(error)?, &mut sha256)
                    .map_err(error)?;
                return Ok(hex::encode(sha256.finalize()));
            }
            match compression {
                Compression::None => Packing::Tar,
                Compression::Bzip2 => Packing::TarBz2,
                Compression::Xz => Packing::TarXz,
                _ => Packing::TarGz,
            }
        }
    };
    let members = walk(path, packing, limits, &mut |_, entry| {
        let mut sha256 = Sha256::new();
        copy(entry, &mut sha256)?;
        Ok(Some(hex::encode(sha256.finalize())))
    })?;
    Ok(combine(members, part))
}

fn combine(mut members: Vec<Member>, part: &ContentPart) -> String {
    members.retain(|member| part.takes(&member.path));
    members.sort_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
    let mut sha256 = Sha256::new();
    for member in members {
        sha256.update(format!("{}  {}\n", member.sha256, member.path));
    }
    hex::encode(sha256.finalize())
}

fn copy(from: &mut dyn Read, into: &mut Sha256) -> io::Result<()> {
    let mut block = vec![0; 1 << 16];
    loop {
        match from.read(&mut block)? {
            0 => return Ok(()),
            n => into.update(&block[..n]),
        }
    }
}

/// Whether the unpacked bytes begin with a tar header.
fn holds_tar(path: &Path, compression: Compression) -> io::Result<bool> {
    let mut head = Vec::with_capacity(HEAD as usize);
    decompressed(path, compression, UnpackLimits::default())?.take(HEAD).read_to_end(&mut head)?;
    Ok(begins_tar(&head))
}

fn folder_members(folder: &Path, prefix: &str, members: &mut Vec<Member>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{} is not UTF-8", name.display()))
        })?;
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            folder_members(&entry.path(), &path, members)?;
        } else if kind.is_file() {
            let bytes = File::open(entry.path())?.metadata()?.len();
            members.push(Member { bytes, sha256: sha256_file(&entry.path())?, path });
        } else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{path} is not a plain file")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_of_files_in_its_folders_with_its_suffix() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in
            [("a/b/1.txt", "one"), ("a/b/2.dat", "two"), ("a/bc/3.txt", "three"), ("d/4.txt", "four")]
        {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let of = |suffix: &str, folders: &[&str]| {
            let folders = folders.iter().map(|folder| (*folder).to_owned()).collect();
            content_digest_of(folder.path(), &ContentPart { suffix: suffix.into(), folders }).unwrap()
        };
        let due = |paths: &[(&str, &str)]| {
            let line =
                |(path, text): &(&str, &str)| format!("{}  {path}\n", hex::encode(Sha256::digest(text)));
            hex::encode(Sha256::digest(paths.iter().map(line).collect::<String>()))
        };
        assert_eq!(of(".txt", &["a/b"]), due(&[("a/b/1.txt", "one")]));
        assert_eq!(
            of("", &["a/b", "d"]),
            due(&[("a/b/1.txt", "one"), ("a/b/2.dat", "two"), ("d/4.txt", "four")])
        );
        assert_eq!(of("", &[]), content_digest(folder.path()).unwrap());
    }
}
