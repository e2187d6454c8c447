//! The latest call of each thread, noted while calls are deferred.
//!
//! A thread that made another call has returned from the deferred one. That stays known when the
//! thread has ended, however late the deferred thread looks.

use crate::notification_buffers::Notification;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The latest calls, by thread.
#[derive(Default)]
pub(crate) struct LaterCalls(Mutex<HashMap<u32, Notification>>);

impl LaterCalls {
    fn latest(&self) -> MutexGuard<'_, HashMap<u32, Notification>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call.
    pub(crate) fn note(&self, call: &Notification) {
        self.latest().insert(call.tid, *call);
    }

    /// Forgets all calls if `none_deferred`.
    pub(crate) fn forget_if(&self, none_deferred: impl FnOnce() -> bool) {
        let mut latest = self.latest();
        if none_deferred() {
            *latest = HashMap::new();
        }
    }

    /// True if the thread of a deferred call has made another call since. The same call is one that
    /// a signal restarted.
    pub(crate) fn follow(&self, call: &Notification) -> bool {
        let of = |call: &Notification| (call.nr, call.args, call.ip);
        let latest = self.latest();
        let latest = latest.get(&call.tid);
        latest.is_some_and(|latest| latest.id != call.id && of(latest) != of(call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_call_of_the_same_thread_follows_and_a_restarted_one_does_not() {
        let calls = LaterCalls::default();
        let deferred = Notification {
            id: 1,
            tid: 7,
            nr: 257,
            arch: 0,
            ip: 0x40_1000,
            args: [5; 6],
        };
        let later = |id, tid, nr| Notification {
            id,
            tid,
            nr,
            ..deferred
        };
        assert!(!calls.follow(&deferred));
        for (call, follows) in [
            (deferred, false),
            (later(2, 7, 257), false),
            (later(3, 8, 0), false),
            (later(4, 7, 0), true),
        ] {
            calls.note(&call);
            assert_eq!(calls.follow(&deferred), follows, "{call:?}");
        }
        calls.forget_if(|| false);
        assert!(calls.follow(&deferred));
        calls.forget_if(|| true);
        assert!(!calls.follow(&deferred));
    }
}
