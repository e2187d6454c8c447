//! Reading managers' records: small files, encodings, facts about directories.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use backstory_files::regular;
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};

/// Decodes hexadecimal digits.
pub fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
    bytes.try_into().ok()
}

/// Decodes base 64, URL-safe or not, with or without padding.
pub fn base64<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.trim_end_matches('=').as_bytes();
    let url_safe = text.iter().any(|byte| matches!(byte, b'-' | b'_'));
    let encoding = if url_safe {
        BASE64URL_NOPAD
    } else {
        BASE64_NOPAD
    };
    encoding.decode(text).ok()?.try_into().ok()
}

/// Facts about directories, each looked up once. The files of a large tree share few directories.
pub struct Remembered<T> {
    known: HashMap<PathBuf, T>,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Remembered {
            known: HashMap::new(),
        }
    }
}

impl<T> Remembered<T> {
    pub fn of(&mut self, path: &Path, find: impl FnOnce(&Path) -> T) -> &T {
        // Looked up twice, because the borrow checker does not accept a conditionally returned
        // borrow.
        if !self.known.contains_key(path) {
            self.known.insert(path.to_owned(), find(path));
        }
        &self.known[path]
    }
}

/// The directories above a path that have this name, nearest first.
pub fn above<'p>(
    path: &'p Path,
    is_it: impl Fn(&str) -> bool + 'p,
) -> impl Iterator<Item = &'p Path> {
    path.ancestors()
        .skip(1)
        .filter(move |dir| has_name(dir, &is_it))
}

/// The same, and the directory itself.
pub fn at_or_above<'p>(
    directory: &'p Path,
    is_it: impl Fn(&str) -> bool + 'p,
) -> impl Iterator<Item = &'p Path> {
    directory
        .ancestors()
        .filter(move |dir| has_name(dir, &is_it))
}

fn has_name(directory: &Path, is_it: &impl Fn(&str) -> bool) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str());
    name.is_some_and(is_it)
}

/// A small text file of a manager. `None` if it does not exist, is not text, or is too large.
pub fn text(path: &Path) -> Option<String> {
    String::from_utf8(small(path, 64 << 20)?).ok()
}

/// A file of a manager. `None` if it does not exist or has more than `most` bytes.
pub fn small(path: &Path, most: u64) -> Option<Vec<u8>> {
    let file = regular::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    (length <= most).then(|| file.take(most).read_to_end(&mut bytes).ok())??;
    Some(bytes)
}

/// The hash of a path. Storing some hundred thousand paths as text would take too much memory.
pub fn hash(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(path);
    hasher.finish()
}

/// The file that a record names, relative to `base`. `..` leads out of it.
pub fn within(base: &Path, file: &str) -> PathBuf {
    let mut path = base.to_owned();
    for component in Path::new(file).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

/// Splits `serde_json-1.0.1` into `serde_json` and `1.0.1`. The version begins with the first digit
/// after a dash.
pub fn split_version(text: &str) -> Option<(String, String)> {
    let at = text
        .match_indices('-')
        .map(|(at, _)| at)
        .find(|at| *at > 0 && text[at + 1..].starts_with(|c: char| c.is_ascii_digit()))?;
    Some((text[..at].to_owned(), text[at + 1..].to_owned()))
}
