//! Other processes, as `/proc` shows them.

use crate::process::Pid;
use std::collections::HashMap;
use std::fs;

/// The number of this process's descendants.
pub fn descendants() -> usize {
    descendants_of(std::process::id()).len()
}

/// The descendants of a process, parents before children.
pub fn descendants_of(process: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut rest = vec![process];
    while let Some(pid) = rest.pop() {
        let below = children.remove(&pid).unwrap_or_default();
        found.extend_from_slice(&below);
        rest.extend(below);
    }
    found
}

/// The present parent of a process. 0 if it is outside of the pid namespace; `None` if the process
/// is gone.
pub fn parent(pid: u32) -> Option<u32> {
    field(pid, 1)?.parse().ok()
}

/// True if the process is stopped, by a signal or a tracer.
pub fn stopped(pid: Pid) -> bool {
    field(pid as u32, 0).is_some_and(|state| state.eq_ignore_ascii_case("t"))
}

/// True if the process is in a tracing stop: only its tracer or a signal that kills it ends that.
pub fn stopped_by_tracer(pid: Pid) -> bool {
    field(pid as u32, 0).is_some_and(|state| state == "t")
}

/// True if a signal is pending for the process.
pub fn pending(pid: Pid, signal: usize) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let set = set.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    set.is_some_and(|set| signal > 0 && set & (1 << (signal - 1)) != 0)
}

/// A field of `/proc/PID/stat`, counted from the one after the name.
fn field(pid: u32, number: usize) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    stat_fields(&stat)?.nth(number).map(str::to_owned)
}

/// The fields of `/proc/PID/stat` after the name: the first is number 3 in proc_pid_stat(5). The
/// name before them is in parentheses and may contain any byte.
pub fn stat_fields(stat: &[u8]) -> Option<impl Iterator<Item = &str>> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    Some(rest.split_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_a_descendant() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        assert!(descendants() >= 1);
        assert_eq!(parent(child.id()), Some(std::process::id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
