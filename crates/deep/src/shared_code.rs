//! Files whose code makes system calls in the place of the programs that use them.

/// How the names of such files begin: the C library with its loader, the functions that the kernel
/// maps, and the libraries of sanitizers.
const NAMES: [&str; 17] = [
    "libc.so",
    "libc-2.",
    "libc.musl-",
    "ld-linux",
    "ld-2.",
    "ld-musl-",
    "ld.so",
    "libpthread.so",
    "libpthread-2.",
    "librt.so",
    "librt-2.",
    "[vdso]",
    "libasan.so",
    "liblsan.so",
    "libtsan.so",
    "libubsan.so",
    "libclang_rt.",
];

/// True for the path of such a file, or its name in a list of mappings. A call that another file's
/// code makes passes no function of libc, so the recorder does not see it.
pub fn is_shared_code(path: &[u8]) -> bool {
    let mut parts = path.rsplit(|byte| *byte == b'/');
    let name = parts.next().unwrap_or_default();
    NAMES.iter().any(|one| name.starts_with(one.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::is_shared_code;

    #[test]
    fn the_c_library_makes_calls_for_others_and_a_library_with_a_like_name_does_not() {
        for path in [
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
            "/usr/lib/x86_64-linux-musl/libc.so",
            "[vdso]",
        ] {
            assert!(is_shared_code(path.as_bytes()), "{path}");
        }
        for path in [
            "/usr/lib/libc-client.so.2007e",
            "/usr/lib/libcrypto.so.3",
            "/usr/bin/ld",
            "/home/libc.so/program",
            "",
        ] {
            assert!(!is_shared_code(path.as_bytes()), "{path}");
        }
    }
}
