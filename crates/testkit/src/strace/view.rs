//! Names of files for a process with a root directory of its own.
//!
//! The names in a trace are those of the calling process. After `pivot_root` or `chroot` they start
//! at another directory than those of the record. A view keeps that directory, and the bind mounts
//! that lead back to the first root directory. It goes from a process to its children at a fork.
//! Effects on other processes of the same mount namespace are not followed.

use std::collections::HashMap;

use super::line::Arg;
use super::lookup;

/// The directory that a process sees as `/`, and what is mounted below it. All names here are those
/// of the first process.
#[derive(Debug, Clone)]
pub struct View {
    root: Vec<u8>,
    /// Pairs of mount point and mounted directory, in the order of the mounts.
    binds: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The files of a process's descriptors, which a mount may name through `/proc/self/fd`.
pub type Descriptors = HashMap<i64, Vec<u8>>;

impl Default for View {
    fn default() -> View {
        View {
            root: b"/".to_vec(),
            binds: Vec::new(),
        }
    }
}

impl View {
    /// The names that the first process has for the file that this process calls `path`: below the
    /// root directory, and without bind mounts. The list is empty if both agree on the name.
    pub fn others(&self, path: &[u8]) -> Vec<Vec<u8>> {
        let below = self.below_root(path);
        let mut found = vec![self.without_binds(&below), below];
        found.dedup();
        found.retain(|name| name != path);
        found
    }

    /// Follows a successful call that changes the view.
    pub fn follow(&mut self, cwd: &[u8], open: &Descriptors, name: &str, args: &[Arg]) {
        let argument = |view: &View, path: &[u8]| match descriptor(path, open) {
            Some(path) => path.clone(),
            None => view.outside(&lookup::absolute(cwd, path)),
        };
        match (name, args) {
            ("chroot", [Arg::Text { bytes, .. }]) => self.root = argument(self, bytes),
            ("pivot_root", [Arg::Text { bytes: new, .. }, Arg::Text { bytes: old, .. }]) => {
                let old = argument(self, old);
                let new = argument(self, new);
                let before = std::mem::replace(&mut self.root, new);
                if old != self.root {
                    self.binds.push((old, before));
                }
            }
            ("mount", [source, Arg::Text { bytes: target, .. }, _, flags, ..])
                if flags.has("MS_BIND") && !flags.has("MS_REMOUNT") =>
            {
                let Arg::Text { bytes: source, .. } = source else {
                    return;
                };
                let (source, target) = (argument(self, source), argument(self, target));
                if source != target {
                    self.binds.push((target, source));
                }
            }
            ("umount" | "umount2", [Arg::Text { bytes, .. }, ..]) => {
                let below = self.below_root(&lookup::absolute(cwd, bytes));
                self.binds.retain(|(target, _)| *target != below);
            }
            _ => {}
        }
    }

    /// The name that the first process has for `path`.
    pub fn outside(&self, path: &[u8]) -> Vec<u8> {
        self.without_binds(&self.below_root(path))
    }

    fn below_root(&self, path: &[u8]) -> Vec<u8> {
        replaced(path, b"/", &self.root)
    }

    fn without_binds(&self, path: &[u8]) -> Vec<u8> {
        let newest = self.binds.iter().rev();
        newest
            .filter(|(target, _)| is_below(path, target))
            .map(|(target, source)| replaced(path, target, source))
            .next()
            .unwrap_or_else(|| path.to_vec())
    }
}

/// The file of the descriptor that `path` names.
fn descriptor<'a>(path: &[u8], open: &'a Descriptors) -> Option<&'a Vec<u8>> {
    let number = path.strip_prefix(b"/proc/self/fd/")?;
    open.get(&std::str::from_utf8(number).ok()?.parse().ok()?)
}

fn is_below(path: &[u8], directory: &[u8]) -> bool {
    directory == b"/"
        || path
            .strip_prefix(directory)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// `path`, which is below directory `from`, as if it were below `to`.
fn replaced(path: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let rest = match from {
        b"/" => path,
        _ => &path[from.len()..],
    };
    let to = to.strip_suffix(b"/").unwrap_or(to);
    let whole = [to, rest].concat();
    match whole.len() > 1 && whole.ends_with(b"/") {
        true => whole[..whole.len() - 1].to_vec(),
        false if whole.is_empty() => b"/".to_vec(),
        false => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strace::line::call;

    /// The view after the calls, all of them made in directory `/`.
    fn after(calls: &[&str]) -> View {
        let (mut view, mut open) = (View::default(), Descriptors::new());
        for text in calls {
            let (name, args, returned) = call(text).unwrap();
            view.follow(b"/", &open, &name, &args);
            if let Some(path) = returned.path {
                open.insert(returned.value.unwrap(), view.outside(&path));
            }
        }
        view
    }

    fn hex(text: &str) -> String {
        text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
    }

    fn pivot(new: &str, old: &str) -> String {
        format!("pivot_root(\"{}\", \"{}\") = 0", hex(new), hex(old))
    }

    fn bind(source: &str, target: &str) -> String {
        let (source, target) = (hex(source), hex(target));
        format!("mount(\"{source}\", \"{target}\", NULL, MS_BIND|MS_REC, NULL) = 0")
    }

    #[test]
    fn a_name_after_pivot_root_is_below_the_new_root_directory() {
        let view = after(&[&pivot("/tmp", "/tmp/old")]);
        assert_eq!(view.others(b"/proc"), [b"/tmp/proc"]);
        assert_eq!(view.others(b"/old/etc/x")[0], b"/etc/x");
    }

    #[test]
    fn a_bind_mount_of_the_old_root_directory_leads_back_to_its_names() {
        let view = after(&[
            &pivot("/tmp", "/tmp/old"),
            &format!(
                "openat(AT_FDCWD<{0}>, \"{1}\") = 6<{1}>",
                hex("/"),
                hex("/old")
            ),
            &bind("/proc/self/fd/6", "/new"),
            &pivot("/new", "/new"),
        ]);
        assert!(view.others(b"/etc/x").is_empty());
    }

    #[test]
    fn a_process_that_mounts_nothing_has_no_other_names() {
        assert!(after(&[]).others(b"/a").is_empty());
    }
}
