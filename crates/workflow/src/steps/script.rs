//! Finds the script that an activity's program interprets.

use super::programs::{is_interpreted, is_one, names_shell, program};
use super::shell_call::ShellCall;
use crate::paths::absolute;
use crate::recording::Recording;
use crate::tools::knowledge;

/// The absolute path of the script that an activity runs. That is the executed file with a `#!`
/// line, or the first argument of a shell or interpreter that is no option. `None` for other
/// programs. The caller compares the path with the files that the activity read. A program text in
/// an argument (`awk '{print}'`) is the path of none of them.
pub fn script(recording: &Recording, at: usize) -> Option<Vec<u8>> {
    let activity = &recording.activities[at];
    let name = program(recording, at);
    if is_interpreted(recording, at) {
        return Some(absolute(name, &activity.cwd));
    }
    let mut arguments = activity.argv.iter().skip(1).map(|word| &**word);
    let script = if names_shell(name) {
        match ShellCall::of(arguments) {
            ShellCall::Script(script) => Some(script),
            ShellCall::Text | ShellCall::Input => None,
        }
    } else if is_one(name, &knowledge().programs.interpreters) {
        arguments.find(|word| !word.starts_with(b"-"))
    } else {
        None
    };
    script.map(|script| absolute(script, &activity.cwd))
}
