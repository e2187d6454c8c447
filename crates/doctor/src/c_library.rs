//! The C library of this machine, which the recorder's entry points replace.

use std::fs;

use crate::finding::Finding;

const NAME: &str = "C library";

/// Where distributions keep glibc.
const GLIBC: &[&str] = &[
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib64/libc.so.6",
    "/usr/lib/libc.so.6",
    "/usr/lib64/libc.so.6",
];
const MUSL: &str = "/lib/ld-musl-x86_64.so.1";

pub fn version() -> Finding {
    let found = GLIBC.iter().find_map(|path| fs::read(path).ok());
    if let Some(library) = found {
        let version = release(&library).unwrap_or_else(|| "of an unknown version".to_owned());
        return Finding::works(NAME, format!("glibc {version}"));
    }
    if fs::exists(MUSL).unwrap_or(false) {
        return Finding::limited(
            NAME,
            "musl",
            "What programs do with their inherited standard streams is only `possible`.",
            "Use a distribution with glibc where this matters.",
        );
    }
    Finding::limited(
        NAME,
        "none was found where distributions keep it",
        "If all programs are static, the guard records alone.",
        "Nothing has to be done if the trial works.",
    )
}

/// The version in glibc's own banner.
fn release(library: &[u8]) -> Option<String> {
    const BANNER: &[u8] = b"stable release version ";
    let at = library
        .windows(BANNER.len())
        .position(|window| window == BANNER)?;
    let rest = &library[at + BANNER.len()..];
    let end = rest
        .iter()
        .position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
    let text = String::from_utf8_lossy(&rest[..end]);
    Some(text.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_librarys_banner() {
        let banner =
            b"\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\nCopyright";
        assert_eq!(release(banner).as_deref(), Some("2.36"));
        assert_eq!(release(b"something else"), None);
    }
}
