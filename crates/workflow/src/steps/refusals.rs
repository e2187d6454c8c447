//! Programs that refuse to overwrite a file, and to read through a symbolic link: compressors.
//!
//! On a terminal they ask the user; in a workflow that runs again they fail. A step with such a
//! program therefore removes what it made before.

use std::collections::BTreeSet;

use backstory_eventlog::event::Bytes;

use super::part::Part;
use super::{Line, Word};
use crate::paths::{base_name, relative};
use crate::tools::knowledge;

/// True if a command of the line is such a program and has no option to overwrite or to print.
pub fn refuses(line: &Line) -> bool {
    let words = line.words.iter().flat_map(|word| match word {
        Word::Program(text) | Word::Text(text) => vec![text.to_vec()],
        Word::Shell(text) => split(text),
        Word::Operator(operator) => vec![operator.as_bytes().to_vec()],
        Word::Set(..) => Vec::new(),
    });
    let words: Vec<Vec<u8>> = words.collect();
    let mut commands =
        words.split(|word| matches!(word.first(), Some(b'|' | b';' | b'&' | b'(' | b')')));
    commands.any(|command| {
        let Some((name, rest)) = command.split_first() else {
            return false;
        };
        let options = || rest.iter().filter(|word| word.starts_with(b"-"));
        let free = |option: &Vec<u8>| match option.strip_prefix(b"--") {
            Some(long) => matches!(long, b"force" | b"stdout" | b"to-stdout"),
            None => option.contains(&b'f') || option.contains(&b'c'),
        };
        let named = rest.len() > options().count();
        let redirected = rest
            .iter()
            .any(|word| matches!(word.first(), Some(b'<' | b'>')));
        let mut names = knowledge().programs.no_overwrite.iter();
        names.any(|known| known.as_bytes() == base_name(name))
            && named
            && !redirected
            && !options().any(free)
    })
}

/// The words and operators of shell language, cut at blanks and between commands.
fn split(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = vec![Vec::new()];
    for &byte in text {
        match byte {
            b' ' | b'\t' | b'\n' => words.push(Vec::new()),
            b'|' | b';' | b'&' | b'(' | b')' | b'<' | b'>' => {
                words.extend([vec![byte], Vec::new()])
            }
            byte => words
                .last_mut()
                .into_iter()
                .for_each(|word| word.push(byte)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The line that removes what a part's refusing command would overwrite: its outputs that it did
/// not read before.
pub fn removals<'p>(
    part: &'p Part,
    outputs: &BTreeSet<Bytes>,
) -> impl Iterator<Item = Line> + use<'p> {
    let refusing = part.lines.iter().find(|line| refuses(line));
    let made = part.effects.made.keys();
    let anew: Vec<&Bytes> = made
        .filter(|path| outputs.contains(*path) && !part.effects.read.contains_key(*path))
        .collect();
    let line = refusing
        .filter(|_| !anew.is_empty())
        .map(|line| removal(&line.cwd, &anew));
    line.into_iter()
}

/// `rm -f` of these files, named from the directory `cwd`.
pub fn removal(cwd: &Bytes, outputs: &[&Bytes]) -> Line {
    let name = |path: &&Bytes| match relative(path, cwd) {
        dashed if dashed.starts_with(b"-") => path.to_vec(),
        name => name.to_vec(),
    };
    let names = outputs.iter().map(|path| Word::Text(name(path).into()));
    let rm = [
        Word::Program(b"rm"[..].into()),
        Word::Text(b"-f"[..].into()),
    ];
    Line {
        cwd: cwd.clone(),
        words: rm.into_iter().chain(names).collect(),
        exit: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressor_refuses_to_overwrite_unless_an_option_allows_it_or_prints() {
        let shell = |text: &str| Line {
            cwd: b"/w"[..].into(),
            words: vec![Word::Shell(text.as_bytes().into())],
            exit: 0,
        };
        for text in [
            "gzip -nk a",
            "cd x && /usr/bin/xz -9 a",
            "sort a > b; bzip2 b",
        ] {
            assert!(refuses(&shell(text)), "{text}");
        }
        for text in [
            "gzip -nkf a",
            "gzip -c a > a.gz",
            "gzip < a > a.gz",
            "zstd --force a",
            "sort a | gzip -9 > a.gz",
            "echo gzip",
            "gunzip",
        ] {
            assert!(!refuses(&shell(text)), "{text}");
        }
    }
}
