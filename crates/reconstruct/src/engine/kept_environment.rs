//! A program under a tool has its recorded environment.
//!
//! The debugger gdb executes the program by a shell. A shell can sort the variables, leave out a
//! directory that is not there (`OLDPWD`), and add variables. The debugger itself adds `LINES` and
//! `COLUMNS`. With perf, the program has further variables and another `PATH`. A program can print
//! its variables, and a longer environment moves its memory. So env(1) executes the program, with
//! exactly the recorded variables in their order.
//!
//! Absent: strace and Valgrind. The former changes nothing, and the latter has to load its own
//! library into the program.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const ENV: &str = "/usr/bin/env";

/// The most bytes of variables. A shell gets all of them from gdb in one argument. The kernel takes
/// 131,072 bytes of it (`MAX_ARG_STRLEN` in execve(2)). Quotes can need some more.
const MOST_BYTES: usize = 100_000;

/// The words of a tool that executes the program with these variables. They are the words as given,
/// if the tool keeps the variables, or if env(1) cannot set them.
pub fn keep(tool: &[Vec<u8>], program: &[u8], variables: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut words = tool.to_vec();
    let name = Path::new(std::ffi::OsStr::from_bytes(&words[0])).file_name();
    let bytes: usize = variables.iter().map(Vec::len).sum();
    // The supervisor takes the first execution of the program's path for the start of the program.
    let is_program = program.rsplit(|byte| *byte == b'/').next() == Some(b"env");
    if is_program || bytes > MOST_BYTES || !variables.iter().all(|one| is_settable(one)) {
        return words;
    }
    let head = [ENV, "-i"].map(|word| word.as_bytes().to_vec());
    let wrapper = head.into_iter().chain(variables.iter().cloned());
    match name.map(OsStrExt::as_bytes) {
        Some(b"gdb") => {
            let mut command = b"set exec-wrapper".to_vec();
            wrapper.for_each(|word| command.extend(quoted(&word)));
            words.splice(1..1, [b"-iex".to_vec(), command]);
        }
        Some(b"perf") => words.extend(wrapper),
        _ => {}
    }
    words
}

/// True for a variable that env(1) takes for one.
fn is_settable(variable: &[u8]) -> bool {
    let name = variable.split(|byte| *byte == b'=').next();
    let has_value = name.is_some_and(|name| name.len() < variable.len());
    has_value && !variable.starts_with(b"-") && !variable.starts_with(b"=")
}

/// A word for a shell, behind a space.
fn quoted(word: &[u8]) -> Vec<u8> {
    let mut quoted = b" '".to_vec();
    for byte in word {
        match byte {
            b'\'' => quoted.extend(b"'\\''"),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::keep;

    fn kept(tool: &str, program: &str, variables: &[&str]) -> Vec<String> {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let tool: Vec<_> = tool.split(' ').map(bytes).collect();
        let variables: Vec<_> = variables.iter().map(|one| bytes(one)).collect();
        let words = keep(&tool, program.as_bytes(), &variables).into_iter();
        words.map(|word| String::from_utf8(word).unwrap()).collect()
    }

    #[test]
    fn a_tool_that_changes_variables_executes_the_program_by_env() {
        let gdb = kept("/usr/bin/gdb -q", "/bin/a", &["B=it's", "A="]);
        let command = r"set exec-wrapper '/usr/bin/env' '-i' 'B=it'\''s' 'A='";
        assert_eq!(gdb, ["/usr/bin/gdb", "-iex", command, "-q"]);
        let perf = kept("perf stat --", "/bin/a", &["B=1"]);
        assert_eq!(perf, ["perf", "stat", "--", "/usr/bin/env", "-i", "B=1"]);
        assert_eq!(kept("strace -f", "/bin/a", &["B=1"]), ["strace", "-f"]);
    }

    #[test]
    fn a_tool_stays_as_it_was_given_if_env_cannot_set_the_variables() {
        let long = format!("A={}", "a".repeat(100_000));
        for variable in ["none", "=A", "-u=1", &long] {
            assert_eq!(kept("perf stat", "/bin/a", &[variable]), ["perf", "stat"]);
        }
        assert_eq!(
            kept("perf stat", "/usr/bin/env", &["A=1"]),
            ["perf", "stat"]
        );
    }
}
