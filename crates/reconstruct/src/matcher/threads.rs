//! How far each thread has come in the record.
//!
//! In: the recorded calls that answered a thread. Out: the moment of the thread, and when its next
//! recorded call began. All input is there from the beginning, so threads come in another order
//! than in the record. A thread that gets what another one got does the work of that one from there
//! on.
//!
//! Invariant: an answer to one thread moves no other thread.

use super::ProcessMatcher;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A thread that goes on so soon behind an answer has not waited for another one.
const AT_ONCE: Duration = Duration::from_millis(5);

/// How far one thread has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadPosition {
    /// Time-stamp counter when the recorded call returned that answered last.
    pub time: u64,
    /// That when the recorded write returned whose bytes left last.
    pub wrote: u64,
    /// When the last answer came in the new execution, or the last sleep ended. `None`: output left
    /// behind that, or the thread has just begun.
    answered: Option<Instant>,
    /// Its recorded number.
    recorded: u32,
    /// The recorded thread whose work it does.
    role: u32,
}

impl ThreadPosition {
    /// Time-stamp counter up to which the thread has run again. Output moves it, too.
    pub fn passed_until(&self) -> u64 {
        self.time.max(self.wrote)
    }

    /// True if the thread may have waited for another one behind its last answer or output.
    pub fn may_have_waited(&self) -> bool {
        self.answered.is_none_or(|at| at.elapsed() > AT_ONCE)
    }
}

/// The positions of all threads of a process, by their number.
#[derive(Debug, Clone, Default)]
pub(super) struct ThreadPositions {
    all: HashMap<u32, ThreadPosition>,
    /// The thread whose call is answered.
    caller: u32,
    /// How often a recorded wait answered, or bytes of the record entered.
    progress: u64,
    /// The waits of each thread whose time was up behind the last progress, with that progress.
    idle: HashMap<u32, (u64, u32)>,
}

impl ThreadPositions {
    /// A recorded call answers the caller. `mover`: the recorded thread that made this call, if it
    /// is known.
    pub fn reach(&mut self, time: u64, mover: Option<u32>) {
        if let Some(own) = self.all.get_mut(&self.caller) {
            own.time = own.time.max(time);
            own.answered = Some(Instant::now());
            own.role = mover.unwrap_or(own.role);
        }
    }

    /// The same for bytes that leave.
    pub fn write(&mut self, time: u64, mover: Option<u32>) {
        if let Some(own) = self.all.get_mut(&self.caller) {
            own.wrote = own.wrote.max(time);
            own.answered = None;
            own.role = mover.unwrap_or(own.role);
        }
    }

    /// A recorded wait answers, or bytes of the record enter.
    pub fn progress(&mut self) {
        self.progress += 1;
    }

    /// The time of a wait of the caller is up. Returns how often that was since the last progress.
    pub fn idle(&mut self) -> u32 {
        let (progress, count) = self.idle.entry(self.caller).or_default();
        if *progress != self.progress {
            (*progress, *count) = (self.progress, 0);
        }
        *count += 1;
        *count
    }

    /// The time of the caller. `None`: it has none of its own.
    pub fn callers_time(&self) -> Option<u64> {
        Some(self.all.get(&self.caller)?.time)
    }

    /// The answer that returned at this time was not for the caller, which is where it was before.
    pub fn take_back(&mut self, time: u64, before: u64) {
        if let Some(own) = self.all.get_mut(&self.caller)
            && own.time == time
        {
            own.time = before;
        }
    }
}

impl ProcessMatcher {
    /// The call of this thread is answered next. `recorded`: its recorded number. A thread that
    /// comes for the first time begins where its maker was. If that is not known, it begins where
    /// the process began.
    pub fn turns_to(&mut self, thread: u32, recorded: u32) {
        let position = self.position(thread);
        let own = self.threads.all.entry(thread).or_insert(position);
        if own.recorded != recorded {
            (own.recorded, own.role) = (recorded, recorded);
        }
        self.threads.caller = thread;
    }

    /// The caller makes a thread with this number.
    pub fn makes_thread(&mut self, thread: u32) {
        let position = ThreadPosition {
            answered: None,
            recorded: thread,
            role: thread,
            ..self.position(self.threads.caller)
        };
        self.threads.all.insert(thread, position);
    }

    /// The caller has slept.
    pub fn slept(&mut self) {
        if let Some(own) = self.threads.all.get_mut(&self.threads.caller) {
            own.answered = Some(Instant::now());
        }
    }

