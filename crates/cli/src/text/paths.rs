//! How paths are shown, and which of them belong to the system rather than to the user's work.

use super::shell;

/// Where distributions put what packages bring, and what the kernel makes up: `/usr/local` and `/opt` are not among them, because
/// people install their own things there.
const SYSTEM: [&str; 10] = [
    "/usr/", "/lib/", "/lib32/", "/lib64/", "/libx32/", "/bin/", "/sbin/", "/etc/", "/proc/", "/sys/",
];

/// A path as a person reads it: quoted like a shell word where it has to be.
pub fn shown(path: &[u8]) -> String {
    shell::quote(path)
}

/// True if the path belongs to the system.
pub fn is_system(path: &[u8]) -> bool {
    if path.starts_with(b"/usr/local/") {
        return false;
    }
    path.starts_with(b"/dev/") || SYSTEM.iter().any(|prefix| path.starts_with(prefix.as_bytes()))
}

/// The directory under which a system path is counted: `/usr/lib`, `/etc`, `/proc`.
pub fn system_group(path: &[u8]) -> &[u8] {
    let depth = if path.starts_with(b"/usr/") { 2 } else { 1 };
    let end = path
        .iter()
        .enumerate()
        .filter(|&(at, &byte)| at > 0 && byte == b'/')
        .nth(depth - 1);
    end.map_or(path, |(at, _)| &path[..at])
}

/// Counts system paths by group: `3 files under /usr/lib`, most first.
#[derive(Debug, Default)]
pub struct Groups {
    counts: std::collections::BTreeMap<Vec<u8>, u64>,
}

impl Groups {
    /// Counts one.
    pub fn add(&mut self, path: &[u8]) {
        *self.counts.entry(system_group(path).to_vec()).or_default() += 1;
    }

    /// One line each, most first: `37 files under /usr/lib`.
    pub fn lines(&self) -> Vec<String> {
        let mut groups: Vec<(&Vec<u8>, &u64)> = self.counts.iter().collect();
        groups.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let lines = groups.into_iter().map(|(path, count)| match count {
            1 => format!("1 file under {}", shown(path)),
            _ => format!("{count} files under {}", shown(path)),
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_install_themselves_is_not_the_systems() {
        assert!(is_system(b"/usr/lib/x.so") && is_system(b"/dev/null") && is_system(b"/etc/passwd"));
        assert!(
            !is_system(b"/usr/local/bin/tool") && !is_system(b"/opt/x") && !is_system(b"/home/u/usr/lib/x")
        );
    }

    #[test]
    fn system_files_are_counted_by_the_directory_people_know() {
        let mut groups = Groups::default();
        for path in [
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/usr/lib/locale/x",
            "/etc/ld.so.cache",
            "/usr/bin/sort",
        ] {
            groups.add(path.as_bytes());
        }
        assert_eq!(
            groups.lines(),
            [
                "2 files under /usr/lib",
                "1 file under /etc",
                "1 file under /usr/bin"
            ]
        );
    }
}
