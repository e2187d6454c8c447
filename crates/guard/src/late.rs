//! Calls that are looked at after they have been answered, because looking might have to wait for somebody.
//!
//! Invariant: the thread here receives nothing, so whoever it waits for (a file server that is recorded itself) can always make calls. And it
//! asks a file server nothing that the caller still waits for (`over`).

use super::ask::Ask;
use super::caller::Caller;
use super::coming::may_read;
use super::conclude::Context;
use super::mounts::Mounts;
use super::over::Going;
use super::receivers::Common;
use super::record_writer::RecordWriter;
use super::resolve::Resolver;
use super::shared::Notification;
use super::write::{who, write};
use backstory_arena::RecordSink;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::SystemTime;

/// A call that is answered, and looked at later. Kept in boxes: a queue of them as they are would be a megabyte, touched at once.
pub(super) struct Late {
    pub(super) call: Notification,
    pub(super) caller: Caller,
    pub(super) time: u64,
    /// ns since 1970.
    pub(super) real: i64,
    pub(super) ask: Ask,
    /// The call, as it goes on.
    pub(super) going: Going,
}

impl Common {
    /// Works through the queue until no receiver is left that could add to it.
    pub(super) fn run_late<S: RecordSink>(
        &self,
        mut out: RecordWriter<S>,
        queue: &Receiver<Box<Late>>,
    ) {
        let mut resolver = Resolver::new(Mounts::new(self.mounts_changed.clone()), true);
        for job in queue {
            if !job.going.ends() {
                self.unanswered.store(true, Ordering::Release);
                self.leave_unknown(&mut out, &job);
                continue;
            }
            let (callers, caller) = (&self.callers, &job.caller);
            let mut cx = Context {
                resolver: &mut resolver,
                callers,
                caller,
                now: job.time,
                since: Some(job.real),
                ahead: None,
                asked: None,
            };
            if let Ok(conclusion) = job.ask.conclude(&mut cx) {
                let stamp = (job.time, who(caller, &job.call));
                write(&mut out, stamp, &job.ask, &conclusion, &self.environments);
            }
            self.tell_read(may_read(&job.ask));
            self.queued.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Logs a call of which nothing can be found out.
    pub(super) fn leave_unknown<S: RecordSink>(&self, out: &mut RecordWriter<S>, job: &Late) {
        let stamp = (job.time, who(&job.caller, &job.call));
        write(out, stamp, &job.ask, &job.ask.unknown(), &self.environments);
        self.tell_read(may_read(&job.ask));
        self.queued.fetch_sub(1, Ordering::AcqRel);
    }
}

/// ns since 1970.
pub(super) fn real_time() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |time| time.as_nanos() as i64)
}
