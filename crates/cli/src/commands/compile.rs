//! `cc` and `c++`: run a compiler so that calls of functions can be recorded later.
//!
//! In: the arguments of the compiler. Out: this process becomes the compiler, with a few more
//! arguments. So its messages and its exit status are its own.
//!
//! A program that is compiled so behaves as before. With gcc, it calls functions of libc that do
//! nothing. With clang, it has sleds. `record --functions` switches them on.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::error::complain;

/// The first words of the command line that name this command, and the compilers.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("cc", "BACKSTORY_CC", "cc"),
    ("c++", "BACKSTORY_CXX", "c++"),
];

/// For gcc, and for clang if it is asked for: hooks at the entry and exit of each function.
const HOOKS: &[&str] = &["-finstrument-functions"];
/// Functions that a program has from the headers of its libraries are theirs.
const HOOKS_OF_GCC: &[&str] =
    &["-finstrument-functions-exclude-file-list=/usr/include/,/usr/lib/gcc/"];
/// For clang. The recorder switches sleds on, so the compiler's own library for that is left out.
const SLEDS: &[&str] = &[
    "-fxray-instrument",
    "-fxray-instruction-threshold=1",
    "-fnoxray-link-deps",
];
/// Names and lines of functions. Another `-g` of the user comes later, and counts.
const LINES: &str = "-g1";

/// Becomes the compiler if the command line asks for one. `None` if it asks for something else.
pub fn run(args: &[OsString]) -> Option<ExitCode> {
    let name = args.get(1)?;
    let (_, variable, usual) = COMMANDS.iter().find(|(word, ..)| *name == **word)?;
    let mut rest = &args[2..];
    let mut compiler = std::env::var_os(variable).filter(|one| !one.is_empty());
    let mut hooks = false;
    // Options of this command come first. All others are the compiler's.
    while let Some(word) = rest.first().and_then(|word| word.to_str()) {
        match word.strip_prefix("--compiler=") {
            Some(other) => compiler = Some(other.into()),
            None if word == "--hooks" => hooks = true,
            None => break,
        }
        rest = &rest[1..];
    }
    let compiler = compiler.unwrap_or_else(|| (*usual).into());
    let mut command = Command::new(&compiler);
    command.args(added(&compiler, hooks)).args(rest);
    let error = command.exec();
    complain(&format!(
        "can't run {}: {error}",
        compiler.to_string_lossy()
    ));
    Some(ExitCode::from(127))
}

/// The arguments that are added.
fn added(compiler: &OsStr, hooks: bool) -> Vec<&'static str> {
    if !is_clang(compiler) {
        return [&[LINES], HOOKS, HOOKS_OF_GCC].concat();
    }
    // When clang only links, it would warn about arguments that it does not use.
    let own: &[&str] = if hooks { HOOKS } else { SLEDS };
    let (start, end) = ("--start-no-unused-arguments", "--end-no-unused-arguments");
    [&[start, LINES], own, &[end]].concat()
}

/// True if the compiler is clang, by its name or by the file that its name leads to.
fn is_clang(compiler: &OsStr) -> bool {
    let named = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains("clang")
    };
    named(Path::new(compiler)) || found(compiler).is_some_and(|path| named(&path))
}

/// The file of a program, with symbolic links followed.
fn found(program: &OsStr) -> Option<PathBuf> {
    let program = Path::new(program);
    if program.components().count() > 1 {
        return program.canonicalize().ok();
    }
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&path).map(|directory| directory.join(program));
    all.find(|one| one.is_file())?.canonicalize().ok()
}
