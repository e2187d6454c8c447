//! Whether a call that was let go on is over, as `/proc` tells it.
//!
//! Two look-ups of one name that is not cached are one request to a file server; only who sent it can be killed while it waits, the other
//! waits for him in any case. So whoever looks afterwards must not be first: a program that can be killed could not be any more.

use crate::notification_buffers::Notification;
use std::time::{Duration, Instant};

/// A thread that ran for so long (ns) since a call was answered is not in that call any more: what takes long there is waiting.
const RAN: u64 = 1_000_000;
/// Who dies after having waited in a call for so long did not get its answer.
const LONG: Duration = Duration::from_millis(100);
/// So long we wait where nothing tells when a call is over: `/proc` does not, or others of the kernel's threads make it.
const UNTOLD: Duration = Duration::from_millis(20);
/// Between two looks.
const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(20));
/// `io_uring_enter`, on all architectures.
const RING: u32 = 426;

/// A call that was let go on.
pub(crate) struct ContinuedCall {
    call: Notification,
    /// How long its thread had run before, in ns.
    ran: Option<u64>,
}

/// Where a thread is.
#[derive(Debug, PartialEq, Eq)]
enum CallState {
    /// It waits in the call.
    Inside,
    /// It runs; perhaps in the call.
    Runs,
    /// The call is over.
    Past,
    /// It is no more.
    Gone,
    /// Nobody tells.
    Untold,
}

impl ContinuedCall {
    /// A call whose thread waits for its answer now.
    pub(crate) fn new(call: &Notification) -> ContinuedCall {
        ContinuedCall {
            call: *call,
            ran: ran(call.tid),
        }
    }

    /// Waits until it is over. False if its thread ended in it, so that nobody knows whether there will ever be an answer.
    pub(crate) fn wait_until_over(&self) -> bool {
        let (since, mut pause) = (Instant::now(), PAUSES.0);
        let mut inside = false;
        loop {
            let waited = since.elapsed();
            match self.stands() {
                CallState::Past => return true,
                CallState::Gone => return !(inside && waited > LONG),
                CallState::Untold if waited > UNTOLD => return true,
                stands => inside = stands == CallState::Inside,
            }
            if self.call.nr == RING && waited > UNTOLD {
                return true;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    fn stands(&self) -> CallState {
        let tid = self.call.tid;
        if let (Some(before), Some(now)) = (self.ran, ran(tid))
            && now.saturating_sub(before) > RAN
        {
            return CallState::Past;
        }
        match std::fs::read_to_string(format!("/proc/{tid}/syscall")) {
            Ok(told) => stands(&told, &self.call),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => CallState::Gone,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && self.ran.is_some() => {
                CallState::Gone
            }
            Err(_) => CallState::Untold,
        }
    }
}

/// How long a thread has run, in ns, if the kernel tells.
fn ran(tid: u32) -> Option<u64> {
    let told = std::fs::read_to_string(format!("/proc/{tid}/schedstat")).ok()?;
    told.split(' ').next()?.parse().ok()
}

/// What `/proc/TID/syscall` says: `running`, or the number, six arguments, stack pointer and address of a call, or −1 and the latter
/// two outside of calls (both 0 for who has ended).
fn stands(told: &str, call: &Notification) -> CallState {
    let mut words = told.split_whitespace();
    let number = match words.next() {
        Some("running") => return CallState::Runs,
        Some("-1") if words.all(|word| word == "0x0") => return CallState::Gone,
        Some(number) => number.parse::<u32>().ok(),
        None => return CallState::Untold,
    };
    let values: Vec<u64> = words
        .filter_map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok())
        .collect();
    let same = number == Some(call.nr)
        && values.get(..6) == Some(&call.args)
        && values.last() == Some(&call.ip);
    if same {
        CallState::Inside
    } else {
        CallState::Past
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tid: u32) -> Notification {
        Notification {
            id: 1,
            tid,
            nr: 257,
            arch: 0,
            ip: 0x40_1000,
            args: [0xffff_ff9c, 0x2000, 0, 0, 5, 6],
        }
    }

    #[test]
    fn who_is_in_the_call_is_told_from_who_is_elsewhere_or_nowhere() {
        let inside = "257 0xffffff9c 0x2000 0x0 0x0 0x5 0x6 0x7ffd0000 0x401000\n";
        for (told, expected) in [
            (inside, CallState::Inside),
            ("running\n", CallState::Runs),
            (&inside.replace("257", "0"), CallState::Past),
            (&inside.replace("0x2000", "0x3000"), CallState::Past),
            (&inside.replace("0x401000", "0x401010"), CallState::Past),
            ("-1 0x7ffd0000 0x401000\n", CallState::Past),
            ("-1 0x0 0x0\n", CallState::Gone),
            ("", CallState::Untold),
        ] {
            assert_eq!(stands(told, &call(1)), expected, "{told}");
        }
    }

    #[test]
    fn a_call_is_over_when_its_thread_runs_on_or_has_ended() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let going = ContinuedCall::new(&call(child.id()));
        assert!(going.wait_until_over());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(going.stands(), CallState::Gone);
        assert!(going.wait_until_over(), "it was not seen to wait");
    }

    #[test]
    fn who_ends_while_it_waits_in_a_call_got_no_answer() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let path = format!("/proc/{}/syscall", child.id());
        // What it waits in is what we take for the call.
        let mut told = String::new();
        while !told.contains("0x") || told.starts_with('-') || told.starts_with("0 ") {
            std::thread::sleep(Duration::from_millis(10));
            told = std::fs::read_to_string(&path).unwrap();
        }
        let words: Vec<&str> = told.split_whitespace().collect();
        let value = |i: usize| u64::from_str_radix(&words[i][2..], 16).unwrap();
        let going = ContinuedCall::new(&Notification {
            nr: words[0].parse().unwrap(),
            ip: value(8),
            args: std::array::from_fn(|i| value(i + 1)),
            ..call(child.id())
        });
        let waits = std::thread::spawn(move || going.wait_until_over());
        std::thread::sleep(LONG * 3);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!waits.join().unwrap());
    }
}
