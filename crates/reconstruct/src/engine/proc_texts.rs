//! The texts of `/proc` with a field in each line: `status`, `fdinfo` and `limits` (proc(5)).

use std::fs;

/// The value of a field.
pub fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim())
}

/// The signals of a field of `status`: the bit of signal 1 is the lowest. Empty without the field.
pub fn signals(status: &str, name: &str) -> u64 {
    let digits = field(status, name).unwrap_or_default();
    u64::from_str_radix(digits, 16).unwrap_or(0)
}

/// The flags of an open file, from `fdinfo`.
pub fn open_flags(info: &str) -> Option<u32> {
    u32::from_str_radix(field(info, "flags")?, 8).ok()
}

/// The soft limit of the number of open files, from `limits`. `None`: the text has none.
pub fn open_files(limits: &str) -> Option<u64> {
    let mut lines = limits.lines();
    let values = lines.find_map(|line| line.strip_prefix("Max open files"))?;
    values.split_whitespace().next()?.parse().ok()
}

/// The number of pid namespaces in which a process has a number, from that of `/proc` down.
pub fn pid_namespaces(status: &str) -> usize {
    let numbers = field(status, "NSpid").unwrap_or_default();
    numbers.split_whitespace().count()
}

/// The number of threads of a process. 0: there is no such process.
pub fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

#[cfg(test)]
mod tests {
    use super::pid_namespaces;

    #[test]
    fn a_process_has_a_number_in_each_pid_namespace_around_it() {
        for (status, count) in [
            ("Name:\tsh\nNSpid:\t4711\nNSpgid:\t1\n", 1),
            ("NSpid:\t4711\t8\t1\n", 3),
            ("Name:\tsh\n", 0),
        ] {
            assert_eq!(pid_namespaces(status), count, "{status:?}");
        }
    }
}
