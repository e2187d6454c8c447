//! Compares operations on files.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use super::normal::normal;
use super::verdict::Verdict;
use crate::answer::{Certainty, FileLine};
use crate::strace::{Fact, Word};

/// Compares the lines of `files --json` with the facts. The file system should be as the recorded
/// run left it.
pub fn compare(facts: &[Fact], lines: &[FileLine], verdict: &mut Verdict) {
    let mut names = Names::default();
    let mut told: HashSet<(Word, Vec<u8>)> = HashSet::new();
    for line in lines {
        let Some(path) = normal(&line.path.0, &mut verdict.ignored) else {
            continue;
        };
        for word in &line.access {
            told.extend(
                names
                    .of(&path, follows(*word))
                    .into_iter()
                    .map(|name| (*word, name)),
            );
        }
    }
    let mut permitted: HashSet<(Word, Vec<u8>)> = HashSet::new();
    for fact in facts {
        let paths: Vec<_> = fact
            .names
            .iter()
            .filter_map(|n| normal(n, &mut verdict.ignored))
            .collect();
        if paths.len() < fact.names.len() {
            continue;
        }
        let mut found = false;
        for word in &fact.words {
            for path in &paths {
                for name in names.of(path, fact.follows && follows(*word)) {
                    found |= told.contains(&(*word, name.clone()));
                    permitted.insert((*word, name));
                }
            }
        }
        if fact.required {
            *verdict
                .required
                .entry(format!("{:?}", fact.words[0]).to_lowercase())
                .or_default() += 1;
            if !found {
                verdict.missed.push(format!(
                    "{:?} {} ({})",
                    fact.words,
                    shown(&fact.names[0]),
                    fact.call
                ));
            }
        }
    }
    for line in lines.iter().filter(|l| l.certainty == Certainty::Seen) {
        let Some(path) = normal(&line.path.0, &mut verdict.ignored) else {
            continue;
        };
        for word in &line.access {
            verdict.claims += 1;
            let known = names
                .of(&path, follows(*word))
                .into_iter()
                .any(|name| permitted.contains(&(*word, name)));
            if !known {
                verdict
                    .invented
                    .push(format!("{word:?} {} ({})", shown(&path), line.via));
            }
        }
    }
}

/// True for words about the target of a symbolic link.
fn follows(word: Word) -> bool {
    matches!(
        word,
        Word::Read | Word::Write | Word::Exec | Word::Stat | Word::Dir | Word::Meta
    )
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).replace('\n', "\\n")
}

/// Further names of a path, cached.
#[derive(Default)]
struct Names {
    parents: HashMap<Vec<u8>, Vec<u8>>,
}

impl Names {
    /// The path itself, and the path with symbolic links in its directory resolved. With `follow`,
    /// also the fully resolved path.
    fn of(&mut self, path: &[u8], follow: bool) -> Vec<Vec<u8>> {
        let mut names = vec![path.to_vec()];
        let resolved = self.in_real_parent(path);
        if follow && let Ok(real) = fs::canonicalize(OsStr::from_bytes(path)) {
            names.push(real.as_os_str().as_bytes().to_vec());
        }
        names.push(resolved);
        names.sort_unstable();
        names.dedup();
        names
    }

    fn in_real_parent(&mut self, path: &[u8]) -> Vec<u8> {
        let Some(slash) = path.iter().rposition(|b| *b == b'/').filter(|s| *s > 0) else {
            return path.to_vec();
        };
        let parent = &path[..slash];
        let real = match self.parents.get(parent) {
            Some(known) => known.clone(),
            None => {
                let found = match fs::canonicalize(OsStr::from_bytes(parent)) {
                    Ok(real) => real.as_os_str().as_bytes().to_vec(),
                    Err(_) => self.in_real_parent(parent),
                };
                self.parents.insert(parent.to_vec(), found.clone());
                found
            }
        };
        let mut whole = if real == b"/" { Vec::new() } else { real };
        whole.extend_from_slice(&path[slash..]);
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Bytes;

    fn fact(words: &[Word], name: &str, required: bool) -> Fact {
        Fact {
            words: words.to_vec(),
            names: vec![name.into()],
            required,
            follows: true,
            call: "test".into(),
        }
    }

    fn line(path: &str, access: &[Word], certainty: Certainty) -> FileLine {
        FileLine {
            path: Bytes(path.into()),
            access: access.to_vec(),
            via: "library".into(),
            certainty,
        }
    }

    #[test]
    fn an_unreported_fact_counts_as_missed() {
        let mut verdict = Verdict::default();
        let lines = [line("/nowhere/a", &[Word::Read], Certainty::Seen)];
        compare(
            &[
                fact(&[Word::Read], "/nowhere/a", true),
                fact(&[Word::Write], "/nowhere/a", true),
            ],
            &lines,
            &mut verdict,
        );
        assert_eq!((verdict.missed.len(), verdict.invented.len()), (1, 0));
    }

    #[test]
    fn a_possible_claim_satisfies_but_is_never_an_invention() {
        let mut verdict = Verdict::default();
        let lines = [line(
            "/nowhere/a",
            &[Word::Read, Word::Write],
            Certainty::Possible,
        )];
        compare(
            &[fact(&[Word::Read], "/nowhere/a", true)],
            &lines,
            &mut verdict,
        );
        assert!(verdict.nothing_missed() && verdict.invented.is_empty());
    }

    #[test]
    fn a_seen_claim_needs_a_fact() {
        let mut verdict = Verdict::default();
        let lines = [line(
            "/nowhere/a",
            &[Word::Read, Word::Delete],
            Certainty::Seen,
        )];
        compare(
            &[fact(&[Word::Read], "/nowhere/a", false)],
            &lines,
            &mut verdict,
        );
        assert_eq!((verdict.claims, verdict.invented.len()), (2, 1));
    }
}
