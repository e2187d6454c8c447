//! The interpreter of a script, which the kernel executes in the place of the script.
//!
//! A debugger loads a program by itself, and knows no `#!`. So a tool gets the interpreter, with
//! the arguments that the kernel would give. In: the path of a program. Out: the words before this
//! path. The files are those of the present root. Invariant: the words are those of
//! `binfmt_script.c` in the kernel, as far as it would execute the file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of a program that the kernel looks at (`BINPRM_BUF_SIZE`).
const HEAD: u64 = 256;

/// Most interpreters that the kernel follows from one program.
const MOST: usize = 5;

/// The words that the kernel puts before the path of a script: the interpreter, with its argument
/// if it has one. If the interpreter is a script, too, its own interpreter is before it. Empty: the
/// program is no script.
pub fn interpreter(directory: &[u8], program: &[u8]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    for _ in 0..MOST {
        let path = words.first().map_or(program, Vec::as_slice);
        let Some((name, argument)) = first_line(directory, path) else {
            break;
        };
        let own = [Some(name), argument];
        words.splice(..0, own.into_iter().flatten());
    }
    if let Some(name) = words.first_mut()
        && !name.contains(&b'/')
    {
        // The kernel looks in the current directory. A tool would look in PATH.
        name.splice(..0, *b"./");
    }
    words
}

/// The interpreter of a script and its argument, as its first line has them. `None`: no script.
fn first_line(directory: &[u8], path: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let head = head(directory, path).ok()?;
    let line = head.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next().map(trimmed)?;
    let end = line.iter().position(|byte| is_blank(*byte));
    let (name, argument) = line.split_at(end.unwrap_or(line.len()));
    let argument = Some(trimmed(argument)).filter(|argument| !argument.is_empty());
    (!name.is_empty()).then(|| (name.to_vec(), argument.map(<[u8]>::to_vec)))
}

fn head(directory: &[u8], path: &[u8]) -> io::Result<Vec<u8>> {
    let path = Path::new(OsStr::from_bytes(directory)).join(OsStr::from_bytes(path));
    let mut head = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

/// A text without the blanks at its beginning and end.
fn trimmed(text: &[u8]) -> &[u8] {
    let begin = text.iter().position(|byte| !is_blank(*byte));
    let end = text.iter().rposition(|byte| !is_blank(*byte));
    match (begin, end) {
        (Some(begin), Some(end)) => &text[begin..=end],
        _ => &[],
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::interpreter;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Command;

    /// The words before a script of this directory.
    fn words(directory: &Path, program: &str) -> Vec<String> {
        let words = interpreter(directory.as_os_str().as_bytes(), program.as_bytes());
        let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
        words.iter().map(text).collect()
    }

    #[test]
    fn a_script_has_its_interpreter_and_the_rest_of_the_line_as_one_argument() {
        let directory = tempfile::tempdir().unwrap();
        for (line, expected) in [
            ("#!/bin/sh\n", &["/bin/sh"][..]),
            (
                "#! \t/usr/bin/env  python3 -u \nx",
                &["/usr/bin/env", "python3 -u"],
            ),
            ("#!bin/run", &["bin/run"]),
            ("#!run\n", &["./run"]),
            ("#!\n/bin/sh", &[]),
            ("/bin/sh\n", &[]),
            ("\x7fELF", &[]),
            ("", &[]),
        ] {
            fs::write(directory.path().join("script"), line).unwrap();
            assert_eq!(words(directory.path(), "./script"), expected, "{line:?}");
        }
        assert_eq!(words(directory.path(), "missing"), [""; 0]);
    }

    #[test]
    fn the_words_of_a_chain_of_interpreters_are_those_of_the_kernel() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let shim = path("shim").display().to_string();
        fs::write(path("shim"), "#!/bin/sh -f\necho \"$0\" \"$@\"\n").unwrap();
        fs::write(path("script"), format!("#!{shim} one two\n")).unwrap();
        for name in ["shim", "script"] {
            fs::set_permissions(path(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let found = words(directory.path(), "./script");
        assert_eq!(found, ["/bin/sh", "-f", &shim, "one two"]);
        // The kernel gives these to the last interpreter.
        let mut command = Command::new("./script");
        let output = command.arg("three").current_dir(&directory).output();
        let given = String::from_utf8(output.unwrap().stdout).unwrap();
        assert_eq!(given, format!("{shim} one two ./script three\n"));
    }

    #[test]
    fn interpreters_that_name_each_other_have_an_end() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("loop"), "#!./loop\n").unwrap();
        let found = words(directory.path(), "./loop");
        assert_eq!(found, ["./loop"; super::MOST]);
    }
}
