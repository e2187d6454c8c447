//! Whether threads of a program run or sleep.
//!
//! A thread is in state S until the supervisor receives its call, as a sleeper is. Such a thread is
//! about to go on, so it does not count as asleep. Behind that, its state is S or D. A thread in
//! state D counts as running, unless it gets no answer before another one does something: it then
//! *rests*.

use super::Supervisor;
use super::processes::Role;
use crate::engine::filter;
use backstory_sys as sys;
use libc::POLLIN;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// True if a thread of a process, but for this one, does not sleep. The first thread may have ended
/// before the others. `listener`: that of the filter of all programs.
pub(super) fn another_thread_runs(listener: BorrowedFd<'_>, group: u32, own: u32) -> bool {
    a_thread_runs(listener, group, |thread| thread == own)
}

/// The same for a process, but for the threads that are `left_out`.
fn a_thread_runs(listener: BorrowedFd<'_>, group: u32, left_out: impl Fn(u32) -> bool) -> bool {
    let tasks = fs::read_dir(format!("/proc/{group}/task"));
    let mut others = tasks.into_iter().flatten().flatten().filter(|task| {
        let name = task.file_name();
        let thread: Option<u32> = name.to_str().and_then(|name| name.parse().ok());
        !thread.is_some_and(&left_out)
    });
    others.any(|task| runs(listener, &task.path()))
}

impl Supervisor {
    /// True if a thread of a process runs that does not rest, and is not this one.
    pub(super) fn may_do_something(&self, group: u32, own: u32) -> bool {
        let left_out = |thread| thread == own || self.rests(thread);
        a_thread_runs(self.listener.as_fd(), group, left_out)
    }

    /// True if a thread of a process runs, or makes a call. One that sleeps until a signal comes
    /// does neither.
    pub(super) fn is_awake(&self, group: u32) -> bool {
        let left_out = |thread| self.asleep.contains(&thread) || self.stays(thread);
        a_thread_runs(self.listener.as_fd(), group, left_out)
    }

    /// True if a program that was started does nothing more: all of its threads have ended, or are
    /// held until the request is over.
    pub(super) fn goes_no_further(&self, program: usize) -> bool {
        let all = self.live.iter();
        let mut own = all.filter(|(_, process)| process.role == Role::Program(program));
        self.started[program] && own.all(|(group, _)| self.is_held(*group))
    }

    /// True if all threads of a process have ended or are held.
    fn is_held(&self, group: u32) -> bool {
        let tasks = fs::read_dir(format!("/proc/{group}/task"));
        let mut tasks = tasks.into_iter().flatten().flatten();
        tasks.all(|task| {
            let name = task.file_name();
            let thread: Option<u32> = name.to_str().and_then(|name| name.parse().ok());
            let is_held = thread.is_some_and(|thread| self.held_threads.contains(&thread));
            is_held || matches!(state(&task.path()).as_deref(), None | Some("Z" | "X"))
        })
    }

    /// True if a thread gets no answer before another one does something.
    fn rests(&self, thread: u32) -> bool {
        self.stays(thread) || self.pipes.awaits(thread)
    }

    /// True if a thread stays in its call.
    fn stays(&self, thread: u32) -> bool {
        self.held_threads.contains(&thread) || self.staying.contains(&thread)
    }
}

/// True if one thread does not sleep. `task`: its directory in `/proc`.
fn runs(listener: BorrowedFd<'_>, task: &Path) -> bool {
    match state(task).as_deref() {
        None | Some("Z" | "X" | "T") => false,
        // In this order: only the caller receives calls, so none is received in between.
        Some("S") => {
            sys::poll(listener, POLLIN, 0) & POLLIN != 0 && may_be_unreceived(&task.join("syscall"))
        }
        Some(_) => true,
    }
}

/// The letter of a thread's state. `None`: it is gone.
fn state(task: &Path) -> Option<String> {
    let stat = fs::read(task.join("stat")).ok()?;
    let mut fields = sys::process_tree::stat_fields(&stat)?;
    fields.next().map(str::to_owned)
}

/// True unless a thread sleeps in a call that the filter does not notify of. `call`: its file
/// `syscall` in `/proc`. Another thread may have sent the notification that is there.
fn may_be_unreceived(call: &Path) -> bool {
    let text = fs::read_to_string(call).ok();
    text.is_none_or(|text| is_watched(&text))
}

/// The same for the text of that file: `running`, or the number of the call and its arguments.
fn is_watched(text: &str) -> bool {
    let first = text.split_ascii_whitespace().next();
    let number = first.and_then(|word| word.parse().ok());
    number.is_none_or(filter::may_notify)
}

#[cfg(test)]
mod tests {
    use super::{a_thread_runs, is_watched, runs, state};
    use crate::engine::filter::{self, FilterNeeds};
    use backstory_sys as sys;
    use backstory_testkit::need::skipped;
    use libc::POLLIN;
    use std::os::fd::AsFd;
    use std::path::{Path, PathBuf};
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::{Duration, Instant};

    /// Waits until a thread is in state S.
    fn await_sleep(task: &Path) {
        let began = Instant::now();
        while state(task).as_deref() != Some("S") {
            assert!(began.elapsed() < Duration::from_secs(60), "{task:?}");
            thread::yield_now();
        }
    }

    #[test]
    fn a_thread_whose_call_was_not_received_does_not_sleep() {
        let (sender, received) = channel();
        let (end, ended) = channel::<()>();
        let thread = thread::spawn(move || {
            let program = filter::program(FilterNeeds::default());
            let link = std::fs::read_link("/proc/thread-self").unwrap();
            let listener = filter::install(&program);
            let has_filter = listener.is_ok();
            sender.send((link, listener)).unwrap();
            if has_filter {
                // The filter notifies of this call.
                assert_eq!(std::os::unix::process::parent_id(), 1);
            }
            // It does not notify of the call that waits here, and ends when the test does.
            let _ = ended.recv();
        });
        let (link, listener) = received.recv().unwrap();
        let task = PathBuf::from("/proc").join(link);
        let listener = match listener {
            Ok(listener) => listener,
            Err(error) => return skipped("the states of threads", &error.to_string()),
        };
        let listener = listener.as_fd();

        assert_ne!(sys::poll(listener, POLLIN, 60_000) & POLLIN, 0);
        await_sleep(&task);
        assert!(runs(listener, &task), "before the receipt");
        let call = sys::next_notification(listener).unwrap();
        sys::answer_value(listener, call.id, 1).unwrap();
        await_sleep(&task);
        assert!(!runs(listener, &task), "asleep");
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_that_is_left_out_does_not_run() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let process = std::process::id();
        assert!(a_thread_runs(file.as_fd(), process, |_| false));
        assert!(!a_thread_runs(file.as_fd(), process, |_| true));
    }

    #[test]
    fn only_a_watched_call_may_wait_for_its_receipt() {
        for (text, watched) in [
            ("running\n", true),
            ("0 0x3 0x7ffd 0x1 0x0 0x0 0x0 0x7ffd 0x7f00\n", true),
            ("46 0x3 0x7ffd 0x0 0x0 0x0 0x0 0x7ffd 0x7f00\n", true),
            ("202 0x7ffd 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f00\n", false),
            ("-1 0x7ffd 0x7f00\n", false),
        ] {
            assert_eq!(is_watched(text), watched, "{text}");
        }
    }
}
