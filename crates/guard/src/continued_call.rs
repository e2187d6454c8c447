//! Waits until a call that the kernel continued is over, as `/proc` shows it.
//!
//! The kernel merges two look-ups of one name that is not cached into one request to a file server.
//! Only the thread that sent the request can be killed while it waits; the other thread waits for
//! it in any case. So the deferred thread must not send the request first: a program that can be
//! killed could then not be killed any more.

use crate::notification_buffers::Notification;
use std::time::{Duration, Instant};

/// A thread that ran for so long (ns) since the response has left the call: a call that takes long
/// waits and does not run.
const RAN: u64 = 1_000_000;
/// A thread that dies after it waited for so long in a call got no reply to it.
const LONG: Duration = Duration::from_millis(100);
/// The longest wait where `/proc` does not show when the call is over, or where other kernel
/// threads carry it out.
const UNTOLD: Duration = Duration::from_millis(20);
/// The shortest and the longest pause between two looks.
const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(20));
/// `io_uring_enter`, on all architectures.
const RING: u32 = 426;

/// A call that the kernel continued.
pub(crate) struct ContinuedCall {
    call: Notification,
    /// How long the thread had run before the response, in ns.
    ran: Option<u64>,
}

/// Where a thread is, relative to the call.
#[derive(Debug, PartialEq, Eq)]
enum CallState {
    /// The thread waits in the call.
    Inside,
    /// The thread runs, perhaps in the call.
    Runs,
    /// The call is over.
    Past,
    /// The thread has ended.
    Gone,
    /// `/proc` does not say.
    Untold,
}

impl ContinuedCall {
    /// A call whose thread still waits for the response.
    pub(crate) fn new(call: &Notification) -> ContinuedCall {
        ContinuedCall {
            call: *call,
            ran: ran(call.tid),
        }
    }

    /// Waits until the call is over. False if its thread ended in it, so that it is unknown whether
    /// there will be a reply. `went_on`: whether the thread made another call. On a busy machine it
    /// may have done so, and ended, since it was last seen to wait.
    pub(crate) fn wait_until_over(&self, went_on: &dyn Fn() -> bool) -> bool {
        let (since, mut pause) = (Instant::now(), PAUSES.0);
        let mut inside = false;
        loop {
            if let Some(over) = self.look(since.elapsed(), &mut inside, went_on) {
                return over;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// One look of [`ContinuedCall::wait_until_over`]. `None` while the call is not over. `inside`:
    /// whether the thread was last seen to wait in the call.
    fn look(
        &self,
        waited: Duration,
        inside: &mut bool,
        went_on: &dyn Fn() -> bool,
    ) -> Option<bool> {
        match self.stands() {
            CallState::Past => return Some(true),
            CallState::Gone => return Some(!(*inside && waited > LONG) || went_on()),
            CallState::Untold if waited > UNTOLD => return Some(true),
            stands => *inside = was_inside(*inside, &stands),
        }
        (self.call.nr == RING && waited > UNTOLD).then_some(true)
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

/// True if the thread waited in the call when it was last seen to wait. A thread that is killed in
/// the call runs for a moment before it has ended.
fn was_inside(before: bool, stands: &CallState) -> bool {
    match stands {
        CallState::Inside => true,
        CallState::Runs => before,
        CallState::Past | CallState::Gone | CallState::Untold => false,
    }
}

/// How long a thread has run, in ns, if the kernel shows it.
fn ran(tid: u32) -> Option<u64> {
    let told = std::fs::read_to_string(format!("/proc/{tid}/schedstat")).ok()?;
    told.split(' ').next()?.parse().ok()
}

/// Reads `/proc/TID/syscall`. The file says `running`; or the call's number, six arguments, stack
/// pointer and instruction address; or outside of calls −1 and the latter two. Both are 0 for a
/// thread that has ended.
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
    fn the_syscall_file_shows_whether_a_thread_is_in_the_call() {
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
        assert!(going.wait_until_over(&|| false));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(going.stands(), CallState::Gone);
        assert!(going.wait_until_over(&|| false), "it was not seen to wait");
    }

    #[test]
    fn a_thread_that_runs_to_its_end_in_a_call_still_waited_there() {
        assert!(was_inside(true, &CallState::Runs));
        assert!(!was_inside(false, &CallState::Runs));
        assert!(!was_inside(true, &CallState::Past));
    }

    #[test]
    fn a_thread_that_ends_while_it_waits_in_a_call_got_no_reply() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let path = format!("/proc/{}/syscall", child.id());
        // The call that the child sleeps in stands for the call under test.
        let sleeps = format!("{} 0x", libc::SYS_clock_nanosleep);
        let mut told = String::new();
        while !told.starts_with(&sleeps) {
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
        let mut inside = false;
        assert_eq!(going.look(Duration::ZERO, &mut inside, &|| false), None);
        child.kill().unwrap();
        child.wait().unwrap();
        let mut look = |went_on| going.look(LONG * 3, &mut inside, &|| went_on);
        assert_eq!(look(false), Some(false));
        assert_eq!(look(true), Some(true), "it made another call");
    }
}
