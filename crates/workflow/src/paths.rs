//! The owner of a path (system, tool or user), and path arithmetic on bytes.
//!
//! The lists of directories come from [`crate::tools`]. All functions look at the text of a path
//! only, never at the file system.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::tools::{PathKnowledge, knowledge};

fn known() -> &'static PathKnowledge {
    &knowledge().paths
}

fn starts_with_any(path: &[u8], prefixes: &[String]) -> bool {
    let mut prefixes = prefixes.iter();
    prefixes.any(|prefix| path.starts_with(prefix.as_bytes()))
}

fn ends_with_any(path: &[u8], endings: &[String]) -> bool {
    let mut endings = endings.iter();
    endings.any(|ending| path.ends_with(ending.as_bytes()))
}

fn has_any(path: &[u8], parts: &[String]) -> bool {
    parts.iter().any(|part| contains(path, part.as_bytes()))
}

/// True if the path belongs to the system: files of packages, and files that the kernel makes up.
pub fn is_system(path: &[u8]) -> bool {
    !starts_with_any(path, &known().not_system) && starts_with_any(path, &known().system)
}

/// True if the kernel makes the file or directory up: `/dev`, `/proc`, `/sys`.
pub fn is_of_kernel(path: &[u8]) -> bool {
    known().kernel.iter().any(|top| {
        let rest = path.strip_prefix(top.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    })
}

/// True if the path lies below a directory of the kernel; false for that directory itself.
pub fn is_below_kernel(path: &[u8]) -> bool {
    is_of_kernel(path) && !known().kernel.iter().any(|top| top.as_bytes() == path)
}

/// True if the path is a builder's own record, which is neither an input nor a result of its
/// commands.
pub fn is_record(path: &[u8]) -> bool {
    has_any(path, &known().records) || is_rustc_session(path)
}

/// True if a compiler or builder notes in such a file what a command read: `a.o.d`, `a.Po`.
pub fn is_dependency_file(path: &[u8]) -> bool {
    ends_with_any(path, &knowledge().derived.dependency_files)
}

/// True for rustc's incremental compilation sessions, `incremental/CRATE-HASH/s-…`, whose names
/// differ each time.
fn is_rustc_session(path: &[u8]) -> bool {
    let mut parts = path
        .split(|&byte| byte == b'/')
        .skip_while(|part| *part != b"incremental");
    parts
        .nth(2)
        .is_some_and(|session| session.starts_with(b"s-"))
}

/// True if the path belongs to a tool rather than to the user's work: the system, a language's
/// libraries, caches.
pub fn is_tool(path: &[u8]) -> bool {
    is_system(path)
        || is_record(path)
        || ends_with_any(path, &known().cache_endings)
        || has_any(path, &known().tools)
}

/// True if a path in a user's directory belongs to a tool: a language's libraries, caches. `path`
/// is the part of the path below that directory, with the slash.
pub fn is_below_tool(path: &[u8]) -> bool {
    let tops = |part: &&String| !known().not_system.contains(part) && **part != "/opt/";
    let mut parts = known().tools.iter().filter(tops);
    is_record(path)
        || ends_with_any(path, &known().cache_endings)
        || parts.any(|part| contains(path, part.as_bytes()))
}

/// True if the path lies in a directory for temporary files.
pub fn is_in_temporary_directory(path: &[u8]) -> bool {
    starts_with_any(path, &known().temporary_directories)
}

/// True if a builder makes the file for itself and names it in its rules.
pub fn is_option_file(path: &[u8]) -> bool {
    has_any(path, &known().option_files)
}

/// True if programs read such a file in passing, whatever their task is: locales, name services.
pub fn is_incidental(path: &[u8]) -> bool {
    has_any(path, &knowledge().packages.incidental)
}

/// True if a program keeps files there that it could make again.
pub fn is_cache(path: &[u8]) -> bool {
    ends_with_any(path, &known().cache_endings) || has_any(path, &known().caches) || is_record(path)
}

/// True for the history of a shell, which has lines that the user may not want to pass on.
pub fn is_history(path: &[u8]) -> bool {
    has_any(path, &known().histories)
}

/// A recorded path for the operating system.
pub fn to_path(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

/// True if `part` is somewhere in `text`.
pub fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

/// The last component.
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// The directory of a path; `/` for an entry of the root directory.
pub fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) | None => b"/",
        Some(at) => &path[..at],
    }
}

/// `path` as seen from the directory `base`: relative if it lies below, else unchanged; `.` for the
/// base itself. An unknown base is empty.
pub fn relative<'p>(path: &'p [u8], base: &[u8]) -> &'p [u8] {
    if path == base {
        return b".";
    }
    match path
        .strip_prefix(base)
        .and_then(|rest| rest.strip_prefix(b"/"))
    {
        Some(rest) if base != b"/" && !base.is_empty() => rest,
        _ => path,
    }
}

/// An absolute path: `path` from the directory `base`, with `.` and `..` resolved in the text.
pub fn absolute(path: &[u8], base: &[u8]) -> Vec<u8> {
    let whole = if path.starts_with(b"/") {
        path.to_vec()
    } else {
        [base, b"/", path].concat()
    };
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in whole.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    [b"/", parts.join(&b'/').as_slice()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_to_the_directory_above_it() {
        assert_eq!(relative(b"/w/a/b", b"/w"), b"a/b");
        assert_eq!(relative(b"/w2/a", b"/w"), b"/w2/a");
        assert_eq!(relative(b"/w", b"/w"), b".");
        assert_eq!(relative(b"/w/a", b""), b"/w/a", "an unknown base");
        assert_eq!(absolute(b"../x/./y", b"/w/a"), b"/w/x/y");
        assert_eq!(absolute(b"/x//y/", b"/w"), b"/x/y");
        assert_eq!(
            (parent(b"/a"), parent(b"/a/b"), base_name(b"/a/b")),
            (&b"/"[..], &b"/a"[..], &b"b"[..])
        );
    }

    #[test]
    fn files_of_tools_and_caches_are_not_the_users_work() {
        assert!(
            is_tool(b"/home/u/.pyenv/versions/3/lib/os.py") && is_tool(b"/w/__pycache__/a.pyc")
        );
        assert!(
            is_tool(b"/var/cache/fontconfig/x.cache-8")
                && is_tool(b"/var/lib/dpkg/info/libc6:amd64.list")
                && is_cache(b"/home/u/.cache/matplotlib/fonts.json")
        );
        assert!(is_tool(b"/w/src/.deps/a.Po") && !is_tool(b"/w/deps/a.Po"));
        assert!(
            is_cache(b"/w/target/debug/incremental/x-1/s-2-3.lock")
                && is_cache(b"/w/target/debug/.fingerprint/x-1/lib-x")
                && is_cache(b"/home/u/.config/go/telemetry/local/go.count")
                && is_tool(b"/home/u/go/pkg/mod/x.org/y@v1/z.go")
                && is_cache(b"/home/u/.npm/_logs/now-debug-0.log")
                && !is_cache(b"/w/incremental/data/x.csv")
        );
        assert!(is_tool(b"/w/.ninja_log") && is_cache(b"/w/.snakemake/metadata/x"));
        assert!(!is_tool(b"/home/u/work/data.csv") && !is_cache(b"/home/u/work/cache/data.csv"));
    }
}
