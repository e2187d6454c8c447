//! Looks after the receivers, and lets calls go on where all of them wait for memory that nobody has filled.
//!
//! What a call points to may lie in a page that is only made when somebody touches it: by a thread of the program itself (`userfaultfd`), or
//! by a file server whose file is mapped. A receiver that reads it waits there, and the kernel has no flag that makes such a read fail
//! instead. Whoever is to make the page may have to make a watched call for that, and then waits for a receiver.
//!
//! Invariant: nothing here is done for a call but by a clock that runs anyway. The spare receiver receives nothing while one of the others
//! could, and reads nothing.

use super::receivers::{Common, Reserve, THREADS};
use backstory_eventlog::Reason;
use backstory_sys::kernel as sys;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The spare receiver's place.
pub(super) const PLACE: usize = THREADS;
/// Who reads a program's memory for so long is neither slow nor only waiting for a processor.
const STUCK: Duration = Duration::from_millis(200);
/// Milliseconds that the spare receiver waits for a call before it looks again whether it is needed.
const LOOK: i32 = 10;

/// The calls that the receivers are at; zero where there is none.
pub(super) type InHand = [u64; THREADS];

/// Looks from time to time whether receivers are stuck.
pub struct Looker {
    common: Weak<Common>,
    reserve: Weak<Reserve>,
    last: Mutex<(Instant, InHand)>,
}

impl Looker {
    pub(super) fn new(common: &Arc<Common>, reserve: &Arc<Reserve>) -> Looker {
        Looker {
            common: Arc::downgrade(common),
            reserve: Arc::downgrade(reserve),
            last: Mutex::new((Instant::now(), InHand::default())),
        }
    }

    /// To be called again and again, by whoever has something else to do from time to time. Does not wait.
    pub fn look(&self) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0.elapsed() < STUCK {
            return;
        }
        let (Some(common), Some(reserve)) = (self.common.upgrade(), self.reserve.upgrade()) else {
            return;
        };
        let before = last.1;
        *last = (Instant::now(), common.shared.in_hand());
        let stuck = (0..THREADS)
            .filter(|place| common.is_stuck(*place, &before))
            .count();
        if stuck == 0 || sys::poll(common.listener.as_fd(), libc::POLLIN, 0) & libc::POLLIN == 0 {
            return;
        }
        if stuck < THREADS {
            reserve.helpers.begin();
            common.wanted.fetch_add(1, Ordering::Release);
            return sys::futex_wake(&common.wanted, THREADS as u32);
        }
        reserve.spare.begin();
        *common.stuck.lock().unwrap_or_else(PoisonError::into_inner) = before;
        common.alarms.fetch_add(1, Ordering::Release);
        sys::futex_wake(&common.alarms, 1);
    }
}

impl Common {
    /// The receiver of this place is at the call that it was at before, and waits for memory of a program.
    fn is_stuck(&self, place: usize, before: &InHand) -> bool {
        let tid = self.running[place].load(Ordering::Acquire);
        before[place] != 0
            && self.shared.in_hand::<THREADS>()[place] == before[place]
            && tid != 0
            && waits_for_memory(tid)
    }

    /// The spare receiver's life.
    pub(super) fn run_spare(&self) {
        self.running[PLACE].store(sys::gettid(), Ordering::Release);
        while !self.stop.load(Ordering::Acquire) {
            let alarms = self.alarms.load(Ordering::Acquire);
            let calls =
                std::mem::take(&mut *self.stuck.lock().unwrap_or_else(PoisonError::into_inner));
            let all_stuck = || (0..THREADS).all(|place| self.is_stuck(place, &calls));
            while !self.stop.load(Ordering::Acquire) && all_stuck() {
                self.let_one_go_on();
            }
            sys::futex_wait(&self.alarms, alarms);
        }
        self.ends(PLACE);
    }

    /// Waits a moment for a call, and lets it be made unseen. Should somebody else have taken it, this is a receiver until the next one comes.
    fn let_one_go_on(&self) {
        if sys::poll(self.listener.as_fd(), libc::POLLIN, LOOK) & libc::POLLIN == 0 {
            return;
        }
        if let Ok(call) = self.shared.receive(self.listener.as_fd(), PLACE) {
            self.hooks.note(Reason::Unread {});
            let _ = sys::answer_continue(self.listener.as_fd(), call.id); // its caller may have been killed
            self.shared.clear(PLACE);
        }
    }
}

/// A thread of this process sleeps in a call that reads a program's memory. One that waits for a slow disk gets what it waits for, and the
/// call it is at is not to be let go unseen. Where the kernel does not tell the call, time alone has to.
fn waits_for_memory(tid: u32) -> bool {
    let Ok(call) = std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")) else {
        return true;
    };
    let number = call
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok());
    number.is_some_and(|number| [libc::SYS_process_vm_readv, libc::SYS_pread64].contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn who_waits_for_something_else_than_memory_is_not_stuck() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(sys::gettid()).unwrap();
            let _ = reader.read(&mut [0]);
        });
        let tid = told.recv().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waits_for_memory(tid));
        drop(writer);
        thread.join().unwrap();
    }
}
