//! Programs that run the command they are given: wrappers such as `env`, and version managers such
//! as `pyenv exec`.
//!
//! In: an activity of a recording. Out: whether its program is one of them, and what it prints
//! itself. The names come from [`crate::tools`]. An entry of two words names a subcommand:
//! `conda run` only starts another program, while `conda install` does work.

use super::programs::{is_one, names_shell, program};
use crate::paths::base_name;
use crate::recording::Recording;
use crate::tools::knowledge;

/// A program that runs the command it is given, by what it prints itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrapperKind {
    /// Nothing: `nice`.
    Launcher,
    /// Facts about the command, as errors: `time`.
    Meter,
    /// Possibly something: `find`.
    Other,
}

/// The kind of wrapper that an activity's program is. `None` if it is no wrapper.
pub fn wrapper(recording: &Recording, at: usize) -> Option<WrapperKind> {
    let known = &knowledge().programs;
    let calls = calls(recording, at);
    let is = |entries: &[String]| calls.iter().any(|call| call.is_one(entries));
    match () {
        () if is(&known.launchers) => Some(WrapperKind::Launcher),
        () if is(&known.meters) => Some(WrapperKind::Meter),
        () if is(&known.wrappers) => Some(WrapperKind::Other),
        () => None,
    }
}

/// True if the program runs the compiler whose command line follows its name, or takes the result
/// from its cache: `ccache gcc -c m.c`. It is no wrapper, because it writes the output itself.
pub fn is_compiler_launcher(name: &[u8]) -> bool {
    is_one(name, &knowledge().programs.compiler_launchers)
}

/// A name by which a program was called, and what follows it.
struct ProgramCall<'r> {
    name: &'r [u8],
    arguments: Vec<&'r [u8]>,
}

impl ProgramCall<'_> {
    fn is_one(&self, entries: &[String]) -> bool {
        entries.iter().any(|entry| match entry.split_once(' ') {
            None => is_one(self.name, std::slice::from_ref(entry)),
            Some((name, subcommand)) => {
                let mut words = self.arguments.iter().filter(|word| !word.starts_with(b"-"));
                is_one(self.name, &[name.to_owned()])
                    && words
                        .next()
                        .is_some_and(|word| *word == subcommand.as_bytes())
            }
        })
    }
}

/// The executed file, the name it was called by, and the script if it is an interpreter.
fn calls(recording: &Recording, at: usize) -> Vec<ProgramCall<'_>> {
    let known = &knowledge().programs;
    let argv = &recording.activities[at].argv;
    let arguments: Vec<&[u8]> = argv.iter().skip(1).map(|word| &**word).collect();
    let path = program(recording, at);
    let mut calls = vec![ProgramCall {
        name: path,
        arguments: arguments.clone(),
    }];
    if let Some(name) = argv.first() {
        calls.push(ProgramCall {
            name,
            arguments: arguments.clone(),
        });
    }
    let runs_script = is_one(path, &known.interpreters) || is_one(path, &known.shells);
    let script = arguments.split_first().filter(|_| runs_script);
    if let Some((script, rest)) = script.filter(|(script, _)| !script.starts_with(b"-")) {
        calls.push(ProgramCall {
            name: base_name(script),
            arguments: rest.to_vec(),
        });
    }
    calls
}

/// True if an activity only helps a launcher to start its command: `pyenv` looks for the version,
/// `fakeroot` starts a server. The command itself, and all below it, are no helpers. `xargs` reads
/// words of its command, so it counts as the command.
pub fn helps_launcher(recording: &Recording, at: usize) -> bool {
    let line: Vec<usize> = std::iter::once(at).chain(recording.ancestors(at)).collect();
    let is_launcher = |at: &usize| {
        let is_launcher = wrapper(recording, *at) == Some(WrapperKind::Launcher);
        is_launcher && base_name(program(recording, *at)) != b"xargs"
    };
    let Some(place) = line.iter().position(is_launcher) else {
        return false;
    };
    // The kernel puts the interpreter of a launcher's script before it.
    let argv = &recording.activities[line[place]].argv;
    let is_script = argv.first().is_some_and(|name| names_shell(name));
    let words = argv.iter().skip(1 + usize::from(is_script));
    let words: Vec<&[u8]> = words.map(|word| base_name(word)).collect();
    let is_command = |at: &usize| {
        let mut called = recording.activities[*at].argv.iter().take(1);
        recording.activities[*at].epoch > 0 && called.any(|word| words.contains(&base_name(word)))
    };
    !line[..place].iter().any(is_command)
}
