//! Waits and sleeps whose time is up.
//!
//! Nothing takes time here, so the time of a wait is up at once. A request of a server alone needs
//! more care. Programs beside it wait with a timeout, and then do something that the request may
//! depend on. Each thread has the time of its own last recorded call. So a program that gets no
//! input would do at once what it did in hours.
//!
//! Invariant: no wait is over that ends behind all requests that are fed. A program that serves
//! none of them does not go on before the answers that had left by then.

use super::Supervisor;
use super::waiting::Ready;
use crate::engine::caller::NotifiedCall;
use crate::engine::proc_texts::threads;
use crate::process::ReadyTurn;

impl Supervisor {
    /// The answer to a wait or sleep of this length that nothing else ends.
    pub(super) fn time_up(&mut self, call: &NotifiedCall, index: usize, ns: i64) -> Ready {
        if ns > 0
            && let Some(end) = self.end_of_wait(call.tid, index, ns)
        {
            if self.is_behind_requests(call, end) {
                // As in the record, a signal may end it before.
                if self.is_interrupted(call).unwrap_or(false) {
                    return Ready::Interrupted;
                }
                self.parks(index);
                return Ready::Later;
            }
            let end = self.clock.counter(end).unwrap_or(0);
            if self.awaits_earlier_units(index, end) {
                self.parks(index);
                return Ready::Later;
            }
        }
        if self.matchers[index].idles() {
            return Ready::Never;
        }
        self.slept(call, index, ns);
        if let Some(part) = &mut self.part {
            part.wakes(index);
        }
        Ready::TimeUp
    }

    /// True if the next recorded wait that `fits` accepts was over because its time was up, and
    /// requests before that moment have not been answered.
    pub(super) fn time_up_comes_later(
        &self,
        index: usize,
        fits: impl Fn(&ReadyTurn) -> bool,
    ) -> bool {
        let next = self.matchers[index].next_time_up(fits);
        next.is_some_and(|turn| self.awaits_earlier_units(index, turn.time))
    }

    /// True if a moment, in ns since 1970, lies behind all requests of a server that are fed. A
    /// thread may have got the input of another one, and the time of that one with it. So a program
    /// with threads does not count.
    fn is_behind_requests(&self, call: &NotifiedCall, moment: i64) -> bool {
        let part = self.part.as_ref().filter(|part| !part.unit.is_client);
        let end = part.and_then(|part| self.clock.at(part.end()));
        end.is_some_and(|end| moment > end) && threads(self.group_of(call)) == 1
    }
}
