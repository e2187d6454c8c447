//! Writes many paths as one pattern: `lib/*.o`.

use backstory_workflow::paths::{base_name, parent, relative};
use backstory_workflow::shell::quote;

/// The shortest pattern with one `*` that fits all names: the directory they share, and the
/// beginning and the ending that all names have. One path stands for itself.
pub fn pattern(paths: &[&[u8]]) -> Vec<u8> {
    let Some((first, rest)) = paths.split_first() else {
        return Vec::new();
    };
    if rest.iter().all(|path| path == first) {
        return first.to_vec();
    }
    let directory = |path: &[u8]| match path.contains(&b'/') {
        true => parent(path).to_vec(),
        false => Vec::new(),
    };
    let mut shared = directory(first);
    let mut deep = false;
    for path in rest {
        let other = directory(path);
        while !is_below(&other, &shared) {
            deep = true;
            shared = directory(&shared);
        }
        deep |= other != shared;
    }
    let ending = |path: &[u8]| {
        let name = base_name(path);
        let dot = name
            .iter()
            .rposition(|&byte| byte == b'.')
            .filter(|&at| at > 0);
        dot.map_or(Vec::new(), |at| name[at..].to_vec())
    };
    let mut end = ending(first);
    if rest.iter().any(|path| ending(path) != end) {
        end.clear();
    }
    let mut out = shared;
    if !out.is_empty() && !out.ends_with(b"/") {
        out.push(b'/');
    }
    if deep {
        out.extend_from_slice(b"**/");
    } else if let Some(begin) = common_beginning(paths, end.len()) {
        out.extend_from_slice(begin);
    }
    out.push(b'*');
    out.extend(end);
    out
}

/// A path for a reader of a command that ran in `cwd`. It is relative if it lies below that
/// directory, or below one of the two directories above.
pub fn near(path: &[u8], cwd: &[u8]) -> Vec<u8> {
    if !path.starts_with(b"/") {
        return path.to_vec();
    }
    let mut directory = cwd;
    for up in [&b""[..], b"../", b"../../"] {
        // A directory of few components is shared by chance.
        let deep = directory.iter().filter(|byte| **byte == b'/').count() > 1;
        let below = relative(path, directory);
        if below.len() < path.len() && (deep || up.is_empty()) {
            return [up, below].concat();
        }
        directory = parent(directory);
    }
    path.to_vec()
}

/// The pattern for a reader: quoted for a shell if it has characters other than those that names
/// mostly have.
pub fn pattern_text(paths: &[&[u8]]) -> String {
    let pattern = pattern(paths);
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/*._-+,:=@%~#".contains(byte);
    match pattern.iter().all(plain) && paths.iter().any(|path| path != &paths[0]) {
        true => String::from_utf8_lossy(&pattern).into_owned(),
        false => quote(&pattern),
    }
}

/// The beginning that all names have before their last `ending` bytes, if it tells anything.
fn common_beginning<'p>(paths: &[&'p [u8]], ending: usize) -> Option<&'p [u8]> {
    /// A single byte that names share is most often chance.
    const LEAST: usize = 2;
    let mut stems = paths.iter().map(|path| {
        let name = base_name(path);
        &name[..name.len() - ending]
    });
    let first = stems.next()?;
    let shared = stems.fold(first.len(), |shared, stem| {
        let same = first[..shared].iter().zip(stem);
        same.take_while(|(a, b)| a == b).count()
    });
    (shared >= LEAST).then(|| &first[..shared])
}

fn is_below(path: &[u8], directory: &[u8]) -> bool {
    directory.is_empty()
        || directory == b"/"
        || path
            .strip_prefix(directory)
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_named_from_a_directory_that_is_near() {
        let shown = |path: &str, cwd: &str| {
            String::from_utf8(near(path.as_bytes(), cwd.as_bytes())).unwrap()
        };
        assert_eq!(shown("/w/p/po/x.gmo", "/w/p/po"), "x.gmo");
        assert_eq!(shown("/w/p/debian/x", "/w/p/po"), "../debian/x");
        assert_eq!(shown("/w/q/x", "/w/p/po"), "/w/q/x");
        assert_eq!(shown("./x", "/w/p"), "./x");
    }

    #[test]
    fn many_paths_are_one_pattern() {
        let shown = |paths: &[&str]| {
            let paths: Vec<&[u8]> = paths.iter().map(|path| path.as_bytes()).collect();
            String::from_utf8(pattern(&paths)).unwrap()
        };
        assert_eq!(shown(&["lib/a.o", "lib/b.o"]), "lib/*.o");
        assert_eq!(shown(&["a.o", "b.o"]), "*.o");
        assert_eq!(shown(&["lib/a.o"]), "lib/a.o");
        assert_eq!(shown(&["lib/a.o", "lib/x/b.o"]), "lib/**/*.o");
        assert_eq!(shown(&["lib/a.o", "src/b.o"]), "**/*.o");
        assert_eq!(shown(&["/w/a", "/w/b.txt"]), "/w/*");
        assert_eq!(shown(&["/w/a", "/v/b"]), "/**/*");
        assert_eq!(shown(&["out/o.0", "out/o.1", "out/o.12"]), "out/o.*");
        assert_eq!(shown(&["test_a.py", "test_b.py"]), "test_*.py");
        assert_eq!(shown(&["ab.b.o", "ab.o"]), "ab*.o");
    }
}
