//! Interpreters: programs that do what a file, an argument or their input says.
//!
//! In: the path of a program, and its arguments. Out: where it gets its commands from.

use backstory_eventlog::event::Bytes;

/// Where an interpreter gets its commands from, by its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandSource {
    /// An argument: `sh -c TEXT`.
    Argument,
    /// The standard input.
    Input,
    /// A file or a module, or it is not known.
    Other,
}

const SHELLS: [&[u8]; 7] = [b"sh", b"bash", b"dash", b"zsh", b"ksh", b"ash", b"fish"];

/// Other programs that do what a file says which their arguments name, or their input.
const LANGUAGES: [&[u8]; 7] = [
    b"python", b"perl", b"ruby", b"node", b"php", b"lua", b"Rscript",
];

/// Programs that do what a file says.
const BUILDERS: [&[u8]; 2] = [b"make", b"gmake"];

/// Names of the standard input.
const INPUT: [&[u8]; 4] = [b"-", b"/dev/stdin", b"/dev/fd/0", b"/proc/self/fd/0"];

/// The name of a program without its version: `python` of `/usr/bin/python3.11`.
fn name(program: &[u8]) -> &[u8] {
    let name = program
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default();
    let is_version = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let end = name
        .iter()
        .rposition(|byte| !is_version(byte))
        .map_or(0, |at| at + 1);
    &name[..end]
}

pub(crate) fn is_shell(program: &[u8]) -> bool {
    SHELLS.contains(&name(program))
}

pub(crate) fn is_interpreter(program: &[u8]) -> bool {
    let name = name(program);
    [&SHELLS[..], &LANGUAGES, &BUILDERS]
        .iter()
        .any(|names| names.contains(&name))
}

/// Where a program with these arguments gets its commands from.
pub(crate) fn command_source(program: &[u8], argv: &[Bytes]) -> CommandSource {
    let name = name(program);
    let (is_shell, is_python) = (SHELLS.contains(&name), name == b"python");
    if !is_shell && !LANGUAGES.contains(&name) {
        return CommandSource::Other;
    }
    let mut words = argv.iter().skip(1).map(|word| &**word);
    while let Some(word) = words.next() {
        // How many of the next arguments are values of this option.
        let values = match word {
            // It ends the options of a shell.
            b"-" if is_shell => 0,
            word if INPUT.contains(&word) => return CommandSource::Input,
            b"--rcfile" | b"--init-file" if is_shell => 1,
            [b'-', b'-', ..] => 0,
            [b'-', letters @ ..] if is_shell && letters.contains(&b'c') => {
                return CommandSource::Argument;
            }
            [b'-', letters @ ..] if is_shell && letters.contains(&b's') => {
                return CommandSource::Input;
            }
            [b'-' | b'+', letters @ ..] if is_shell => named_options(name, letters),
            [b'-', letters @ ..] if is_python => match python_option(letters) {
                Ok(values) => values,
                Err(source) => return source,
            },
            // A text, a module, or a script that is applied to each line of the input.
            [b'-', letters @ ..] if !letters.iter().any(|one| b"cemnpr".contains(one)) => 0,
            _ => return CommandSource::Other,
        };
        for _ in 0..values {
            words.next();
        }
    }
    CommandSource::Input
}

/// How many options of a shell are named by the next arguments: `-euo pipefail`.
fn named_options(shell: &[u8], letters: &[u8]) -> usize {
    let is_named = |one: &&u8| **one == b'o' || **one == b'O' && shell == b"bash";
    letters.iter().filter(is_named).count()
}

/// How many values of an option of Python are the next arguments: `-W ignore`. An error is where
/// the commands are: the rest of the arguments belongs to them.
fn python_option(letters: &[u8]) -> Result<usize, CommandSource> {
    let Some(at) = letters.iter().position(|one| b"cmWX".contains(one)) else {
        return Ok(0);
    };
    match letters[at] {
        b'c' => Err(CommandSource::Argument),
        b'm' => Err(CommandSource::Other),
        _ => Ok(usize::from(at + 1 == letters.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expect(source: CommandSource, lines: &[&str]) {
        for line in lines {
            let argv: Vec<Bytes> = line.split(' ').map(|word| word.as_bytes().into()).collect();
            assert_eq!(command_source(&argv[0], &argv), source, "{line}");
        }
    }

    #[test]
    fn an_interpreter_follows_its_input_unless_its_arguments_name_something_else() {
        expect(
            CommandSource::Input,
            &[
                "sh",
                "sh -",
                "bash -ex",
                "sh -s -- -y",
                "bash -s stable",
                "python3 -u -",
                "python3 - --yes",
                "perl",
            ],
        );
        expect(
            CommandSource::Other,
            &[
                "sh a.sh",
                "sh - a.sh",
                "perl -ne x",
                "make",
                "python3 -m pip",
                "python3 a.py -",
            ],
        );
    }

    #[test]
    fn the_value_of_an_option_is_no_file_with_commands() {
        expect(
            CommandSource::Input,
            &[
                "bash -euo pipefail",
                "bash -eu -o pipefail -s -- -y",
                "bash -O extglob +o posix",
                "/bin/bash --rcfile own",
                "python3 -W ignore -",
                "python3 -X dev -Wignore -",
            ],
        );
        expect(
            CommandSource::Other,
            &[
                "bash -euo pipefail a.sh",
                "zsh -O a.sh",
                "python3 -W ignore a.py",
                "python3 -Wignore a.py",
            ],
        );
    }

    #[test]
    fn only_the_options_of_an_interpreter_give_it_a_text() {
        expect(
            CommandSource::Argument,
            &[
                "sh -c x",
                "bash -xc x",
                "bash -euo pipefail -c x",
                "python3 -W ignore -c x",
                "python3 -Ic x",
            ],
        );
        expect(
            CommandSource::Other,
            &[
                "python3 /usr/bin/tool -c configuration",
                "bash /usr/bin/tool --yes -vc",
                "perl -c a.pl",
                "curl -c cookies",
            ],
        );
    }
}
