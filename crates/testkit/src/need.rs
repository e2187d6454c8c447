//! Tools that a test may need. A test without its tool is skipped with a notice, never silently.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::busybox::busybox;

/// The path of `tool` on the search path, if it exists. `busybox` means a static one.
pub fn find(tool: &str) -> Option<PathBuf> {
    if tool == "busybox" {
        return busybox().map(Path::to_owned);
    }
    if tool.contains('/') {
        return Path::new(tool).exists().then(|| PathBuf::from(tool));
    }
    let path = env::var_os("PATH")?;
    let extra = ["/usr/local/go/bin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(extra)
        .map(|dir| dir.join(tool))
        .find(|file| file.is_file())
}

/// True if every tool exists. Otherwise prints `SKIPPED: …` on stderr, past the test harness's
/// capture, and returns false.
pub fn needs(what: &str, tools: &[&str]) -> bool {
    let missing: Vec<&str> = tools
        .iter()
        .copied()
        .filter(|t| find(t).is_none())
        .collect();
    if missing.is_empty() {
        return true;
    }
    skipped(what, &format!("needs {}", missing.join(", ")));
    false
}

/// Prints that a promise was not tested, and why.
pub fn skipped(what: &str, why: &str) {
    say(&format!("SKIPPED: {what}: {why}"));
}

/// Prints one line on stderr that the test harness does not capture.
pub fn say(line: &str) {
    // A closed stderr has no reader.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
