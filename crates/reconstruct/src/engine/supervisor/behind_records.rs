//! Programs that did not run again, because the record of the one that started them ends before.
//!
//! A program whose record ends early is ended where it waits for more. It then starts nothing of
//! what it started later. Invariant: a program is among these only if no recorded call made it, or
//! if its maker is among them. All others have to be started again.

use super::Supervisor;

impl Supervisor {
    /// By program: true for these.
    pub(super) fn behind_records(&self) -> Vec<bool> {
        let mut found = Vec::with_capacity(self.matchers.len());
        for (index, started) in self.started.iter().enumerate() {
            let is_behind = !started && self.is_behind_record(index, &found);
            found.push(is_behind);
        }
        found
    }

    /// `before`: the same of the programs that began before.
    fn is_behind_record(&self, index: usize, before: &[bool]) -> bool {
        let rest = &self.matchers[index].rest;
        let lacks_start = |maker: usize| {
            let of = &self.matchers[maker].rest;
            let is_later = of.whole_until.unwrap_or(0) < rest.began;
            before[maker] || self.started[maker] && of.ends_early && is_later
        };
        let mut earlier = (0..before.len()).rev();
        let mut same = earlier.clone();
        if rest.start.by_exec
            && let Some(executor) = same.find(|at| self.matchers[*at].rest.pid == rest.pid)
        {
            return lacks_start(executor);
        }
        match self.made.get(&rest.pid) {
            // The record has the call that made it.
            Some(maker) => before.get(*maker).copied().unwrap_or(false),
            None => earlier.any(|at| self.matchers[at].rest.pid == rest.parent && lacks_start(at)),
        }
    }
}
