//! How a shell was called: with a text of commands, with a script, or to read commands from
//! standard input.

/// How a shell was called.
#[derive(Debug, PartialEq, Eq)]
pub enum ShellCall<'a> {
    /// `sh -c TEXT …`
    Text,
    /// `sh SCRIPT …`
    Script(&'a [u8]),
    /// Commands from standard input.
    Input,
}

impl<'a> ShellCall<'a> {
    /// Reads the arguments of a shell, without its name.
    pub fn of(args: impl Iterator<Item = &'a [u8]>) -> ShellCall<'a> {
        let mut args = args;
        while let Some(arg) = args.next() {
            match arg {
                b"-" | b"--" => {}
                b"-o" | b"+o" | b"-O" | b"--rcfile" | b"--init-file" => drop(args.next()),
                long if long.starts_with(b"--") => {}
                short if short.starts_with(b"-") || short.starts_with(b"+") => {
                    if short.contains(&b'c') {
                        return ShellCall::Text;
                    }
                }
                script => return ShellCall::Script(script),
            }
        }
        ShellCall::Input
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shells_script_is_found_behind_its_options() {
        let called = |line: &'static str| ShellCall::of(line.split_whitespace().map(str::as_bytes));
        assert_eq!(called("-eu run.sh -c x"), ShellCall::Script(b"run.sh"));
        assert_eq!(called("-o pipefail run.sh"), ShellCall::Script(b"run.sh"));
        assert_eq!(called("-euc x"), ShellCall::Text);
        assert_eq!(called("--norc -s"), ShellCall::Input);
    }
}
