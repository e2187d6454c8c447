//! A program under a tool has its recorded environment.
//!
//! The debugger gdb executes the program by a shell. A shell can sort the variables, leave out a
//! directory that is not there (`OLDPWD`), and add variables. The debugger itself adds `LINES` and
//! `COLUMNS`. With perf, the program has further variables and another `PATH`. A program can print
//! its variables, and a longer environment moves its memory. So env(1) executes the program, with
//! exactly the recorded variables in their order. Behind perf, it undoes the changes of perf.
//!
//! Absent: strace and Valgrind. The former changes nothing, and the latter has to load its own
//! library into the program.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const ENV: &str = "/usr/bin/env";

/// The variables that perf sets for itself and its children.
const CHANGED_BY_PERF: [&str; 5] = [
    "PATH",
    "PERF_BUILDID_DIR",
    "PERF_EXEC_PATH",
    "PERF_PAGER_IN_USE",
    "PREFIX",
];

/// The most bytes of quoted variables. A shell gets these and the program's arguments from gdb in
/// one argument. The kernel takes 131,072 bytes of it (`MAX_ARG_STRLEN` in execve(2)).
const MOST_BYTES: usize = 100_000;

/// The words of a tool that executes `executed` with these variables. They are the words as given,
/// if the tool keeps the variables, or if env(1) cannot set them.
pub fn keep(tool: &[Vec<u8>], executed: &[u8], variables: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut words = tool.to_vec();
    if !is_other(executed) || !are_settable(variables) {
        return words;
    }
    let name = Path::new(OsStr::from_bytes(&tool[0])).file_name();
    match name.map(OsStrExt::as_bytes) {
        Some(b"gdb") => {
            let mut command = b"set exec-wrapper".to_vec();
            let head = [ENV, "-i"].map(|word| word.as_bytes().to_vec());
            let wrapper = head.iter().chain(variables);
            wrapper.for_each(|word| command.extend(quoted(word)));
            words.splice(1..1, [b"-iex".to_vec(), command]);
        }
        Some(b"perf") => words.extend(behind_perf(variables)),
        _ => {}
    }
    words
}

/// The words of env(1) that undo what perf changes. The report of perf begins with them, so they do
/// not have all variables.
fn behind_perf(variables: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut words = vec![ENV.as_bytes().to_vec()];
    let mut values = Vec::new();
    for name in CHANGED_BY_PERF {
        let head = [name.as_bytes(), b"="].concat();
        match variables.iter().find(|one| one.starts_with(&head)) {
            Some(recorded) => values.push(recorded.clone()),
            None => words.extend([b"-u".to_vec(), name.as_bytes().to_vec()]),
        }
    }
    words.extend(values);
    words
}

/// False without env(1), and for a program in the same file. The supervisor takes the first
/// execution of that file for the start of the program.
fn is_other(executed: &[u8]) -> bool {
    let executed = Path::new(OsStr::from_bytes(executed));
    let file = |path: &Path| fs::canonicalize(path).ok();
    let env = file(Path::new(ENV));
    env.is_some() && executed.file_name() != Some(OsStr::new("env")) && file(executed) != env
}

/// True if env(1) can set these variables. Of two with one name, it would set one.
fn are_settable(variables: &[Vec<u8>]) -> bool {
    let mut names = HashSet::new();
    let mut bytes = 0;
    variables.iter().all(|variable| {
        let name = variable.split(|byte| *byte == b'=').next().unwrap_or(&[]);
        bytes += quoted(variable).len();
        let has_value = name.len() < variable.len();
        let is_named = !name.is_empty() && !name.starts_with(b"-");
        has_value && is_named && names.insert(name) && bytes <= MOST_BYTES
    })
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
        let perf = kept("perf stat --", "/bin/a", &["PATH=/a b", "B=1"]).join(" ");
        let names = "-u PERF_BUILDID_DIR -u PERF_EXEC_PATH -u PERF_PAGER_IN_USE -u PREFIX";
        assert_eq!(perf, format!("perf stat -- /usr/bin/env {names} PATH=/a b"));
        assert_eq!(kept("strace -f", "/bin/a", &["B=1"]), ["strace", "-f"]);
    }

    #[test]
    fn a_tool_stays_as_it_was_given_if_env_cannot_set_the_variables() {
        let long = format!("A={}", "a".repeat(100_000));
        for variables in [
            &["none"][..],
            &["=A"],
            &["-u=1"],
            &[long.as_str()],
            &["A=1", "A=2"],
        ] {
            assert_eq!(kept("perf stat", "/bin/a", variables), ["perf", "stat"]);
        }
        assert_eq!(
            kept("perf stat", "/usr/bin/env", &["A=1"]),
            ["perf", "stat"]
        );
    }
}
