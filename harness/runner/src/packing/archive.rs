//! A package as a tar archive: the same files give the same bytes.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path};

use tar::{Archive, Builder, EntryType, Header};
use zoo_recipes::{atomic, untrusted};
use zoo_results::exit::Exit;

use crate::error::{Failure, Result};

/// Largest size of all files of an archive that is unpacked for a check, in bytes.
const MAX_BYTES: u64 = 64 << 30;
/// Largest number of files of such an archive.
const MAX_FILES: usize = 10_000;

/// Writes the files of a folder into the archive `to`, below `top`, sorted by name and without times
/// and owners.
///
/// # Errors
/// A file cannot be read, or the archive cannot be written.
pub fn write(folder: &Path, top: &str, to: &Path) -> Result<()> {
    let failed = |error: std::io::Error| Failure::io("write", to, &error);
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = atomic::file_in(parent).map_err(failed)?;
    let mut archive = Builder::new(temporary.as_file_mut());
    for name in names(folder).map_err(failed)? {
        let file = File::open(folder.join(&name)).map_err(failed)?;
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(file.metadata().map_err(failed)?.len());
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, format!("{top}/{name}"), file).map_err(failed)?;
    }
    archive.finish().map_err(failed)?;
    drop(archive);
    atomic::persist_new(temporary, to).map_err(failed)
}

/// Paths of all files of a folder below it, sorted, with `/` between folders.
pub fn names(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(folder.join(&below))? {
            let entry = entry?;
            let name = format!("{below}{}", entry.file_name().to_string_lossy());
            match entry.file_type()?.is_dir() {
                true => folders.push(format!("{name}/")),
                false => names.push(name),
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Unpacks an archive into the empty folder `into`, without its top folder. Nothing but regular files
/// below one folder is accepted.
///
/// # Errors
/// The archive cannot be read, is too large, or has another kind of member.
pub fn read(archive: &Path, into: &Path) -> Result<()> {
    let damaged = |why: String| {
        Failure::new(Exit::Damaged, format!("{}: {why}", archive.display()))
            .hint("get the package again; `zoo pack -o FILE.tar` writes such archives")
    };
    let file = untrusted::open(archive).map_err(|error| Failure::io("read", archive, &error))?;
    let mut members = Archive::new(file);
    let (mut total, mut count, mut top) = (0_u64, 0_usize, None);
    for member in members.entries().map_err(|error| damaged(error.to_string()))? {
        let mut member = member.map_err(|error| damaged(error.to_string()))?;
        let path = member.path().map_err(|error| damaged(error.to_string()))?.into_owned();
        let named = |why: &str| damaged(format!("{}: {why}", path.display()));
        let steps: Vec<Component<'_>> = path.components().collect();
        if steps.len() < 2 || !steps.iter().all(|step| matches!(step, Component::Normal(_))) {
            return Err(named("not a file below the archive's folder"));
        }
        if member.header().entry_type() != EntryType::Regular {
            return Err(named("not a regular file"));
        }
        let first = steps[0].as_os_str().to_owned();
        if *top.get_or_insert_with(|| first.clone()) != first {
            return Err(named("a second folder; an archive has one package"));
        }
        (total, count) = (total.saturating_add(member.size()), count + 1);
        if total > MAX_BYTES || count > MAX_FILES {
            return Err(damaged(format!("more than {MAX_BYTES} bytes or {MAX_FILES} files")));
        }
        let to = into.join(steps[1..].iter().collect::<std::path::PathBuf>());
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|error| Failure::io("write", folder, &error))?;
        }
        let size = member.size();
        let mut file = File::create_new(&to).map_err(|error| named(&error.to_string()))?;
        let copied = std::io::copy(&mut member.by_ref().take(size), &mut file);
        match copied {
            Ok(copied) if copied == size => {}
            Ok(_) => return Err(named("the archive ends within it")),
            Err(error) => return Err(named(&error.to_string())),
        }
    }
    match count {
        0 => Err(damaged("it has no files".to_owned())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_files_of_the_folder_and_always_the_same_bytes() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("p");
        fs::create_dir_all(folder.join("deep/er")).unwrap();
        for (name, text) in [("b", "1"), ("deep/er/c", "22"), ("a", "")] {
            fs::write(folder.join(name), text).unwrap();
        }
        let tar = |name: &str| home.path().join(name);
        write(&folder, "top", &tar("1.tar")).unwrap();
        write(&folder, "top", &tar("2.tar")).unwrap();
        assert_eq!(fs::read(tar("1.tar")).unwrap(), fs::read(tar("2.tar")).unwrap());
        let into = tar("again");
        fs::create_dir(&into).unwrap();
        read(&tar("1.tar"), &into).unwrap();
        assert_eq!(names(&into).unwrap(), ["a", "b", "deep/er/c"]);
        assert_eq!(fs::read_to_string(into.join("deep/er/c")).unwrap(), "22");
        // Nothing is overwritten.
        assert!(write(&folder, "top", &tar("1.tar")).is_err());
    }

    fn archive(members: &[(&str, EntryType)]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (name, kind) in members {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_size(1);
            header.set_mode(0o644);
            // `append_data` refuses such names itself.
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            builder.append(&header, &b"x"[..]).unwrap();
        }
        builder.into_inner().unwrap()
    }

    #[test]
    fn members_that_lead_out_of_the_folder_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let regular = EntryType::Regular;
        for (members, why) in [
            (&[("top/../../out", regular)][..], "not a file below"),
            (&[("/top/out", regular)], "not a file below"),
            (&[("alone", regular)], "not a file below"),
            (&[("top/link", EntryType::Symlink)], "not a regular file"),
            (&[("top/a", regular), ("other/b", regular)], "a second folder"),
            (&[("top/a", regular), ("top/a", regular)], "exists"),
            (&[], "no files"),
        ] {
            let file = home.path().join("x.tar");
            fs::write(&file, archive(members)).unwrap();
            let into = tempfile::tempdir().unwrap();
            let error = read(&file, into.path()).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("x.tar"), "{members:?}: {error}");
        }
        assert!(!home.path().join("out").exists());
        // Bytes are missing.
        let file = home.path().join("x.tar");
        let whole = archive(&[("top/a", regular)]);
        fs::write(&file, &whole[..512]).unwrap();
        assert!(read(&file, tempfile::tempdir().unwrap().path()).is_err());
    }
}
