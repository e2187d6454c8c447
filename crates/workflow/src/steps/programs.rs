//! Programs by name: shells, wrappers, builders and interpreters.
//!
//! The names come from [`crate::tools`]. A directory before the name and a version behind it are
//! ignored: `/usr/bin/python3.11` is `python`.

use backstory_graph::model::Relation;

use crate::paths::base_name;
use crate::recording::Recording;
use crate::tools::knowledge;

/// The name of a program without directory and version.
pub fn plain_name(name: &[u8]) -> String {
    String::from_utf8_lossy(without_version(base_name(name))).into_owned()
}

/// A name without the version at its end.
fn without_version(name: &[u8]) -> &[u8] {
    let is_version = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let last = name.iter().rposition(|byte| !is_version(byte));
    &name[..last.map_or(0, |at| at + 1)]
}

/// True if a program is one of these, with or without a version. A long history asks this some
/// times for each process, so no text is copied.
pub fn is_one(name: &[u8], of: &[String]) -> bool {
    let whole = base_name(name);
    let plain = without_version(whole);
    let mut known = of.iter().map(String::as_bytes);
    known.any(|known| known == whole || known == plain)
}

/// True if this is the name of a shell.
pub fn names_shell(name: &[u8]) -> bool {
    is_one(name, &knowledge().programs.shells)
}

/// The program of an activity: the executed file, else the name it was called by.
pub fn program(recording: &Recording, at: usize) -> &[u8] {
    let activity = &recording.activities[at];
    let name = activity.exec_path.as_deref();
    name.or(activity.argv.first().map(|arg| &**arg))
        .unwrap_or_default()
}

/// Paths that an activity's process touched in this way.
fn paths(
    recording: &Recording,
    at: usize,
    relation: Relation,
) -> impl Iterator<Item = &[u8]> + use<'_> {
    let edges = recording.edges[at].iter();
    edges
        .filter(move |edge| edge.relation == relation)
        .map(|edge| &*recording.entity(edge.entity).path)
}

/// True if an activity's program is a shell, or a script of one.
pub fn is_shell(recording: &Recording, at: usize) -> bool {
    names_shell(program(recording, at)) || paths(recording, at, Relation::Execute).any(names_shell)
}

/// True if the program runs commands by the user's rules: `make`, `snakemake`, or a script whose
/// first line names one of them (`debian/rules`).
pub fn is_builder(recording: &Recording, at: usize) -> bool {
    let builders = &knowledge().programs.builders;
    is_one(program(recording, at), builders)
        || paths(recording, at, Relation::Execute).any(|path| is_one(path, builders))
}

/// True if the kernel ran an interpreter for the program, as the program's first line says.
pub fn is_interpreted(recording: &Recording, at: usize) -> bool {
    let path = program(recording, at);
    let known = &knowledge().programs;
    paths(recording, at, Relation::Execute).any(|other| {
        let interprets = is_one(other, &known.shells)
            || is_one(other, &known.interpreters)
            || is_one(other, &known.launchers)
            || is_one(other, &known.wrappers);
        interprets && plain_name(other) != plain_name(path)
    })
}

/// True if a program that was not seen to write to a file it opened has certainly not written.
///
/// Such a program writes without libc's buffers, so that the recorder sees each write. `sh` counts
/// unless it has a library that edits command lines. With one, it is bash or zsh, whose builtins
/// print through libc; without one, it is dash or alike.
pub fn is_unbuffered(recording: &Recording, at: usize) -> bool {
    let line = std::iter::once(at).chain(recording.ancestors(at));
    let mut programs = line.filter(|&at| recording.activities[at].epoch > 0);
    let Some(at) = programs.next() else {
        return false;
    };
    let edits_lines = || {
        paths(recording, at, Relation::Read).any(|path| {
            let mut libraries = knowledge().shell.line_editing_libraries.iter();
            libraries.any(|library| base_name(path).starts_with(library.as_bytes()))
        })
    };
    paths(recording, at, Relation::Execute).any(|path| {
        is_one(path, &knowledge().programs.unbuffered) || base_name(path) == b"sh" && !edits_lines()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_not_part_of_a_programs_name() {
        assert!(is_one(
            b"/usr/bin/python3.11",
            &knowledge().programs.interpreters
        ));
        assert!(names_shell(b"ksh93") && !names_shell(b"shuf"));
        assert_eq!(plain_name(b"/usr/bin/gcc-12.2"), "gcc-");
        assert_eq!(plain_name(b"7.4"), "");
        assert_eq!(plain_name(b"/opt/\xff1"), "\u{fffd}");
        assert!(is_one(b"/usr/bin/lua5.4", &["lua5.4".to_owned()]));
    }
}
