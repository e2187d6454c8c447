//! Questions of a thread that are no system calls, in a record with exact time.

use crate::matcher::ProcessMatcher;
use crate::process::skip_to;
use crate::resource::Resource;

impl ProcessMatcher {
    /// This thread makes the call that returned at this time.
    pub fn passes(&mut self, thread: u32, time: u64) {
        self.exact.pass(thread, time);
    }

    /// When the next recorded output of this thread returned that has not come. `None`: none is
    /// known. Outputs to files of the root are not followed, nor those of a stream that differs.
    pub fn next_output(&self, thread: u32, resources: &[Resource]) -> Option<u64> {
        let is_own = |time: &u64| self.rest.movers.get(time).is_none_or(|by| *by == thread);
        let streams = self.virtual_streams(resources);
        let outputs = streams.map(|streams| &streams.output);
        let times = outputs.filter(|output| !output.has_parted());
        times
            .filter_map(|output| output.next_time())
            .filter(is_own)
            .min()
    }

    /// The time that this thread took next from this clock, in ns. `next`: of
    /// [`Self::next_output`].
    pub fn exact_time(&mut self, thread: u32, clock: i32, next: Option<u64>) -> Option<i64> {
        let key = (thread, clock);
        self.skip(|rest, time| {
            if let Some(queue) = rest.times.get_mut(&key) {
                skip_to(queue, time);
            }
        });
        let answers = self.rest.times.get_mut(&key)?;
        let (ns, time) = self.exact.take(thread, answers, next)?;
        self.matched += 1;
        self.reached(time);
        Some(ns)
    }

    /// The processor and node of this thread at its next question.
    pub fn processor(&mut self, thread: u32) -> Option<(u32, u32)> {
        self.skip(|rest, time| {
            if let Some(queue) = rest.processors.get_mut(&thread) {
                skip_to(queue, time);
            }
        });
        let next = self.rest.processors.get_mut(&thread)?.pop_front();
        let (told, time) = next?;
        self.matched += 1;
        self.reached(time);
        Some(told)
    }

    /// The time-stamp counter and the processor that this thread read next.
    pub fn counter(&mut self, thread: u32) -> Option<(u64, u32)> {
        self.skip(|rest, time| {
            if let Some(queue) = rest.counters.get_mut(&thread) {
                skip_to(queue, time);
            }
        });
        let answers = self.rest.counters.get_mut(&thread)?;
        let (told, time) = self.exact.take(thread, answers, None)?;
        self.matched += 1;
        self.reached(time);
        Some(told)
    }

    /// The answer that `cpuid` gave this thread next. The last one is repeated. Without any, that
    /// of another thread is taken.
    pub fn identity(&mut self, thread: u32, leaf: u32, subleaf: u32) -> Option<[u32; 4]> {
        let own = (thread, leaf, subleaf);
        let known = &self.rest.identities;
        let key = match known.contains_key(&own) {
            true => own,
            false => {
                let others = known
                    .keys()
                    .filter(|(_, of, sub)| (*of, *sub) == (leaf, subleaf));
                *others.min()?
            }
        };
        let answers = self.rest.identities.get_mut(&key)?;
        let (told, _) = match answers.len() {
            0 | 1 => answers.front().copied(),
            _ => answers.pop_front(),
        }?;
        self.matched += 1;
        Some(told)
    }
}
