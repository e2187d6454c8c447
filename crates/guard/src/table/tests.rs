//! Compares the table with the kernel's headers and with the running kernel.

use super::row::TableRow;
use super::*;

/// The names and numbers of a kernel header's `#define` lines; x32 numbers without their bit.
fn header(name: &str) -> Option<Vec<(String, i16)>> {
    let dirs = ["/usr/include/x86_64-linux-gnu/asm", "/usr/include/asm"];
    let text = dirs
        .iter()
        .find_map(|dir| std::fs::read_to_string(format!("{dir}/{name}")).ok())?;
    let calls = text.lines().filter_map(|line| {
        let rest = line.strip_prefix("#define __NR_")?;
        let (name, number) = rest.split_once(' ')?;
        let number = number
            .trim_start_matches("(__X32_SYSCALL_BIT + ")
            .trim_end_matches(')');
        Some((name.to_owned(), number.trim().parse().ok()?))
    });
    Some(calls.collect())
}

#[test]
fn every_system_call_of_the_headers_has_a_row() {
    for (file, abi) in [
        ("unistd_64.h", Abi::X64),
        ("unistd_32.h", Abi::I386),
        ("unistd_x32.h", Abi::X32),
    ] {
        let Some(calls) = header(file) else {
            backstory_testkit::need::skipped(
                "calls of the headers",
                &format!("needs <asm/{file}>"),
            );
            continue;
        };
        assert!(calls.len() > 300, "{file} was not understood");
        for (name, nr) in calls {
            let bit = if abi == Abi::X32 { X32_BIT } else { 0 };
            let row = abi.row(nr as u32 | bit);
            assert_eq!(
                row.map(|row| row.name),
                Some(name.as_str()),
                "{nr} in {file}"
            );
        }
    }
}

/// Headers may be older than the kernel. A call that the running kernel has needs a row too.
#[test]
fn every_system_call_of_the_running_kernel_has_a_row() {
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let calls: Vec<&str> = symbols
        .lines()
        .filter_map(|line| line.split(' ').nth(2)?.strip_prefix("__x64_sys_"))
        // The compiler has moved parts of a function elsewhere, with a dot in their names.
        .filter(|call| !call.contains('.'))
        .collect();
    if calls.len() < 300 {
        backstory_testkit::need::skipped("calls of the kernel", "it does not name them");
        return;
    }
    // The kernel's own names that differ from those of the headers.
    const OTHER: &[(&str, &str)] = &[
        ("mmap_pgoff", "mmap2"),
        ("sendfile64", "sendfile"),
        ("umount", "umount2"),
        ("sysctl", "_sysctl"),
        ("llseek", "_llseek"),
        ("oldumount", "umount"),
        ("recv", "socketcall"),
        ("send", "socketcall"),
        ("ni_syscall", "tuxcall"),
        ("sync_file_range2", "sync_file_range"),
    ];
    // Calls of other architectures, for which an x86 kernel has an empty function.
    const ELSEWHERE: &[&str] = &[
        "gethostname",
        "pciconfig",
        "rtas",
        "s390",
        "spu_",
        "subpage",
    ];
    let row = |name: &str| ROWS.iter().any(|row| row.name == name);
    for call in calls
        .into_iter()
        .filter(|call| !ELSEWHERE.iter().any(|e| call.starts_with(e)))
    {
        let name = OTHER
            .iter()
            .find(|other| other.0 == call)
            .map_or(call, |other| other.1);
        // Older layouts of what 32-bit programs pass, and the forms before and after them.
        let short = ["_time32", "32", "16"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        let plain = ["new", "old_", "ia32_"]
            .iter()
            .find_map(|start| name.strip_prefix(start));
        assert!(
            [Some(name), short, plain].into_iter().flatten().any(row),
            "{call}"
        );
    }
}

#[test]
fn a_number_stands_for_one_call_only() {
    let numbers: [fn(&TableRow) -> i16; 2] = [|r| r.x64, |r| r.i386];
    for number in numbers {
        let mut numbers: Vec<_> = ROWS.iter().map(number).filter(|nr| *nr >= 0).collect();
        numbers.sort_unstable();
        let all = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
    }
}

#[test]
fn calls_that_must_not_be_disturbed_are_never_watched() {
    let never = [
        "close",
        "read",
        "write",
        "fork",
        "vfork",
        "clone3",
        "exit",
        "exit_group",
        "rt_sigreturn",
    ];
    for name in never {
        let row = ROWS.iter().find(|row| row.name == name).expect(name);
        assert_eq!(row.guard.shape(), None, "{name}");
    }
}

#[test]
fn the_x32_and_i386_numbers_of_execve_are_found() {
    assert_eq!(
        Abi::X32.row(520 | X32_BIT).map(|row| row.name),
        Some("execve")
    );
    assert_eq!(Abi::I386.row(11).map(|row| row.name), Some("execve"));
    assert_eq!(Abi::X64.row(59).map(|row| row.name), Some("execve"));
}