    /// How far a thread has come.
    pub fn position(&self, thread: u32) -> ThreadPosition {
        let own = self.threads.all.get(&thread).copied();
        own.unwrap_or(ThreadPosition {
            time: self.rest.began,
            wrote: 0,
            answered: None,
            recorded: thread,
            role: thread,
        })
    }

    /// Time-stamp counter when the next recorded call of a thread began. `None`: no further one is
    /// known.
    pub fn next_call(&self, thread: u32) -> Option<u64> {
        let own = self.position(thread);
        let calls = self.rest.call_times.get(&own.role)?;
        let until = own.passed_until();
        let next = calls.partition_point(|began| *began <= until);
        calls.get(next).copied()
    }

    /// Time-stamp counter up to which the thread with this recorded number has run again.
    pub fn passed_by(&self, recorded: u32) -> u64 {
        if self.rest.threads.is_empty() {
            return self.passed_until();
        }
        let mut all = self.threads.all.values();
        let own = all.find(|own| own.recorded == recorded);
        own.map_or(self.rest.began, ThreadPosition::passed_until)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ProcessMatcher;
    use crate::process::RecordedProcess;
    use std::collections::{BTreeMap, HashMap};

    const MAIN: u32 = 10;
    const WORKER: u32 = 11;
    const OTHER: u32 = 12;

    /// A process with three threads. Reads returned at 25 (the worker's) and at 45 (the other's).
    fn process() -> ProcessMatcher {
        ProcessMatcher::new(RecordedProcess {
            own_pid: MAIN,
            began: 1,
            threads: vec![WORKER, OTHER],
            movers: HashMap::from([(25, WORKER), (45, OTHER)]),
            call_times: BTreeMap::from([
                (MAIN, vec![5, 60]),
                (WORKER, vec![20, 30]),
                (OTHER, vec![40, 50]),
            ]),
            ..RecordedProcess::default()
        })
    }

    #[test]
    fn an_answer_to_one_thread_moves_no_other_one() {
        let mut matcher = process();
        matcher.turns_to(MAIN, MAIN);
        matcher.reached(6);
        matcher.makes_thread(WORKER);
        matcher.reached(61);
        matcher.turns_to(WORKER, WORKER);
        assert_eq!(matcher.position(WORKER).time, 6);
        matcher.reached(25);
        matcher.writes(31);
        assert_eq!(matcher.position(MAIN).passed_until(), 61);
        assert_eq!(matcher.position(WORKER).passed_until(), 31);
        assert_eq!((matcher.time(), matcher.passed_until()), (61, 61));
        assert_eq!(
            (matcher.passed_by(WORKER), matcher.passed_by(OTHER)),
            (31, 1)
        );
    }

    #[test]
    fn a_thread_may_have_waited_before_its_first_answer_and_behind_its_output() {
        let mut matcher = process();
        matcher.turns_to(WORKER, WORKER);
        assert!(matcher.position(WORKER).may_have_waited());
        matcher.slept();
        matcher.writes(31);
        assert!(matcher.position(WORKER).may_have_waited());
        assert!(matcher.position(MAIN).may_have_waited());
    }

    #[test]
    fn a_thread_whose_maker_is_unknown_begins_where_the_process_began() {
        let mut matcher = process();
        matcher.turns_to(MAIN, MAIN);
        matcher.reached(6);
        matcher.turns_to(4711, WORKER);
        assert_eq!(matcher.position(4711).time, 1);
        assert_eq!(matcher.next_call(4711), Some(20));
    }

    #[test]
    fn the_waits_of_one_thread_do_not_end_the_record_of_another_one() {
        let mut matcher = process();
        matcher.turns_to(MAIN, MAIN);
        assert!((0..100).any(|_| matcher.idles()));
        matcher.turns_to(WORKER, WORKER);
        assert!(!matcher.idles());
        matcher.turns_to(MAIN, MAIN);
        assert!(matcher.idles());
    }

    #[test]
    fn a_thread_that_got_the_bytes_of_another_one_goes_on_as_that_one() {
        let mut matcher = process();
        matcher.turns_to(WORKER, WORKER);
        assert_eq!(matcher.next_call(WORKER), Some(20));
        matcher.reached(25);
        assert_eq!(matcher.next_call(WORKER), Some(30));
        matcher.turns_to(WORKER, WORKER);
        matcher.reached(45);
        assert_eq!(matcher.next_call(WORKER), Some(50));
        matcher.reached(51);
        assert_eq!(matcher.next_call(WORKER), None);
    }
}
