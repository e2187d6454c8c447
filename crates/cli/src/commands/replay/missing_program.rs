//! A program of a run that is gone, or is another build.
//!
//! In: its path, and its build id in the record. Out: words with the package that provides it, the
//! build that was recorded, and the one that is installed now.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_packages::Packages;
use backstory_replay::plan::{Deviations, EntrySource, Plan};

use super::deep::DeepRequest;
use crate::error::{Failure, chain};
use crate::text::shell::quote;

/// Most bytes of a program that are searched.
const MOST_BYTES: u64 = 1 << 28;

/// The failure of a plan. If it lacks the program itself, its package and its builds are named.
pub fn lacking(error: backstory_replay::Error, deep: Option<&DeepRequest>) -> Failure {
    let lacks = match (&error, deep) {
        (backstory_replay::Error::Lacking { what, .. }, Some(deep)) => {
            what.0.iter().any(|(path, _)| path[..] == *deep.program())
        }
        _ => false,
    };
    match deep.filter(|_| lacks) {
        Some(deep) => {
            let words = words(deep.program(), deep.build());
            Failure::not_found(format!("{}; {words}", chain(&error)))
        }
        None => error.into(),
    }
}

/// The note that the program of this machine runs in the place of the recorded one, and is another
/// build. `None`: it is the same one, the user chose another, or the builds are not known.
pub fn other_build(plan: &Plan, deep: &DeepRequest, given: &Deviations) -> Option<String> {
    let (program, recorded) = (deep.program(), deep.build()?);
    let path = Path::new(OsStr::from_bytes(program));
    if given.inputs.iter().any(|(old, _)| old == path) {
        return None;
    }
    // The root has the file behind a linked directory, as `/bin` is one.
    let real = fs::canonicalize(path).map_or(Cow::Borrowed(program), |real| {
        Cow::Owned(real.into_os_string().into_encoded_bytes())
    });
    let entries = plan.entries.iter();
    let mut here = entries.filter_map(|entry| match &entry.what {
        EntrySource::Mounted(from) | EntrySource::Copied(from) => Some((&entry.path, from)),
        _ => None,
    });
    let (_, from) = here.find(|(path, _)| **path == *program || **path == *real)?;
    match installed(Path::new(OsStr::from_bytes(from))) {
        InstalledProgram::Build(id) if id != recorded => Some(format!(
            "another build than the recorded one runs: {}",
            words(program, Some(recorded))
        )),
        // A script has no build, and the recorded one is that of its interpreter.
        _ => None,
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

/// The program that is installed at a path.
enum InstalledProgram {
    /// Nothing is there.
    Absent,
    /// It is too large to be searched.
    Large,
    /// It has no build id: a script, for example.
    Unnamed,
    /// It has this build id.
    Build(String),
}

fn installed(path: &Path) -> InstalledProgram {
    match fs::metadata(path) {
        Err(_) => InstalledProgram::Absent,
        Ok(found) if found.len() > MOST_BYTES => InstalledProgram::Large,
        Ok(_) => match fs::read(path).ok().as_deref().and_then(build_id) {
            Some(id) => InstalledProgram::Build(id),
            None => InstalledProgram::Unnamed,
        },
    }
}

/// The words for a program that the store does not have. `recorded`: the build id in the record.
pub fn words(program: &[u8], recorded: Option<&str>) -> String {
    let name = quote(program);
    let package = Packages::new(Path::new("/")).package(program);
    let from = match &package {
        Some(package) => format!("package {package} provides it"),
        None => "no known package provides it".to_owned(),
    };
    let then = match recorded {
        Some(id) => format!("build {id} was recorded; "),
        None => String::new(),
    };
    let here = match installed(Path::new(OsStr::from_bytes(program))) {
        InstalledProgram::Absent => format!("{name} is not on this machine"),
        InstalledProgram::Large => "another build is on this machine".to_owned(),
        InstalledProgram::Build(id) => {
            format!("build {id} is on this machine, and --binary {name} runs it")
        }
        InstalledProgram::Unnamed => {
            format!("a program without build id is on this machine, and --binary {name} runs it")
        }
    };
    format!("{from}; {then}{here}")
}

/// Bytes in hexadecimal. `None` without any byte.
pub fn hex(bytes: &[u8]) -> Option<String> {
    let digits = || bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    (!bytes.is_empty()).then(digits)
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
            return hex(content);
        }
        notes = notes.get(start + size.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use backstory_packages::Packages;
    use backstory_testkit::need::skipped;

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
        let words = words(b"/nowhere/program", None);
        assert!(
            words.contains("/nowhere/program is not on this machine"),
            "{words}"
        );
        assert!(!words.contains("recorded"), "{words}");
    }

    #[test]
    fn a_program_of_a_package_is_named_with_the_package_and_both_builds() {
        let path = std::fs::canonicalize("/bin/cat").unwrap();
        let program = path.as_os_str().as_encoded_bytes();
        let Some(package) = Packages::new(Path::new("/")).package(program) else {
            return skipped("the package of a program", "no package provides /bin/cat");
        };
        assert!(package.to_string().contains(' '), "a version: {package}");
        let said = words(program, Some("00c0ffee"));
        for part in [
            format!("package {package} provides it; build 00c0ffee was recorded; "),
            format!(
                " is on this machine, and --binary {} runs it",
                path.display()
            ),
        ] {
            assert!(said.contains(&part), "{part}: {said}");
        }
        let installed = build_id(&std::fs::read(&path).unwrap());
        if let Some(id) = installed {
            assert!(said.contains(&format!("; build {id} is on")), "{said}");
        }
    }
}
