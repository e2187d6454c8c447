//! The processes of a run in progress, and what each waits for, as the kernel tells (proc(5)).

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use backstory_eventlog::event::Bytes;

/// The most processes of an answer.
const MOST: usize = 200;

/// A running process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningProcess {
    /// Its process id.
    pub pid: u32,
    /// Its arguments, or its name if it has none.
    pub argv: Vec<Bytes>,
    /// The kernel's letter for its state: `R`, `S`, `D`, `T`, `Z` …
    pub state: char,
    /// The thing that it waits for, as a sentence. `None` if it runs.
    pub waits_for: Option<String>,
}

/// What `/proc/PID/stat` tells.
struct ProcessStat {
    name: Bytes,
    parent: u32,
    state: char,
}

/// The processes that descend from the launcher of a run, without those that record it. The
/// supervisor and the keeper are forks of the launcher, with the launcher's arguments.
pub fn descendants(launcher: u32) -> Vec<RunningProcess> {
    let all = all_processes();
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (pid, stat) in &all {
        children.entry(stat.parent).or_default().push(*pid);
    }
    let recorder = all.get(&launcher).map(|stat| arguments(launcher, stat));
    let (mut found, mut seen) = (Vec::new(), BTreeSet::from([launcher]));
    let mut waiting = children.get(&launcher).cloned().unwrap_or_default();
    while let Some(pid) = waiting.pop() {
        if !seen.insert(pid) || found.len() >= MOST {
            continue;
        }
        let own = children.get(&pid).cloned().unwrap_or_default();
        let argv = all.get(&pid).map(|stat| arguments(pid, stat));
        if let (Some(stat), Some(argv)) = (all.get(&pid), argv)
            && Some(&argv) != recorder.as_ref()
        {
            found.push(RunningProcess {
                pid,
                argv,
                state: stat.state,
                waits_for: waits_for(pid, stat.state, &own),
            });
        }
        waiting.extend(own);
    }
    found.sort_small_by_key(|process| process.pid);
    found
}

fn all_processes() -> BTreeMap<u32, ProcessStat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, stat(&text)?))
    })
    .collect()
}

/// Reads `PID (NAME) STATE PPID …`. The name may have any character, a parenthesis too.
fn stat(text: &[u8]) -> Option<ProcessStat> {
    let open = text.iter().position(|&byte| byte == b'(')?;
    let close = text.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let mut words = rest.split_whitespace();
    Some(ProcessStat {
        name: text.get(open + 1..close)?.into(),
        state: words.next()?.chars().next()?,
        parent: words.next()?.parse().ok()?,
    })
}

fn arguments(pid: u32, stat: &ProcessStat) -> Vec<Bytes> {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = text.strip_suffix(b"\0").unwrap_or(&text);
    match text.is_empty() {
        true => vec![stat.name.clone()],
        false => text.split(|&byte| byte == 0).map(Into::into).collect(),
    }
}

fn waits_for(pid: u32, state: char, children: &[u32]) -> Option<String> {
    let channel = || fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    match state {
        'R' => None,
        'T' | 't' => Some("it is stopped".to_owned()),
        'Z' => Some("it has ended, and its parent has not asked for its status".to_owned()),
        'D' => Some("it waits for a disk or a file system".to_owned()),
        _ => Some(sentence(&channel(), children)),
    }
}

/// The meaning of a wait channel of the kernel. Names differ between versions of the kernel, so
/// that parts of them are looked for.
fn sentence(channel: &str, children: &[u32]) -> String {
    const MEANINGS: [(&str, &str); 12] = [
        ("pipe", "it waits for data or room in a pipe"),
        ("futex", "it waits for another thread"),
        ("nanosleep", "it sleeps for a set time"),
        ("accept", "it waits for a connection"),
        ("tty", "it waits for input from the terminal"),
        ("skb", "it waits for data from a socket"),
        ("sk_wait", "it waits for data from a socket"),
        ("inet", "it waits for the network"),
        ("unix_", "it waits for data from a socket"),
        ("poll", "it waits for one of several files or sockets"),
        ("select", "it waits for one of several files or sockets"),
        ("lock", "it waits for a lock"),
    ];
    if channel.contains("wait") && channel.contains("do_") && !children.is_empty() {
        let names: Vec<String> = children.iter().map(u32::to_string).collect();
        return format!("it waits for process {}", names.join(", "));
    }
    let meaning = MEANINGS.iter().find(|(part, _)| channel.contains(part));
    match meaning {
        Some((_, meaning)) => (*meaning).to_owned(),
        None => "it waits".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_a_parenthesis_in_its_name_is_read() {
        let found = stat(b"12 (a ) S 1) R 7 12 12 0").unwrap();
        assert_eq!(
            (&*found.name, found.state, found.parent),
            (&b"a ) S 1"[..], 'R', 7)
        );
        assert!(stat(b"12 (cut").is_none());
    }

    #[test]
    fn a_wait_channel_becomes_a_sentence() {
        assert_eq!(sentence("do_wait", &[3, 4]), "it waits for process 3, 4");
        assert_eq!(
            sentence("anon_pipe_read", &[]),
            "it waits for data or room in a pipe"
        );
        assert_eq!(sentence("0", &[]), "it waits");
    }

    #[test]
    fn a_child_that_sleeps_is_found_below_its_parent() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let found = descendants(std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.iter().any(|process| process.pid == child.id()));
    }
}
