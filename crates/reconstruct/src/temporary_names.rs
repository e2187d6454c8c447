//! Names that libc chooses for temporary files and directories.
//!
//! In: the calls by which files and directories are made, of the record and of the new execution.
//! Out: which of them libc may have made with a name of its own, and whether two such names can be
//! of one template.
//!
//! libc makes such a name from an address and a time, without a call that the record has. It writes
//! it over the `X`s of the caller's template, and passes the template itself to the kernel. So a
//! program that reads the name reads that memory. The calls are those of
//! `sysdeps/posix/tempname.c` in glibc:
//!
//! - `open(template, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600)`. By mkostemp(3), the
//!   caller's flags are some of `O_APPEND`, `O_CLOEXEC` and `O_SYNC`.
//! - `mkdir(template, 0700)`
//!
//! The letters are `[a-zA-Z0-9]`. A template of mkstemp(3) has six `X`s. The command mktemp(1) has
//! the same code from gnulib. It takes other numbers of `X`s, and ten by default.
//!
//! Other programs choose names in their own way, and may have a copy. Python and Perl make files
//! with `O_NOFOLLOW`. One that makes exactly such a call from a copy cannot be told apart.
//!
//! Absent: names of which the record has no creation, as those of tmpnam(3) and tempnam(3).

use libc::{O_APPEND, O_CLOEXEC, O_CREAT, O_EXCL, O_RDWR, O_SYNC};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Flags that libc always passes.
const ALWAYS: i32 = O_RDWR | O_CREAT | O_EXCL;
/// Flags that its caller may add.
const OF_CALLER: i32 = O_APPEND | O_CLOEXEC | O_SYNC;

/// Fewest letters of a template.
const FEWEST: usize = 6;
/// Most letters of a template.
const MOST: usize = 10;
/// Letters of a directory that Python names.
const OF_PYTHON: usize = 8;
/// Fewest letters that differ. Numbers that a program counts up differ in fewer, mostly. Of six
/// letters that were chosen twice, so few differ once in a million names.
const FEWEST_DIFFERING: usize = 3;

/// A call by which libc makes a file or directory whose name it has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Creation {
    /// A file, with these flags of the caller.
    File(i32),
    /// A directory.
    Directory,
}

impl Creation {
    /// By the flags and the mode of `open`.
    pub fn of_file(flags: i32, mode: u32) -> Option<Creation> {
        let own = flags & !ALWAYS;
        let is_libcs = flags & ALWAYS == ALWAYS && own & !OF_CALLER == 0 && mode == 0o600;
        is_libcs.then_some(Creation::File(own))
    }

    /// By the mode of `mkdir`.
    pub fn of_directory(mode: u32) -> Option<Creation> {
        (mode == 0o700).then_some(Creation::Directory)
    }
}

/// A recorded file or directory whose name libc may have chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemporaryName {
    /// The path, as it was passed.
    pub path: Vec<u8>,
    /// How it was made.
    pub creation: Creation,
    /// The thread that made it.
    pub thread: u32,
    /// A function of libc chose it, for certain. If not, the program may have chosen it.
    pub is_libcs: bool,
}

impl TemporaryName {
    /// The positions of the letters in which the name differs from one that came now. `None`: libc
    /// has not chosen both for one template.
    ///
    /// Python and Ruby make directories by the same call, with lower-case letters and digits, and
    /// have a copy of the name. So a directory that may be theirs needs a capital letter in one of
    /// the two names. Python's names have eight letters, and Ruby's at most seven, behind a `-`.
    pub fn letters(&self, creation: Creation, came: &[u8]) -> Option<Range<usize>> {
        if self.creation != creation {
            return None;
        }
        let letters = differing_letters(&self.path, came)?;
        let has_capital = |name: &[u8]| name[letters.clone()].iter().any(u8::is_ascii_uppercase);
        let is_sure = self.is_libcs
            || creation != Creation::Directory
            || letters.len() > OF_PYTHON
            || has_six_letters(came, &letters);
        (is_sure || has_capital(&self.path) || has_capital(came)).then_some(letters)
    }
}

/// The positions of the letters in which two names differ, if these can be those of one template.
/// From the first one that differs to the last one, each is a letter in both names.
fn differing_letters(one: &[u8], other: &[u8]) -> Option<Range<usize>> {
    if one.len() != other.len() {
        return None;
    }
    let differs = |at: &usize| one[*at] != other[*at];
    let differing: Vec<usize> = (0..one.len()).filter(differs).collect();
    let letters = *differing.first()?..differing.last()? + 1;
    let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric();
    let are_letters = |name: &[u8]| name[letters.clone()].iter().all(|byte| is_letter(&byte));
    // The others of the template are the same in both names by chance.
    let before = one[..letters.start].iter().rev().take_while(is_letter);
    let behind = one[letters.end..].iter().take_while(is_letter);
    let most = before.count() + letters.len() + behind.count();
    let is_chosen = differing.len() >= FEWEST_DIFFERING && letters.len() <= MOST && most >= FEWEST;
    (is_chosen && are_letters(one) && are_letters(other)).then_some(letters)
}

