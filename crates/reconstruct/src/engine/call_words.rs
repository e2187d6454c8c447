//! A call of the new execution in words, for reports.
//!
//! In: a notified call. Out: its name with its first three arguments, and a path as text. The
//! memory of the caller is read, and never written. A path that cannot be read is an address.

use super::caller::NotifiedCall;
use crate::divergence::quoted;
use crate::names;
use libc::*;

/// Most bytes of a path that a report has.
const PATH_SHOWN: usize = 160;

/// The call in words, as `openat(AT_FDCWD, "notes.txt", 577)`.
pub fn words(call: &NotifiedCall) -> String {
    let path_at = path_at(call.number);
    let shown = |at: usize| match at {
        0 if path_at == Some(1) && call.int(0) == AT_FDCWD => "AT_FDCWD".to_owned(),
        _ if path_at == Some(at) => path(call, at),
        // Of most calls, this is an address. One of a program with fixed addresses may be small.
        1 => address(call.args[at]),
        _ => number(call.args[at]),
    };
    let name = names::name(call.number);
    format!("{name}({}, {}, {})", shown(0), shown(1), shown(2))
}

/// The number of the argument that is a path, if the call has one. If it is the second one, the
/// first is the descriptor of a directory.
fn path_at(number: c_long) -> Option<usize> {
    match number {
        SYS_open | SYS_creat | SYS_mkdir | SYS_stat | SYS_lstat | SYS_statfs | SYS_access
        | SYS_readlink | SYS_chown | SYS_lchown | SYS_execve => Some(0),
        SYS_openat | SYS_openat2 | SYS_mkdirat | SYS_newfstatat | SYS_statx | SYS_faccessat
        | SYS_faccessat2 | SYS_readlinkat | SYS_fchownat | SYS_execveat => Some(1),
        _ => None,
    }
}

fn path(call: &NotifiedCall, at: usize) -> String {
    match call.string(call.args[at]) {
        Ok(path) if path.len() > PATH_SHOWN => format!("{}…", quoted(&path[..PATH_SHOWN])),
        Ok(path) => quoted(&path),
        Err(_) => address(call.args[at]),
    }
}

fn address(argument: u64) -> String {
    format!("{argument:#x}")
}

/// An argument as a number. The kernel takes the lower half of a register for an `int`, whatever
/// the upper half has. A larger number is an address.
fn number(argument: u64) -> String {
    let int = argument as i32;
    match u32::try_from(argument).is_ok() || i64::from(int) as u64 == argument {
        true => int.to_string(),
        false => address(argument),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call of this process.
    fn call(number: c_long, first: [u64; 3]) -> NotifiedCall {
        let [a, b, c] = first;
        NotifiedCall {
            id: 0,
            tid: std::process::id(),
            number,
            args: [a, b, c, 0, 0, 0],
            behind: 0,
        }
    }

    #[test]
    fn a_report_names_the_path_of_a_call_and_no_address_for_it() {
        let path = c"uploads/../page.py";
        let at = path.as_ptr() as u64;
        // As a compiler passes it: the upper half of the register is 0, or is not.
        for directory in [u64::from(AT_FDCWD as u32), AT_FDCWD as u64] {
            let opens = call(SYS_openat, [directory, at, 577]);
            let shown = "openat(AT_FDCWD, \"uploads/../page.py\", 577)";
            assert_eq!(words(&opens), shown);
        }
        let opens = call(SYS_open, [at, 0, 0]);
        assert_eq!(words(&opens), "open(\"uploads/../page.py\", 0x0, 0)");
        let below = call(SYS_openat, [7, at, 0]);
        assert_eq!(words(&below), "openat(7, \"uploads/../page.py\", 0)");
    }

    #[test]
    fn other_arguments_are_numbers_and_addresses() {
        let reads = call(SYS_read, [0, 0x7fff_f7d5_1000, 131_072]);
        assert_eq!(words(&reads), "read(0, 0x7ffff7d51000, 131072)");
        let waits = call(SYS_poll, [0x7fff_8692_0000, 1, u64::from(u32::MAX)]);
        assert_eq!(words(&waits), "poll(0x7fff86920000, 0x1, -1)");
        // The first page is never mapped.
        let fails = call(SYS_openat, [u64::from(AT_FDCWD as u32), 8, 0]);
        assert_eq!(words(&fails), "openat(AT_FDCWD, 0x8, 0)");
    }
}
