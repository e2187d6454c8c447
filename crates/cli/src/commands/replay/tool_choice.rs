//! The tool of `replay --deep --with`: a program around the recorded one, or the build with a
//! sanitizer in its place.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use backstory_reconstruct::engine;

use crate::error::Failure;

/// How `--with` names a build with a sanitizer, before its path.
const BUILD: &[u8] = b"asan=";

/// The tool around the program, and the build of the program.
#[derive(Debug, Default)]
pub struct ToolChoice {
    /// The tool and its arguments, with its path on this machine. Empty without a tool.
    pub words: Vec<Vec<u8>>,
    /// The build that runs instead of the recorded program.
    pub build: Option<PathBuf>,
    /// That build has a sanitizer, whose report the user wants.
    pub is_sanitized: bool,
    /// Files are needed that the run did not use.
    pub needs_host: bool,
}

impl ToolChoice {
    /// Reads `--with` and `--binary`.
    pub fn of(with: Option<&OsString>, binary: Option<&PathBuf>) -> Result<ToolChoice, Failure> {
        let mut choice = ToolChoice {
            build: binary.cloned(),
            needs_host: with.is_some(),
            ..ToolChoice::default()
        };
        let Some(with) = with else {
            return Ok(choice);
        };
        match (with.as_bytes().strip_prefix(BUILD), binary) {
            (None, _) => choice.words = tool(with.as_bytes())?,
            (Some(_), Some(_)) => {
                return Err(Failure::misuse(
                    "--with asan= and --binary both name another build: give one of them",
                ));
            }
            (Some([]), None) => {
                return Err(Failure::misuse(
                    "--with asan= needs a build with a sanitizer, as in --with asan=./server-asan",
                ));
            }
            (Some(path), None) => {
                choice.build = Some(OsString::from_vec(path.to_vec()).into());
                choice.is_sanitized = true;
            }
        }
        Ok(choice)
    }

    /// Refuses a build that the kernel would not execute.
    pub fn check_build(&self) -> Result<(), Failure> {
        let Some(build) = &self.build else {
            return Ok(());
        };
        let name = build.display();
        let cannot_run = |why: &str| {
            Failure::misuse(format!(
                "{name} cannot run in the place of the recorded program: {why}"
            ))
        };
        let about = fs::metadata(build)
            .map_err(|error| Failure::not_found(format!("cannot read {name}: {error}")))?;
        if !about.is_file() {
            return Err(cannot_run("it is no regular file"));
        }
        if about.permissions().mode() & 0o111 == 0 {
            return Err(cannot_run("it has no permission to be executed"));
        }
        let mut head = [0; 4];
        let read = File::open(build).and_then(|mut file| file.read(&mut head));
        match read.is_err() || head == *b"\x7fELF" || head.starts_with(b"#!") {
            true => Ok(()),
            false => Err(cannot_run("it is neither an ELF file nor a script with #!")),
        }
    }
}

/// gdb sets the size of its terminal in the environment of the program. A longer environment moves
/// the program's memory.
const KEEP_ENVIRONMENT: [&str; 4] = [
    "-iex",
    "unset environment LINES",
    "-iex",
    "unset environment COLUMNS",
];

/// The words of a tool, with the options that it needs around a replay.
fn tool(text: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
    let mut words = words(text);
    let Some(name) = words.first_mut() else {
        return Err(Failure::misuse("--with needs a tool, as in --with gdb"));
    };
    if !name.contains(&b'/') {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut all = std::env::split_paths(&path);
        let found = all.find_map(|directory| {
            let path = directory.join(OsStr::from_bytes(name));
            path.is_file().then_some(path)
        });
        let found = found.ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            Failure::not_found(format!("{name} is not installed here"))
        })?;
        *name = found.as_os_str().as_bytes().to_vec();
    }
    let plain = words.len() == 1;
    let has_arguments = |words: &[Vec<u8>]| words.iter().any(|word| is_gdb_arguments(word));
    match words[0].rsplit(|byte| *byte == b'/').next() {
        Some(b"gdb") => {
            if !has_arguments(&words) {
                // The program's own arguments follow its name.
                words.push(b"--args".to_vec());
            }
            words.splice(1..1, KEEP_ENVIRONMENT.map(|word| word.as_bytes().to_vec()));
        }
        Some(b"perf") if plain => words.extend([b"stat".to_vec(), b"--".to_vec()]),
        Some(b"strace") if plain => words.push(b"-f".to_vec()),
        Some(b"valgrind") if words.iter().any(|word| word.starts_with(b"--log-socket")) => {
            return Err(Failure::misuse(
                "--log-socket of valgrind needs the network, which a replay lacks: leave the option \
                 out, or use --log-file=FILE",
            ));
        }
        Some(b"valgrind") if !words.iter().any(|word| word.starts_with(b"--log-")) => {
            words.push(format!("--log-fd={}", engine::TOOL_LOG).into_bytes());
        }
        _ => {}
    }
    Ok(words)
}

