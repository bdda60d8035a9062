//! Checks that a file has the format that its name promises. Dead hosts often answer with a web
//! page instead of an error.

use std::io::{self, Read};
use std::path::Path;

use zoo_recipes::untrusted::open;

use super::digest::Mismatch;

/// Formats and their first bytes, by the ending of the name.
const MAGIC: &[(&[&str], &str, &[u8])] = &[
    (&[".gz", ".tgz"], "gzip", &[0x1f, 0x8b]),
    (&[".bz2", ".tbz2"], "bzip2", b"BZh"),
    (&[".xz", ".txz"], "xz", &[0xfd, b'7', b'z', b'X', b'Z', 0]),
    (&[".zip"], "zip", b"PK"),
];

/// Whether the text begins like an HTML page.
pub(crate) fn looks_like_html(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let starts = |tag: &[u8]| head.len() >= tag.len() && head[..tag.len()].eq_ignore_ascii_case(tag);
    starts(b"<!doctype html") || starts(b"<html")
}

/// Checks the first bytes of a file called `name`.
pub(crate) fn check_head(name: &str, head: &[u8]) -> Result<(), Mismatch> {
    let name = name.to_ascii_lowercase();
    if looks_like_html(head) && !name.ends_with(".html") && !name.ends_with(".htm") {
        return Err(Mismatch::Html);
    }
    for (endings, format, magic) in MAGIC {
        if endings.iter().any(|e| name.ends_with(e)) && !head.starts_with(magic) {
            return Err(Mismatch::Format {
                expected: format,
                actual: hex::encode(&head[..head.len().min(8)]),
            });
        }
    }
    Ok(())
}

/// [`check_head`] on a file.
pub(crate) fn check_file(name: &str, path: &Path) -> io::Result<Result<(), Mismatch>> {
    let mut head = Vec::with_capacity(512);
    open(path)?.take(512).read_to_end(&mut head)?;
    Ok(check_head(name, &head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_refused_where_an_archive_or_a_text_was_due() {
        for page in ["<!DOCTYPE html><p>", "\u{feff}\n <HTML lang=en>", "  <!doctype HTML>"] {
            assert_eq!(check_head("a.tgz", page.as_bytes()), Err(Mismatch::Html), "{page}");
            assert_eq!(check_head("train.en", page.as_bytes()), Err(Mismatch::Html), "{page}");
        }
        assert_eq!(check_head("page.html", b"<html>"), Ok(()));
        assert_eq!(check_head("train.en", b"A <html> tag in a text."), Ok(()));
        // SGML test sets of WMT begin like this.
        assert_eq!(check_head("newstest.sgm", b"<srcset setid=\"newstest2014\""), Ok(()));
    }

    #[test]
    fn the_first_bytes_must_be_the_formats() {
        assert_eq!(check_head("a.TGZ", &[0x1f, 0x8b, 8]), Ok(()));
        assert!(matches!(
            check_head("a.tar.gz", b"Not found"),
            Err(Mismatch::Format { expected: "gzip", .. })
        ));
        assert!(matches!(check_head("a.gz", b""), Err(Mismatch::Format { .. })));
        assert_eq!(check_head("plain", b"anything"), Ok(()));
    }
}
