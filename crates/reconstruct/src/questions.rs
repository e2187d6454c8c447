//! Questions of a thread that are no system calls, in a record with exact time.

use crate::matcher::ProcessMatcher;
use crate::process::{RecordedProcess, skip_to};
use crate::resource::{Resource, ResourceId};

impl ProcessMatcher {
    /// This thread makes the call that returned at this time.
    pub fn passes(&mut self, thread: u32, time: u64) {
        self.exact.pass(thread, time);
    }

    /// When the next recorded output of this thread returned that has not come. `None`: none is
    /// known. Outputs to files of the root are not followed, nor those of a stream that differs.
    ///
    /// Python asks for the time at each lock, and a long run has many streams. Most have no output,
    /// or no further one, so they are not looked at again. No execution adds recorded output.
    pub fn next_output(&mut self, thread: u32, resources: &[Resource]) -> Option<u64> {
        let RecordedProcess {
            streams, movers, ..
        } = &self.rest;
        let owing = self.owing.get_or_insert_with(|| {
            let all = streams.keys().copied();
            all.filter(|id| !resources[*id].is_native()).collect()
        });
        let next_of = |id: &ResourceId| streams.get(id)?.output.next_time();
        owing.retain(|id| next_of(id).is_some());
        let has_parted = |id: &ResourceId| streams[id].output.has_parted();
        let outputs = owing.iter().filter(|id| !has_parted(id));
        let is_own = |time: &u64| movers.get(time).is_none_or(|by| *by == thread);
        outputs.filter_map(next_of).filter(is_own).min()
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

#[cfg(test)]
mod tests {
    use crate::matcher::ProcessMatcher;
    use crate::output::OutputItem;
    use crate::process::RecordedProcess;
    use crate::resource::{Origin, Resource};
    use crate::volatile::VolatileRules;
    use libc::{S_IFIFO, S_IFREG};

    #[test]
    fn the_next_output_of_a_thread_is_one_that_has_not_come_and_goes_to_no_file() {
        let resources = [
            Resource::new(Origin::Opened, b"/file", S_IFREG),
            Resource::new(Origin::Inherited, b"one", S_IFIFO),
            Resource::new(Origin::Inherited, b"other", S_IFIFO),
        ];
        let mut recorded = RecordedProcess::default();
        for (id, time, thread) in [(0, 1, 7), (1, 3, 7), (2, 4, 8), (1, 6, 7)] {
            let streams = recorded.streams.entry(id).or_default();
            streams
                .output
                .push_at(OutputItem::Bytes(b"x".to_vec()), time);
            recorded.movers.insert(time, thread);
        }
        let mut matcher = ProcessMatcher::new(recorded);
        let rules = VolatileRules::default();
        for (own, other) in [(Some(3), Some(4)), (Some(6), Some(4)), (None, Some(4))] {
            assert_eq!(matcher.next_output(7, &resources), own);
            assert_eq!(matcher.next_output(8, &resources), other);
            matcher.write((1, &resources[1]), b"x", &rules);
        }
    }
}
