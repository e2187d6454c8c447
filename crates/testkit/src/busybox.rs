//! A static busybox: a shell and small programs that take no recorder.
//!
//! Debian's package `busybox` has a dynamic program, `busybox-static` a static one, and only one of
//! them can be installed. So the program's own bytes decide. If the installed one is dynamic,
//! `scripts/setup` unpacks a static one into `.venv`.

use crate::strace::lookup::loaded;
use std::env;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The first static busybox of the usual directories, the search path and `.venv/static`. `None`
/// without one.
pub fn busybox() -> Option<&'static Path> {
    static FOUND: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let usual = ["/bin", "/usr/bin"].map(PathBuf::from);
        let path = env::var_os("PATH").unwrap_or_default();
        let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/static");
        usual
            .into_iter()
            .chain(env::split_paths(&path))
            .chain([unpacked])
            .map(|directory| directory.join("busybox"))
            .find(|file| is_static(file))
    });
    FOUND.as_deref()
}

/// True if commands find this busybox by its name, without a search path of their own.
pub fn is_installed(busybox: &Path) -> bool {
    ["/bin", "/usr/bin"]
        .iter()
        .any(|directory| busybox.starts_with(directory))
}

/// True for an ELF program that names no loader.
pub fn is_static(program: &Path) -> bool {
    let elf = std::fs::read(program).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"));
    elf && loaded(program.as_os_str().as_bytes())
        .interpreters
        .is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_and_a_script_are_not_static_programs() {
        assert!(!is_static(&env::current_exe().unwrap()));
        assert!(!is_static(Path::new(file!())));
        assert!(!is_static(Path::new("/nowhere")));
        assert!(busybox().is_none_or(is_static));
    }
}
