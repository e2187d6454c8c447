//! Short rests of a thread that comes last.
//!
//! A processor on which a `SCHED_IDLE` thread computes is not idle. So it takes no waiting thread
//! from another processor before the next balancing (sched(7), `newidle_balance` in
//! `kernel/sched/fair.c`). A compiler can wait for many milliseconds that way. When the thread
//! sleeps, its processor looks for waiting threads at once, and the thread goes on after them.
//!
//! In: the calling thread, while a [`Rests`] lives. Out: the thread sleeps for [`REST_NS`] after
//! each [`WORK_NS`] of its processor time, in a signal handler. Invariant: the handler calls
//! nanosleep(2) alone, and keeps `errno`.
//!
//! The timer counts the processor time of the thread, and no time in which it sleeps. So it does
//! not interrupt a wait: libraries as SQLite count the whole time of a sleep that was interrupted.
//! The kernel looks at such a timer at its ticks only, which are 1 to 10 ms apart.
#![allow(unsafe_code)]

use libc::{c_int, c_long};
use std::marker::PhantomData;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Ns of processor time between two rests.
const WORK_NS: c_long = 4_000_000;
/// Ns of a rest.
const REST_NS: c_long = 200_000;
/// The signal of the timer. Nothing else here uses it.
const SIGNAL: c_int = libc::SIGVTALRM;

/// False after [`stop_rests`].
static RESTING: AtomicBool = AtomicBool::new(true);

/// The calling thread rests often while this lives.
#[derive(Debug)]
pub struct Rests {
    /// `None`: the thread does not come last, or the kernel gives no timer.
    timer: Option<libc::timer_t>,
    /// Only the thread that made it can end it.
    of_thread: PhantomData<*const ()>,
}

impl Rests {
    /// Begins the rests of a thread that comes last. Another thread does not rest.
    pub fn begin() -> Rests {
        let timer = crate::is_last().then(timer_of_thread).flatten();
        Rests {
            timer,
            of_thread: PhantomData,
        }
    }
}

impl Drop for Rests {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            // SAFETY: the timer was created, and is deleted once.
            unsafe { libc::timer_delete(timer) };
        }
    }
}

/// Ends all rests of this process for good: another process waits for it now.
pub fn stop_rests() {
    RESTING.store(false, Relaxed);
}

/// Sleeps for a rest.
extern "C" fn rest(_: c_int) {
    if !RESTING.load(Relaxed) {
        return;
    }
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: REST_NS,
    };
    // SAFETY: the pointer to `errno` is the thread's own. The call is async-signal-safe, and reads
    // a time that outlives it.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::nanosleep(&raw const time, null_mut());
        *errno = before;
    }
}

/// A timer that sends its signal to the calling thread, again and again.
fn timer_of_thread() -> Option<libc::timer_t> {
    // SAFETY: all structures are plain numbers and pointers, for which zeros are valid. They
    // outlive the calls. The handler has the type that is expected without `SA_SIGINFO`.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = rest as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        if libc::sigaction(SIGNAL, &raw const action, null_mut()) != 0 {
            return None;
        }
        let mut event: libc::sigevent = zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer: libc::timer_t = null_mut();
        if libc::timer_create(
            libc::CLOCK_THREAD_CPUTIME_ID,
            &raw mut event,
            &raw mut timer,
        ) != 0
        {
            return None;
        }
        let often = libc::timespec {
            tv_sec: 0,
            tv_nsec: WORK_NS,
        };
        let times = libc::itimerspec {
            it_interval: often,
            it_value: often,
        };
        libc::timer_settime(timer, 0, &raw const times, null_mut());
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::Rests;
    use std::hint::black_box;
    use std::time::{Duration, Instant};

    /// How often the calling thread has given up its processor itself.
    fn sleeps() -> i64 {
        // SAFETY: zeros are valid numbers, and the call fills them in.
        unsafe {
            let mut used: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut used);
            used.ru_nvcsw
        }
    }

    /// True if a sleep that is much longer than the time between two rests is not interrupted.
    fn sleeps_whole() -> bool {
        let time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 50_000_000,
        };
        // SAFETY: the call reads a time that outlives it.
        unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) == 0 }
    }

    /// Computes until the thread has slept so often, or until a bound.
    fn compute(times: i64, most: Duration) -> bool {
        let (before, began) = (sleeps(), Instant::now());
        while sleeps() - before < times {
            black_box((0..1000).sum::<u64>());
            if began.elapsed() > most {
                return false;
            }
        }
        true
    }

    /// The kernel may look at the timer when a sleep begins, so one of several may be interrupted.
    #[test]
    fn the_rests_of_a_thread_do_not_interrupt_its_sleeps() {
        let last = std::thread::spawn(|| {
            crate::come_last();
            let _rests = Rests::begin();
            (0..5).any(|_| sleeps_whole())
        });
        assert!(last.join().unwrap());
    }

    #[test]
    fn a_thread_that_comes_last_rests_while_it_computes_and_another_one_does_not() {
        let last = std::thread::spawn(|| {
            crate::come_last();
            let rests = Rests::begin();
            let rested = compute(20, Duration::from_secs(60));
            drop(rests);
            (rested, compute(1, Duration::from_millis(50)))
        });
        assert_eq!(last.join().unwrap(), (true, false));
        let ordinary = std::thread::spawn(|| {
            let _rests = Rests::begin();
            compute(1, Duration::from_millis(50))
        });
        assert!(!ordinary.join().unwrap());
    }
}
