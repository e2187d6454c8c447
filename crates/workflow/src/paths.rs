//! Whose a path is, and how it is written from where somebody stands.

/// Where distributions put what packages bring, and what the kernel makes up: `/usr/local` and `/opt` are not among them, because
/// people install their own things there.
const SYSTEM: [&str; 15] = [
    "/usr/",
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/libx32/",
    "/bin/",
    "/sbin/",
    "/etc/",
    "/proc/",
    "/sys/",
    "/var/cache/",
    // What package managers know: a package build reads the list of every package.
    "/var/lib/apt/",
    "/var/lib/dpkg/",
    "/var/lib/pacman/",
    "/var/lib/rpm/",
];

/// True if the path belongs to the system.
pub fn is_system(path: &[u8]) -> bool {
    if path.starts_with(b"/usr/local/") {
        return false;
    }
    path.starts_with(b"/dev/")
        || SYSTEM
            .iter()
            .any(|prefix| path.starts_with(prefix.as_bytes()))
}

/// Where language run-times and package managers of a user keep what they brought: nobody's own work.
const TOOLS: [&str; 14] = [
    "/usr/local/",
    "/opt/",
    "/site-packages/",
    "/dist-packages/",
    "/.pyenv/",
    "/.venv/",
    "/node_modules/",
    "/.cargo/",
    "/.rustup/",
    "/__pycache__/",
    "/.cache/",
    "/.m2/",
    "/.npm/",
    // Go's modules.
    "/pkg/mod/",
];

/// What programs that run others write down for themselves, to know what they have done.
const RECORDS: [&str; 19] = [
    // Automake's: what each source included when it was compiled.
    "/.deps/",
    "/.ninja_log",
    "/.ninja_deps",
    "/.snakemake/",
    "/.nextflow/",
    "/.nextflow.log",
    "/CMakeFiles/Progress/",
    "/CMakeFiles/progress.marks",
    "/.sconsign.dblite",
    "/.doit.db",
    "/.tup/",
    "/.redo/",
    // cargo's and Go's.
    "/.fingerprint/",
    "/.rustc_info.json",
    "/.cargo-lock",
    "/.package-cache",
    "/.global-cache",
    "/.config/go/telemetry/",
    // npm's.
    "/node_modules/.package-lock.json",
];

/// True if it is a builder's own record: nobody's input, nobody's result.
fn is_record(path: &[u8]) -> bool {
    RECORDS.iter().any(|part| contains(path, part.as_bytes())) || is_session(path)
}

/// True for what rustc keeps of what it has compiled, `incremental/CRATE-HASH/s-…`: the next time it is called otherwise.
fn is_session(path: &[u8]) -> bool {
    let mut parts = path
        .split(|&byte| byte == b'/')
        .skip_while(|part| *part != b"incremental");
    parts
        .nth(2)
        .is_some_and(|session| session.starts_with(b"s-"))
}

/// True if the path is part of some tool rather than of somebody's work: the system, a language's libraries, caches.
pub fn is_tool(path: &[u8]) -> bool {
    is_system(path)
        || is_record(path)
        || path.ends_with(b".pyc")
        || TOOLS.iter().any(|part| contains(path, part.as_bytes()))
}

/// True if a program keeps there what it could make again: nobody's result.
pub fn is_cache(path: &[u8]) -> bool {
    path.ends_with(b".pyc")
        || contains(path, b"/.cache/")
        || contains(path, b"/.npm/")
        || is_record(path)
}

/// True if `part` is somewhere in `text`.
pub fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The last component.
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// The directory a path lies in; `/` for what lies at the top.
pub fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) | None => b"/",
        Some(at) => &path[..at],
    }
}

/// `path` as seen from the directory `base`: without it if it lies below, else absolute.
pub fn relative<'p>(path: &'p [u8], base: &[u8]) -> &'p [u8] {
    if path == base {
        return b".";
    }
    match path
        .strip_prefix(base)
        .and_then(|rest| rest.strip_prefix(b"/"))
    {
        Some(rest) if base != b"/" => rest,
        _ => path,
    }
}

/// An absolute path: `path` from `base`, with `.` and `..` resolved in the text.
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
    fn a_path_is_written_from_where_one_stands() {
        assert_eq!(relative(b"/w/a/b", b"/w"), b"a/b");
        assert_eq!(relative(b"/w2/a", b"/w"), b"/w2/a");
        assert_eq!(relative(b"/w", b"/w"), b".");
        assert_eq!(absolute(b"../x/./y", b"/w/a"), b"/w/x/y");
        assert_eq!(absolute(b"/x//y/", b"/w"), b"/x/y");
        assert_eq!(
            (parent(b"/a"), parent(b"/a/b"), base_name(b"/a/b")),
            (&b"/"[..], &b"/a"[..], &b"b"[..])
        );
    }

    #[test]
    fn what_a_tool_brings_is_nobodys_work() {
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