/// True for the option of gdb behind which a program stands.
fn is_gdb_arguments(word: &[u8]) -> bool {
    matches!(word, b"--args" | b"-args")
}

/// Splits at spaces that are not within quotes.
fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None, None);
    for &byte in text {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (None, b'\'' | b'"') => {
                quote = Some(byte);
                word.get_or_insert_with(Vec::new);
            }
            (None, _) if byte.is_ascii_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_with(Vec::new).push(byte),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_with_a_sanitizer_may_have_spaces_in_its_path_and_is_named_once() {
        let with = OsString::from("asan=./a build/server");
        let choice = ToolChoice::of(Some(&with), None).unwrap();
        let path = PathBuf::from("./a build/server");
        assert!(choice.words.is_empty() && choice.needs_host && choice.is_sanitized);
        assert_eq!(choice.build.as_ref(), Some(&path));
        assert!(ToolChoice::of(Some(&with), Some(&path)).is_err());
        assert!(ToolChoice::of(Some(&OsString::from("asan=")), None).is_err());
        let other = ToolChoice::of(None, Some(&path)).unwrap();
        assert!(other.build == Some(path) && !other.needs_host && !other.is_sanitized);
    }

    #[test]
    fn a_build_that_the_kernel_would_not_execute_is_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let build = dir.path().join("page.html");
        let checked = || {
            let choice = ToolChoice::of(None, Some(&build)).unwrap();
            choice.check_build().err().map(|failure| failure.line)
        };
        let allow = |mode| fs::set_permissions(&build, fs::Permissions::from_mode(mode)).unwrap();
        assert!(checked().unwrap().contains("cannot read "));
        fs::write(&build, "<html>").unwrap();
        allow(0o644);
        assert!(checked().unwrap().ends_with("no permission to be executed"));
        allow(0o755);
        assert!(checked().unwrap().ends_with("nor a script with #!"));
        fs::write(&build, "#!/bin/sh").unwrap();
        assert_eq!(checked(), None);
    }

    #[test]
    fn gdb_gets_its_option_for_arguments_once() {
        let last = |text: &[u8]| {
            let words = tool(text).unwrap();
            assert!(words[1..].starts_with(&KEEP_ENVIRONMENT.map(|word| word.as_bytes().to_vec())));
            words[1 + KEEP_ENVIRONMENT.len()..].to_vec()
        };
        assert_eq!(last(b"/usr/bin/gdb -q"), [&b"-q"[..], b"--args"]);
        for given in ["--args", "-args"] {
            let text = format!("/usr/bin/gdb -q {given} /usr/bin/env A=1");
            let words = ["-q", given, "/usr/bin/env", "A=1"];
            assert_eq!(last(text.as_bytes()), words.map(str::as_bytes));
        }
    }

    #[test]
    fn valgrind_is_not_asked_to_report_to_a_socket() {
        let last = |text: &[u8]| tool(text).map(|words| words.last().cloned());
        let refused = last(b"/usr/bin/valgrind -q --log-socket=127.0.0.1:1500");
        let line = refused.err().unwrap().line;
        assert!(line.contains("which a replay lacks"), "{line}");
        let given = last(b"/usr/bin/valgrind --log-file=report").ok().flatten();
        assert_eq!(given.as_deref(), Some(&b"--log-file=report"[..]));
        let added = last(b"/usr/bin/valgrind -q").ok().flatten();
        let wanted = format!("--log-fd={}", engine::TOOL_LOG);
        assert_eq!(added.as_deref(), Some(wanted.as_bytes()));
    }

    #[test]
    fn a_tool_keeps_what_its_user_quoted() {
        let split = words(b"gdb -q  -ex 'break main' \"\"");
        let wanted: [&[u8]; 5] = [b"gdb", b"-q", b"-ex", b"break main", b""];
        assert_eq!(split, wanted);
    }
}
