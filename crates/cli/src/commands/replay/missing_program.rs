//! A program of a run that is not there any more: the package that provides it, and the build that
//! is installed now.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_packages::Packages;

use crate::error::{Failure, chain};
use crate::text::shell::quote;

/// Most bytes of a program that are searched.
const MOST_BYTES: u64 = 1 << 28;

/// The failure of a plan. If it lacks the program itself, its package and build are named.
pub fn lacking(error: backstory_replay::Error, program: Option<&[u8]>) -> Failure {
    let lacks = match (&error, program) {
        (backstory_replay::Error::Lacking { what, .. }, Some(program)) => {
            what.0.iter().any(|(path, _)| path[..] == *program)
        }
        _ => false,
    };
    match program.filter(|_| lacks) {
        Some(program) => Failure::not_found(format!("{}; {}", chain(&error), words(program))),
        None => error.into(),
    }
}

/// The message that earlier requests are looked for with the user's changes.
pub fn searched_changed(error: &backstory_replay::Error) -> String {
    format!(
        "the earlier requests that the request needs are looked for with the changes, because the \
         recorded program cannot run without them: {}",
        chain(error)
    )
}

/// The words for a program that the store does not have.
pub fn words(program: &[u8]) -> String {
    let name = quote(program);
    let package = Packages::new(Path::new("/")).package(program);
    let from = match &package {
        Some(package) => format!("package {package} provides it"),
        None => "no known package provides it".to_owned(),
    };
    let path = Path::new(OsStr::from_bytes(program));
    let here = match fs::metadata(path) {
        Err(_) => format!("{name} is not on this machine"),
        Ok(found) if found.len() > MOST_BYTES => "another build is on this machine".to_owned(),
        Ok(_) => match fs::read(path).ok().as_deref().and_then(build_id) {
            Some(id) => format!("build {id} is on this machine, and --binary {name} runs it"),
            None => format!(
                "a program without build id is on this machine, and --binary {name} runs it"
            ),
        },
    };
    format!("{from}; {here}")
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    let found = bytes.get(at..at.checked_add(N)?)?;
    let mut whole = [0; 8];
    whole[..N].copy_from_slice(found);
    usize::try_from(u64::from_le_bytes(whole)).ok()
}

/// The build id in the notes of a 64-bit ELF file (`elf(5)`), in hexadecimal.
fn build_id(elf: &[u8]) -> Option<String> {
    const PT_NOTE: usize = 4;
    (elf.get(..5)? == b"\x7fELF\x02").then_some(())?;
    let (table, size, count) = (
        number::<8>(elf, 0x20)?,
        number::<2>(elf, 0x36)?,
        number::<2>(elf, 0x38)?,
    );
    (0..count).find_map(|index| {
        let at = table.checked_add(index.checked_mul(size)?)?;
        (number::<4>(elf, at)? == PT_NOTE).then_some(())?;
        let from = number::<8>(elf, at.checked_add(8)?)?;
        let length = number::<8>(elf, at.checked_add(0x20)?)?;
        id_in_notes(elf.get(from..from.checked_add(length)?)?)
    })
}

fn id_in_notes(mut notes: &[u8]) -> Option<String> {
    const NT_GNU_BUILD_ID: usize = 3;
    const HEADER: usize = 12;
    loop {
        let (name, size, kind) = (
            number::<4>(notes, 0)?,
            number::<4>(notes, 4)?,
            number::<4>(notes, 8)?,
        );
        let start = HEADER + name.checked_next_multiple_of(4)?;
        let content = notes.get(start..start.checked_add(size)?)?;
        if kind == NT_GNU_BUILD_ID && notes.get(HEADER..HEADER + name)? == b"GNU\0" {
            return Some(content.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = notes.get(start + size.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::{build_id, words};

    #[test]
    fn a_cut_program_has_no_build_id_and_a_whole_one_at_most_one() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let whole = build_id(&own);
        assert!(whole.is_none_or(|id| id.len() >= 16 && id.bytes().all(|b| b.is_ascii_hexdigit())));
        for length in (0..4096.min(own.len())).step_by(7) {
            let _ = build_id(&own[..length]);
        }
    }

    #[test]
    fn a_program_that_is_nowhere_is_named() {
        let words = words(b"/nowhere/program");
        assert!(
            words.contains("/nowhere/program is not on this machine"),
            "{words}"
        );
    }
}
