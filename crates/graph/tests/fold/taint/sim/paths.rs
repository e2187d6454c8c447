//! Names: how a path is resolved, and the calls that change names.

use super::*;

impl World {
    /// The absolute path of a name, without following links.
    pub(super) fn absolute(&self, p: usize, name: &str) -> String {
        let joined = if name.starts_with('/') {
            name.into()
        } else {
            format!("{}/{name}", self.processes[p].cwd)
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in joined.split('/').filter(|c| !c.is_empty()) {
            if part == ".." {
                parts.pop();
            } else {
                parts.push(part);
            }
        }
        format!("/{}", parts.join("/"))
    }

    pub(super) fn resolve(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for _ in 0..8 {
            match self.links.get(&path) {
                Some(target) => path.clone_from(target),
                None => break,
            }
        }
        path
    }

    pub(super) fn directory_of(path: &str) -> &str {
        path.rsplit_once('/').map_or("/", |(d, _)| d)
    }

    pub(super) fn exists_directory(&self, path: &str) -> bool {
        let directory = World::directory_of(path);
        directory == "/w" || directory == self.directory
    }

    pub(super) fn truncate(&mut self, p: usize, name: &str) {
        let named = self.absolute(p, name);
        let path = self.resolve(&named);
        let Some(&inode) = self.paths.get(&path) else {
            return;
        };
        let shown = if self.processes[p].fixed {
            named
        } else {
            name.into()
        };
        self.call(
            p,
            Op::Truncate {
                fd: -1,
                path: bytes(&shown),
            },
            |_, op| op,
        );
        // The file is cut to some length, and the rest of its content stays.
        self.change(inode, Labels::new());
    }

    pub(super) fn shown(&self, p: usize, name: &str) -> Box<[u8]> {
        if self.processes[p].fixed {
            bytes(&self.absolute(p, name))
        } else {
            bytes(name)
        }
    }

    pub(super) fn rename(&mut self, p: usize, from: &str, to: &str) {
        let (old, new) = (self.absolute(p, from), self.absolute(p, to));
        if old == new || !self.exists_directory(&new) {
            return;
        }
        let (from, to) = (self.shown(p, from), self.shown(p, to));
        let rename = Op::Rename {
            from_dir: CWD,
            from,
            to_dir: CWD,
            to,
            flags: 0,
        };
        if let Some(inode) = self.paths.get(&old).copied() {
            if self.paths.get(&new) == Some(&inode) {
                return;
            }
            self.call(p, rename, |_, op| op);
            self.paths.remove(&old);
            self.name(&new, inode);
            // A process that gives a file its name decides which file is found there. That counts
            // as a flow.
            let labels = self.processes[p].memory.clone();
            self.inodes[inode].labels.extend(labels);
            self.inodes[inode].ctime = self.time;
        } else if let Some(target) = self.links.get(&old).cloned() {
            self.call(p, rename, |_, op| op);
            self.links.remove(&old);
            self.paths.remove(&new);
            self.linked.insert(new.clone(), self.time);
            self.links.insert(new, target);
        }
    }

    pub(super) fn rename_directory(&mut self, p: usize) {
        let new = if self.directory == "/w/d" {
            "/w/e"
        } else {
            "/w/d"
        };
        let old = std::mem::replace(&mut self.directory, new.into());
        let rename = Op::Rename {
            from_dir: CWD,
            from: bytes(&old),
            to_dir: CWD,
            to: bytes(new),
            flags: 0,
        };
        self.call(p, rename, |_, op| op);
        let moved = |path: &str| {
            path.strip_prefix(&format!("{old}/"))
                .map(|rest| format!("{new}/{rest}"))
        };
        for (path, inode) in std::mem::take(&mut self.paths) {
            self.name(&moved(&path).unwrap_or(path), inode);
        }
        for (path, target) in std::mem::take(&mut self.links) {
            let time = self.linked[&path];
            let path = moved(&path).unwrap_or(path);
            self.linked.insert(path.clone(), time);
            self.links.insert(path, target);
        }
        for process in &mut self.processes {
            if process.cwd == old {
                process.cwd = new.into();
            }
        }
    }

    pub(super) fn link(&mut self, p: usize, from: &str, to: &str) {
        let (old, new) = (self.absolute(p, from), self.absolute(p, to));
        let Some(&inode) = self.paths.get(&old) else {
            return;
        };
        if self.paths.contains_key(&new)
            || self.links.contains_key(&new)
            || !self.exists_directory(&new)
        {
            return;
        }
        let (from, to) = (self.shown(p, from), self.shown(p, to));
        self.call(
            p,
            Op::Link {
                from_dir: CWD,
                from,
                to_dir: CWD,
                to,
                flags: 0,
            },
            |_, op| op,
        );
        self.name(&new, inode);
        self.inodes[inode].ctime = self.time;
    }

    pub(super) fn symlink(&mut self, p: usize, target: &str, path: &str) {
        let (target, path_now) = (self.absolute(p, target), self.absolute(p, path));
        let taken = self.paths.contains_key(&path_now) || self.links.contains_key(&path_now);
        if taken || target == path_now || !self.exists_directory(&path_now) {
            return;
        }
        let path = self.shown(p, path);
        self.call(
            p,
            Op::Symlink {
                target: bytes(&target),
                dir: CWD,
                path,
            },
            |_, op| op,
        );
        self.linked.insert(path_now.clone(), self.time);
        self.links.insert(path_now, target);
    }

    pub(super) fn unlink(&mut self, p: usize, name: &str) {
        let path = self.absolute(p, name);
        if !self.paths.contains_key(&path) && !self.links.contains_key(&path) {
            return;
        }
        let shown = self.shown(p, name);
        self.call(
            p,
            Op::Unlink {
                dir: CWD,
                path: shown,
                directory: false,
            },
            |_, op| op,
        );
        self.links.remove(&path);
        if let Some(inode) = self.paths.remove(&path) {
            self.inodes[inode].ctime = self.time;
        }
    }

    pub(super) fn chdir(&mut self, p: usize, directory: &str) {
        if directory != "/w" && directory != self.directory {
            return;
        }
        self.call(
            p,
            Op::Chdir {
                fd: -1,
                path: bytes(directory),
                now: bytes(directory),
            },
            |_, op| op,
        );
        self.processes[p].cwd = directory.into();
    }
}
