//! Contents are decoded in a process of their own before the server decodes them.
//!
//! A decoder of another project may panic or ask for all memory at a hostile file, and a panic ends
//! the program. In: contents, and what will be done with them. Out: a problem if the rehearsing
//! process did not survive.
//!
//! Invariant: the server decodes no Parquet file and no PNG image whose rehearsal failed.
//!
//! The crate `inspection` reads hostile formats in another process, too. The page does not use it,
//! for three reasons:
//!
//! - The worker of `inspection` is a package of its own. The page shows Parquet files and images
//!   without that package, so the rehearsing process is this program itself.
//! - An inspector answers with facts about a content. The page shows any rows of a table.
//! - An inspector reads at most 64 MiB. The page shows Parquet files of up to 512 MiB.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::preview::parquet_rows;
use crate::problem::{Answer, Problem};

/// The hidden command of the program that rehearses.
pub const COMMAND: &str = "rehearse-content";

/// The most address space of a rehearsal, in bytes.
const MEMORY: u64 = 3 << 30;

/// The most processor time of a rehearsal, in seconds.
const SECONDS: u64 = 20;

/// The largest part that a rehearsal reads.
const LARGEST: u64 = 512 << 20;

/// The reading that is rehearsed.
#[derive(Debug, Clone, Copy)]
pub enum Rehearsal<'a> {
    /// Reading rows of a Parquet file: the first row, and their number.
    Rows(&'a [u8], usize, usize),
    /// Comparing two contents of the file with this name.
    Comparison(&'a [u8], &'a [u8], &'a [u8]),
}

impl Rehearsal<'_> {
    fn words(&self) -> Vec<String> {
        match self {
            Rehearsal::Rows(_, first, limit) => {
                vec!["rows".to_owned(), first.to_string(), limit.to_string()]
            }
            Rehearsal::Comparison(..) => vec!["comparison".to_owned()],
        }
    }

    fn send(&self, out: &mut impl Write) -> io::Result<()> {
        match *self {
            Rehearsal::Rows(content, ..) => send(out, content),
            Rehearsal::Comparison(name, a, b) => {
                send(out, name)?;
                send(out, a)?;
                send(out, b)
            }
        }
    }
}

/// Rehearses in a process of `program`.
///
/// # Errors
///
/// A bad request, if that process was killed, panicked, or could not be started.
pub fn rehearse(program: &Path, what: Rehearsal<'_>) -> Answer<()> {
    let fail = |why: String| {
        Problem::bad_request(format!("the content cannot be shown by its kind: {why}"))
    };
    let mut child = Command::new(program)
        .arg(COMMAND)
        .args(what.words())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| fail(format!("its test reader cannot be started: {error}")))?;
    // A reader that has died already reports that by its status.
    let _ = child.stdin.take().map(|mut input| what.send(&mut input));
    let status = child
        .wait()
        .map_err(|error| fail(format!("its test reader was lost: {error}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(fail(format!(
            "the file is damaged or too large for its reader, which ended with {status}"
        ))),
    }
}

/// The rehearsing process: reads contents from `input` and decodes them. The result is dropped.
///
/// # Errors
///
/// If the words or the input are not those of [`rehearse`]. A content that the decoder refuses is
/// no error: the server reports it.
pub fn perform(words: &[OsString], input: &mut impl Read) -> io::Result<()> {
    confine()?;
    let word = |at: usize| words.get(at).and_then(|word| word.to_str());
    let number = |at: usize| word(at).and_then(|word| word.parse().ok()).unwrap_or(0);
    match word(0) {
        Some("rows") => {
            let _ = parquet_rows::read(receive(input)?, number(1), number(2), &|| true);
        }
        Some("comparison") => {
            let (name, a, b) = (receive(input)?, receive(input)?, receive(input)?);
            let found = backstory_comparison::compare(&name, &a, &b);
            drop(found);
        }
        _ => return Err(io::Error::other("no such rehearsal")),
    }
    Ok(())
}

/// True if a decoder of another project reads this content: a Parquet file, or a PNG image.
pub fn is_needed(content: &[u8]) -> bool {
    content.starts_with(b"PAR1") || content.starts_with(b"\x89PNG")
}

/// Limits the memory and the processor time of this process.
fn confine() -> io::Result<()> {
    let limits = [
        (Resource::As, MEMORY),
        (Resource::Cpu, SECONDS),
        (Resource::Core, 0),
    ];
    for (resource, most) in limits {
        let now = rustix::process::getrlimit(resource);
        let most = now.maximum.map_or(most, |hard| hard.min(most));
        setrlimit(
            resource,
            Rlimit {
                current: Some(most),
                maximum: Some(most),
            },
        )?;
    }
    Ok(())
}

fn send(out: &mut impl Write, part: &[u8]) -> io::Result<()> {
    out.write_all(&(part.len() as u64).to_le_bytes())?;
    out.write_all(part)
}

fn receive(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    let mut part = Vec::new();
    input.take(length.min(LARGEST)).read_to_end(&mut part)?;
    match part.len() as u64 == length {
        true => Ok(part),
        false => Err(io::Error::other("a part is cut")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_arrives_at_its_rehearsal_as_it_was_sent() {
        let mut sent = Vec::new();
        let what = Rehearsal::Comparison(b"x.parquet", b"PAR1", b"\0\xff");
        what.send(&mut sent).unwrap();
        let mut input = sent.as_slice();
        assert_eq!(receive(&mut input).unwrap(), b"x.parquet");
        assert_eq!(receive(&mut input).unwrap(), b"PAR1");
        assert_eq!(receive(&mut input).unwrap(), b"\0\xff");
        assert!(receive(&mut &sent[..10]).is_err());
    }

    #[test]
    fn a_reader_that_dies_makes_a_problem_and_no_answer() {
        let rows = Rehearsal::Rows(b"PAR1", 0, 10);
        assert!(rehearse(Path::new("/bin/true"), rows).is_ok());
        let died = rehearse(Path::new("/bin/false"), rows).unwrap_err();
        assert_eq!(died.code, "bad_request");
        assert!(rehearse(Path::new("/no/such/program"), rows).is_err());
    }
}
