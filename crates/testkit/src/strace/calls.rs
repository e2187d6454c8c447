//! Orders strace's lines as calls. A child's first call stands after the call that made the child.

use std::collections::{HashMap, HashSet};

use super::line::{self, Arg, Returned};

/// An event that strace saw, by its thread.
#[derive(Debug)]
pub struct Call {
    /// Thread, as strace sees it.
    pub tid: u32,
    /// The event.
    pub what: What,
}

/// A call or an end.
#[derive(Debug)]
pub enum What {
    /// A system call.
    Call {
        name: String,
        args: Vec<Arg>,
        returned: Returned,
    },
    /// The thread exited with this status.
    Exited(i32),
    /// The thread was killed by this signal.
    Killed(String),
    /// An exec in thread `by` took over this thread's id.
    Superseded { by: u32 },
}

/// Reads all lines. An interrupted call (`<unfinished ...>`, `<... resumed>`) is joined and stands
/// where it ended. A call that makes a process stands where it began, before the child's calls.
pub fn join(text: &[u8]) -> Vec<Call> {
    let mut open: HashMap<u32, (usize, String)> = HashMap::new();
    let mut placed: Vec<(usize, Call)> = Vec::new();
    // Threads in an exec that has replaced the first thread.
    let mut replacing: HashSet<u32> = HashSet::new();
    for (number, line) in text.split(|b| *b == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        let Some((tid, rest)) = pid_and_rest(&line) else {
            continue;
        };
        if let Some(begun) = unfinished(rest) {
            open.insert(tid, (number, begun.to_owned()));
            continue;
        }
        let (start, whole) = match resumed(rest) {
            Some(tail) => match open.remove(&tid) {
                // Such an exec has succeeded. strace 6.13 prints `-1 ENOSYS` for it.
                Some((start, head)) if replacing.remove(&tid) => (start, format!("{head}) = 0")),
                Some((start, head)) => (start, format!("{head}{tail}")),
                None => continue,
            },
            None => (number, rest.to_owned()),
        };
        if let Some(what) = understand(&whole) {
            if let What::Superseded { by } = what
                && let Some(exec) = open.remove(&by)
            {
                // The call of a first thread that is replaced never returns.
                let lost = open.insert(tid, exec);
                replacing.insert(tid);
                placed.extend(lost.and_then(|lost| never_returned(tid, lost)));
            }
            let place = if makes_process(&what) { start } else { number };
            placed.push((place, Call { tid, what }));
        }
    }
    // Calls that never returned, because their thread died in them.
    for (tid, (start, head)) in open {
        placed.extend(never_returned(tid, (start, head)));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, call)| call).collect()
}

fn never_returned(tid: u32, (start, head): (usize, String)) -> Option<(usize, Call)> {
    understand(&format!("{head}) = ?")).map(|what| (start, Call { tid, what }))
}

fn pid_and_rest(line: &str) -> Option<(u32, &str)> {
    let (pid, rest) = line.split_once(' ')?;
    Some((pid.parse().ok()?, rest.trim_start()))
}

/// The beginning of a call whose line was cut by another thread's.
fn unfinished(text: &str) -> Option<&str> {
    if let Some(head) = text.strip_suffix("<unfinished ...>") {
        return Some(head.trim_end());
    }
    // exec from a thread: the same call returns under the thread group's id.
    text.contains("<pid changed to ")
        .then(|| text.split(" <pid changed").next().unwrap_or(text))
}

fn resumed(text: &str) -> Option<&str> {
    let tail = text.strip_prefix("<... ")?;
    tail.split_once("resumed>").map(|(_, rest)| rest)
}

fn understand(text: &str) -> Option<What> {
    if let Some(end) = text.strip_prefix("+++ ") {
        let end = end.trim_end_matches(" +++");
        if let Some(status) = end.strip_prefix("exited with ") {
            return status.parse().ok().map(What::Exited);
        }
        if let Some(by) = end.strip_prefix("superseded by execve in pid ") {
            return by.parse().ok().map(|by| What::Superseded { by });
        }
        let signal = end.strip_prefix("killed by ")?;
        return signal.split(' ').next().map(|s| What::Killed(s.to_owned()));
    }
    let (name, args, returned) = line::call(text)?;
    Some(What::Call {
        name,
        args,
        returned,
    })
}

fn makes_process(what: &What) -> bool {
    matches!(what, What::Call { name, .. } if matches!(name.as_str(), "fork" | "vfork" | "clone" | "clone3"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let show = |call: &Call| match &call.what {
            What::Call { name, returned, .. } => {
                format!("{} {name} {:?}", call.tid, returned.value)
            }
            other => format!("{} {other:?}", call.tid),
        };
        join(text.as_bytes()).iter().map(show).collect()
    }

    #[test]
    fn a_child_never_acts_before_it_was_made() {
        let text = "1 vfork( <unfinished ...>\n2 close(3<\\x2f>) = 0\n1 <... vfork resumed>) = 2\n2 +++ exited with 3 +++\n";
        assert_eq!(
            names(text),
            ["1 vfork Some(2)", "2 close Some(0)", "2 Exited(3)"]
        );
    }

    #[test]
    fn a_call_its_thread_died_in_is_kept() {
        assert_eq!(
            names("1 read(3<\\x2f>,  <unfinished ...>\n1 +++ killed by SIGKILL +++\n").len(),
            2
        );
    }

    #[test]
    fn an_exec_from_a_thread_leaves_nothing_of_the_call_the_first_thread_was_in() {
        for result in ["0", "-1 ENOSYS (Function not implemented)"] {
            let text = format!(
                "1 clone3({{flags=CLONE_THREAD}}, 88 <unfinished ...>\n\
                 2 execve(\"\\x2f\", [], 0x1 <pid changed to 1 ...>\n\
                 1 +++ superseded by execve in pid 2 +++\n1 <... execve resumed>) = {result}\n"
            );
            assert_eq!(
                names(&text),
                [
                    "1 clone3 None",
                    "1 Superseded { by: 2 }",
                    "1 execve Some(0)"
                ]
            );
        }
    }
}
