//! How paths are printed, and which of them are system files rather than the user's own.

use backstory_ordering::SmallSort;
use std::collections::BTreeMap;

pub use backstory_workflow::paths::is_system;

use super::shell;
use super::words::{counted, grouped};

/// A path for a reader, quoted like a shell word where necessary.
pub fn shown(path: &[u8]) -> String {
    shell::quote(path)
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

/// Counts paths by directory: `37 files under /usr/lib, 2 under /etc`.
#[derive(Debug, Default)]
pub struct Groups {
    system: BTreeMap<Vec<u8>, usize>,
    others: Vec<Vec<u8>>,
}

/// The number of directories that are named. The files of the others are counted.
const NAMED: usize = 2;

impl Groups {
    /// Counts a path.
    pub fn add(&mut self, path: &[u8]) {
        match is_system(path) {
            true => *self.system.entry(system_group(path).to_vec()).or_default() += 1,
            false => self.others.push(path.to_vec()),
        }
    }

    /// True if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.system.is_empty() && self.others.is_empty()
    }

    /// The counts in one line, the largest first.
    pub fn text(&self) -> String {
        let mut groups: Vec<(Vec<u8>, usize)> = self
            .system
            .iter()
            .map(|(path, count)| (path.clone(), *count))
            .collect();
        groups.extend(gathered(&self.others));
        groups.sort_small_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let rest: usize = groups.iter().skip(NAMED).map(|(_, count)| count).sum();
        groups.truncate(NAMED);
        let mut parts: Vec<String> = groups
            .iter()
            .enumerate()
            .map(|(at, (path, count))| {
                let number = match at {
                    0 => counted(*count, "file", "files"),
                    _ => grouped(*count),
                };
                format!("{number} under {}", shown(path))
            })
            .collect();
        if rest > 0 {
            parts.push(format!("{} elsewhere", grouped(rest)));
        }
        parts.join(", ")
    }
}

/// A path's components.
type Parts<'a> = Vec<&'a [u8]>;

/// Paths by the deepest directory that all with the same first three components share.
fn gathered(paths: &[Vec<u8>]) -> Vec<(Vec<u8>, usize)> {
    let mut groups: BTreeMap<Parts, (Parts, usize)> = BTreeMap::new();
    for path in paths {
        let parts: Parts = path.split(|&byte| byte == b'/').collect();
        let directory = &parts[..parts.len() - 1];
        let key = directory.iter().take(4).copied().collect();
        let (common, count) = groups.entry(key).or_insert_with(|| (directory.to_vec(), 0));
        let shared = common
            .iter()
            .zip(directory)
            .take_while(|(a, b)| a == b)
            .count();
        common.truncate(shared);
        *count += 1;
    }
    groups
        .into_values()
        .map(|(common, count)| (common.join(&b'/'), count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_users_install_are_not_system_files() {
        assert!(
            is_system(b"/usr/lib/x.so") && is_system(b"/dev/null") && is_system(b"/etc/passwd")
        );
        assert!(
            !is_system(b"/usr/local/bin/tool")
                && !is_system(b"/opt/x")
                && !is_system(b"/home/u/usr/lib/x")
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
            groups.text(),
            "2 files under /usr/lib, 1 under /etc, 1 elsewhere"
        );
    }

    #[test]
    fn other_files_are_counted_by_the_directory_they_share() {
        let mut groups = Groups::default();
        for path in [
            "/opt/py/3/lib/os.py",
            "/opt/py/3/lib/re/x.py",
            "/opt/py/3/lib/re/y.py",
            "/srv/a",
            "/etc/x",
            "/proc/y",
        ] {
            groups.add(path.as_bytes());
        }
        assert_eq!(
            groups.text(),
            "3 files under /opt/py/3/lib, 1 under /etc, 2 elsewhere"
        );
    }
}