/// True if exactly six letters stand together around these, and not behind a `-`.
fn has_six_letters(name: &[u8], letters: &Range<usize>) -> bool {
    let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric();
    let before = name[..letters.start].iter().rev().take_while(is_letter);
    let start = letters.start - before.count();
    let run = name[start..].iter().take_while(is_letter).count();
    run == FEWEST && !name[..start].ends_with(b"-")
}

#[cfg(test)]
mod tests {
    use super::{Creation, TemporaryName, differing_letters};
    use libc::*;

    #[test]
    fn names_of_one_template_differ_in_letters_of_one_place() {
        let all = [
            ("/tmp/m_MugrXv", "/tmp/m_6Sf8QG", Some(7..13)),
            ("/tmp/m_MugrXv.txt", "/tmp/m_6Sf8QG.txt", Some(7..13)),
            // The first and the last letter are equal by chance.
            ("/tmp/m_MugrXv", "/tmp/m_MSf8Qv", Some(8..12)),
            ("tmp.0123456789", "tmp.abcdefghij", Some(4..14)),
            // The same name.
            ("/tmp/m_MugrXv", "/tmp/m_MugrXv", None),
            ("", "", None),
            // Another length, directory or beginning.
            ("/tmp/m_MugrXv", "/tmp/mm_6Sf8QG", None),
            ("/tmp/m_MugrXv", "/var/m_6Sf8QG", None),
            ("/tmp/m_MugrXv", "/tmp/n_6Sf8QG", None),
            // Other characters than libc's.
            ("/tmp/m_Mu-rXv", "/tmp/m_6Sf8QG", None),
            ("/tmp/m_MugrXv", "/tmp/m_6S.8QG", None),
            // A number that counts up, and too few letters for a template.
            ("/tmp/m_000099", "/tmp/m_000100", Some(10..13)),
            ("/tmp/m_000017", "/tmp/m_000018", None),
            ("/tmp/m_abc", "/tmp/m_xyz", None),
            // More letters than a template has.
            ("0123456789a", "abcdefghijk", None),
        ];
        for (one, other, found) in all {
            let (one, other) = (one.as_bytes(), other.as_bytes());
            assert_eq!(differing_letters(one, other), found, "{one:?} {other:?}");
            assert_eq!(differing_letters(other, one), found, "{other:?} {one:?}");
        }
    }

    #[test]
    fn a_directory_of_python_or_ruby_is_none_of_libc() {
        let file = Creation::File(0);
        for (recorded, came, directory) in [
            ("/tmp/d_mugrxvab", "/tmp/d_6sf8qGab", Some(7..13)),
            ("/tmp/d_mugRxvab", "/tmp/d_6sf8qgab", Some(7..13)),
            ("/tmp/d_mugrxvab", "/tmp/d_6sf8qgab", None),
            ("/tmp/D_mugrxvab", "/tmp/D_6sf8qgab", None),
            ("/tmp/d-mugrxv", "/tmp/d-6sf8qg", None),
            ("/tmp/d-mugrxV", "/tmp/d-6sf8qg", Some(7..13)),
            // Six letters, or more than eight, which are neither Python's nor Ruby's.
            ("/tmp/d_mugrxv", "/tmp/d_6sf8qg", Some(7..13)),
            ("/tmp/d_mugrxv.z", "/tmp/d_6sf8qg.z", Some(7..13)),
            ("/tmpdmugrxvabcd", "/tmpd6sf8qgefgh", Some(5..15)),
        ] {
            let letters = |recorded_as, is_libcs, creation| {
                let name = TemporaryName {
                    path: recorded.as_bytes().to_vec(),
                    creation: recorded_as,
                    thread: 1,
                    is_libcs,
                };
                name.letters(creation, came.as_bytes())
            };
            let made = Creation::Directory;
            assert_eq!(letters(made, false, made), directory, "{recorded}");
            let all = differing_letters(recorded.as_bytes(), came.as_bytes());
            assert_eq!(letters(made, true, made), all, "{recorded}");
            assert_eq!(letters(file, false, file), all, "{recorded}");
            assert_eq!(letters(file, false, made), None, "{recorded}");
        }
    }

    #[test]
    fn a_creation_by_libc_has_its_flags_and_its_mode() {
        let libcs = O_RDWR | O_CREAT | O_EXCL;
        let file = |flags, mode| Creation::of_file(flags, mode);
        assert_eq!(file(libcs, 0o600), Some(Creation::File(0)));
        let more = O_CLOEXEC | O_APPEND | O_SYNC;
        assert_eq!(file(libcs | more, 0o600), Some(Creation::File(more)));
        for (flags, mode) in [
            (libcs, 0o666),
            (libcs, 0o400),
            // Those of Python, of Valgrind, and of a program that only writes.
            (libcs | O_NOFOLLOW | O_CLOEXEC, 0o600),
            (libcs | O_TRUNC, 0o600),
            (O_WRONLY | O_CREAT | O_EXCL, 0o600),
            (O_RDWR | O_CREAT, 0o600),
            (libcs | O_ACCMODE, 0o600),
        ] {
            assert_eq!(file(flags, mode), None, "{flags:o} {mode:o}");
        }
        assert_eq!(Creation::of_directory(0o700), Some(Creation::Directory));
        assert_eq!(Creation::of_directory(0o755), None);
    }
}
