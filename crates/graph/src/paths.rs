//! Absolute paths as small numbers.
//!
//! A path is a node of a trie: its directory and its last component. This makes it cheap to join a
//! relative path to a directory, to find the names below a renamed directory, and to compare paths.
//! No event copies bytes. The table never removes a node, because the log bounds the paths that a
//! run names.

use rustc_hash::FxHashMap;

/// An absolute path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId(pub u32);

/// The root directory.
pub const ROOT: PathId = PathId(0);

const NONE: u32 = u32::MAX;

/// One component.
#[derive(Debug, Clone)]
struct Component {
    parent: u32,
    first_child: u32,
    next_sibling: u32,
    start: u32,
    length: u32,
}

/// All paths of a run.
#[derive(Debug, Clone)]
pub struct PathTable {
    nodes: Vec<Component>,
    text: Vec<u8>,
    children: FxHashMap<(u32, u64), u32>,
    /// The child that was looked up last.
    last: u32,
}

impl Default for PathTable {
    fn default() -> PathTable {
        let root = Component {
            parent: 0,
            first_child: NONE,
            next_sibling: NONE,
            start: 0,
            length: 0,
        };
        PathTable {
            nodes: vec![root],
            text: Vec::new(),
            children: FxHashMap::default(),
            last: 0,
        }
    }
}

impl PathTable {
    /// The directory that contains `path`. The root is its own parent.
    pub fn parent(&self, path: PathId) -> PathId {
        PathId(self.node(path).parent)
    }

    /// The last component, which is empty for the root.
    pub fn name(&self, path: PathId) -> &[u8] {
        let node = self.node(path);
        &self.text[node.start as usize..(node.start + node.length) as usize]
    }

    /// True if the run named a path below it.
    pub fn has_children(&self, path: PathId) -> bool {
        self.node(path).first_child != NONE
    }

    /// How many paths there are.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The entry `name` of `directory`. The table adds it if it is new.
    pub fn child(&mut self, directory: PathId, name: &[u8]) -> PathId {
        // A program that goes through a directory again usually does so in the same order.
        let next = self.last + 1;
        let guess = self.nodes.get(next as usize);
        if guess.is_some_and(|node| node.parent == directory.0) && self.name(PathId(next)) == name {
            self.last = next;
            return PathId(next);
        }
        let found = self.find_or_add(directory, name);
        self.last = found.0;
        found
    }

    fn find_or_add(&mut self, directory: PathId, name: &[u8]) -> PathId {
        let mut probe = 0;
        loop {
            let key = (directory.0, hash(name) ^ probe);
            match self.children.get(&key) {
                Some(&found)
                    if self.name(PathId(found)) == name
                        && self.node(PathId(found)).parent == directory.0 =>
                {
                    return PathId(found);
                }
                // Another name has the same 64-bit hash, so the search goes on at the next key.
                Some(_) => probe += 1,
                None => return self.add(key, directory, name),
            }
        }
    }

    /// The whole path as bytes.
    pub fn bytes(&self, path: PathId) -> Vec<u8> {
        if path == ROOT {
            return b"/".to_vec();
        }
        let mut length = 0;
        let mut at = path;
        while at != ROOT {
            length += 1 + self.name(at).len();
            at = self.parent(at);
        }
        let mut bytes = vec![b'/'; length];
        at = path;
        while at != ROOT {
            let name = self.name(at);
            bytes[length - name.len()..length].copy_from_slice(name);
            length -= name.len() + 1;
            at = self.parent(at);
        }
        bytes
    }

    /// True if `path` is `directory` or lies below it.
    pub fn within(&self, mut path: PathId, directory: PathId) -> bool {
        while path != directory {
            if path == ROOT {
                return false;
            }
            path = self.parent(path);
        }
        true
    }

    /// `path` with the leading `from` replaced by `to`. `path` must be within `from`.
    pub fn moved(&mut self, path: PathId, from: PathId, to: PathId) -> PathId {
        if path == from {
            return to;
        }
        let name = self.name(path).to_vec();
        let parent = self.moved(self.parent(path), from, to);
        self.child(parent, &name)
    }

    /// Every path that the run named below `directory`, parents before children.
    pub fn below(&self, directory: PathId) -> Vec<PathId> {
        let mut found = Vec::new();
        let mut pending = vec![directory];
        while let Some(path) = pending.pop() {
            let mut child = self.node(path).first_child;
            while child != NONE {
                found.push(PathId(child));
                pending.push(PathId(child));
                child = self.nodes[child as usize].next_sibling;
            }
        }
        found
    }

    fn node(&self, path: PathId) -> &Component {
        &self.nodes[path.0 as usize]
    }

    fn add(&mut self, key: (u32, u64), directory: PathId, name: &[u8]) -> PathId {
        let id = self.nodes.len() as u32;
        let start = self.text.len() as u32;
        self.text.extend_from_slice(name);
        let next_sibling = std::mem::replace(&mut self.nodes[directory.0 as usize].first_child, id);
        self.nodes.push(Component {
            parent: directory.0,
            first_child: NONE,
            next_sibling,
            start,
            length: name.len() as u32,
        });
        self.children.insert(key, id);
        PathId(id)
    }
}

/// A map from most paths to values, indexed by the path's number.
#[derive(Debug, Clone)]
pub struct ByPath<T>(Vec<Option<T>>);

impl<T> Default for ByPath<T> {
    fn default() -> Self {
        ByPath(Vec::new())
    }
}

impl<T> ByPath<T> {
    /// The value of `path`.
    pub fn get(&self, path: &PathId) -> Option<&T> {
        self.0.get(path.0 as usize)?.as_ref()
    }

    /// True if `path` has a value.
    pub fn contains_key(&self, path: &PathId) -> bool {
        self.get(path).is_some()
    }

    /// Sets the value of `path`, and returns the old one.
    pub fn insert(&mut self, path: PathId, value: T) -> Option<T> {
        let at = path.0 as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at].replace(value)
    }

    /// Removes the value of `path`, and returns it.
    pub fn remove(&mut self, path: &PathId) -> Option<T> {
        self.0.get_mut(path.0 as usize)?.take()
    }
}

fn hash(name: &[u8]) -> u64 {
    use std::hash::Hasher;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(name);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(paths: &mut PathTable, text: &str) -> PathId {
        text.split('/')
            .filter(|c| !c.is_empty())
            .fold(ROOT, |at, c| paths.child(at, c.as_bytes()))
    }

    #[test]
    fn a_path_is_one_number_and_gives_its_bytes_back() {
        let mut paths = PathTable::default();
        let a = path(&mut paths, "/usr/lib/x");
        assert_eq!(a, path(&mut paths, "/usr/lib/x"));
        assert_eq!(paths.bytes(a), b"/usr/lib/x");
        assert_eq!(paths.bytes(ROOT), b"/");
    }

    #[test]
    fn a_moved_directory_takes_its_paths_along() {
        let mut paths = PathTable::default();
        let (from, deep) = (path(&mut paths, "/a/b"), path(&mut paths, "/a/b/c/d"));
        let to = path(&mut paths, "/z");
        assert_eq!(paths.below(from).len(), 2);
        let moved = paths.moved(deep, from, to);
        assert_eq!(paths.bytes(moved), b"/z/c/d");
        assert!(paths.within(deep, from) && !paths.within(moved, from));
    }
}
