//! The last recorded calls before the first difference: the recorded side of its context.
//!
//! In: a deep log, and a difference. Out: its `log_calls`, in words. They end with the call that
//! wrote the recorded bytes, or with the last one that the new execution had reached.

use crate::divergence::quoted;
use crate::matcher::CALLS_SHOWN;
use crate::names;
use crate::verdict::Reconstruction;
use backstory_deep::{Call, DeepLog};
use libc::c_long;
use std::collections::VecDeque;

/// Finds the recorded calls before the first difference.
pub fn find(log: &DeepLog, reconstruction: &mut Reconstruction) {
    let all = reconstruction.processes.iter_mut();
    let Some(first) = all.filter_map(|process| process.divergence.as_mut()).next() else {
        return;
    };
    let until = match first.time {
        0 => first.reached,
        time => time,
    };
    let calls = log.process_calls(first.epoch);
    first.log_calls = last_until(calls, until);
}

/// The last of these calls that began until a time, in words.
fn last_until(calls: impl Iterator<Item = Call>, until: u64) -> Vec<String> {
    let mut last = VecDeque::new();
    // A fact can have a later time than the call behind it.
    let calls = calls.filter(|call| !call.is_fact());
    for call in calls.take_while(|call| call.time <= until) {
        if last.len() == CALLS_SHOWN {
            last.pop_front();
        }
        last.push_back(call);
    }
    last.iter().map(words).collect()
}

fn words(call: &Call) -> String {
    let name = names::name(c_long::from(call.number));
    let object = match call.path() {
        Some(path) => quoted(path),
        None if call.fd == libc::AT_FDCWD => "AT_FDCWD".to_owned(),
        None if has_descriptor(call) => call.fd.to_string(),
        None => String::new(),
    };
    format!("{name}({object}) = {}", call.result)
}

/// Calls whose first argument is no descriptor. The log has a part of an address in its place. Of
/// `poll` and `select`, logs of earlier recorders have that, or a number of descriptors.
const WITHOUT_DESCRIPTOR: &[c_long] = &[
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_chdir,
    libc::SYS_chmod,
    libc::SYS_link,
    libc::SYS_mkdir,
    libc::SYS_rename,
    libc::SYS_rmdir,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_unlink,
];

/// True if the call was given a descriptor, or another number in its place.
fn has_descriptor(call: &Call) -> bool {
    call.fd != -1 && !WITHOUT_DESCRIPTOR.contains(&c_long::from(call.number))
}

#[cfg(test)]
mod tests {
    use super::{CALLS_SHOWN, last_until};
    use backstory_abi::deep;
    use backstory_deep::{Call, Section};

    #[test]
    fn the_recorded_calls_end_with_the_one_at_the_difference() {
        let read = |time: u64| Call {
            time,
            fd: 3,
            result: time as i64,
            ..Call::default()
        };
        let opened = Call {
            time: 4,
            number: 257,
            fd: -100,
            result: 3,
            sections: vec![Section {
                kind: deep::PATH,
                arg: 1,
                bytes: b"in".to_vec(),
            }],
            ..Call::default()
        };
        let signal = Call {
            time: 9,
            number: deep::SIGNAL,
            ..Call::default()
        };
        let all = [read(3), opened, signal, read(6), read(7)];
        let found = last_until(all.into_iter(), 6);
        assert_eq!(found, ["read(3) = 3", "openat(\"in\") = 3", "read(3) = 6"]);
        let many = last_until((0..20).map(read), u64::MAX);
        assert_eq!((many.len(), &*many[5]), (CALLS_SHOWN, "read(3) = 19"));
    }

    #[test]
    fn a_call_without_a_descriptor_is_shown_without_one_also_from_earlier_logs() {
        let call = |number: i64, fd: i32| Call {
            number: number as u16,
            fd,
            result: 1,
            ..Call::default()
        };
        let all = [
            call(libc::SYS_poll, -1),
            call(libc::SYS_poll, -2_037_216_832),
            call(libc::SYS_select, 5),
            call(libc::SYS_unlink, -2_037_216_832),
            call(libc::SYS_newfstatat, libc::AT_FDCWD),
            call(libc::SYS_fstat, 5),
        ];
        let found = last_until(all.into_iter(), u64::MAX);
        let shown = [
            "poll() = 1",
            "poll() = 1",
            "select() = 1",
            "unlink() = 1",
            "newfstatat(AT_FDCWD) = 1",
            "fstat(5) = 1",
        ];
        assert_eq!(found, shown);
    }
}
