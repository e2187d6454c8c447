//! Moves the runs that one store lacks from the other: `push` and `pull` are mirror images.
//!
//! 1. Both stores list their runs by id and digest, page by page.
//! 2. For each run that lacks: the contents that lack, in batches, then the run itself.
//! 3. For each run that both have with different annotations: the annotations.
//!
//! Each batch and each run is complete in the receiving store when the next one begins. So an
//! exchange that was interrupted goes on where it was: what arrived is not lacking any more.

use std::collections::HashSet;

use backstory_contents::WorkMeter;
use backstory_files::Digest;

use crate::connection::Connection;
use crate::incoming::{Accepted, conflict, not_signed};
use crate::peer::{Expected, Peer};
use crate::store_peer::StorePeer;
use crate::{Error, Result, RunEntry};

/// Contents are sent together until they have this many bytes.
const BATCH_BYTES: u64 = 16 << 20;
/// Runs whose annotations are sent together.
const ANNOTATED: usize = 100;
/// How often a run is sent whose contents the receiver removes meanwhile (`store gc`).
const ATTEMPTS: usize = 3;
/// Most runs of one exchange. Their ids are in memory.
const MOST_RUNS: usize = 1_000_000;
/// Most contents of one run.
const MOST_CONTENTS: u64 = 10_000_000;

/// Contents that are sent together, each with its size in bytes.
type Batch = Vec<(Digest, u64)>;

/// The direction of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From this store to the other.
    Push,
    /// From the other store to this one.
    Pull,
}

/// The result of an exchange.
#[derive(Debug, Default, Clone)]
pub struct Outcome {
    /// Runs that the receiving store got.
    pub runs: Vec<String>,
    /// Runs that it had already.
    pub known: u64,
    /// Contents that it got.
    pub contents: u64,
    /// Bytes of the contents and logs that it got.
    pub bytes: u64,
    /// Annotations that it got for runs that it had.
    pub annotations: u64,
    /// Runs that it did not get, each with the reason.
    pub refused: Vec<(String, String)>,
    /// Reports of the receiver about runs that it cannot index.
    pub problems: Vec<String>,
}

/// An exchange between this store and another one.
pub struct Transfer<'t, 'l, 'r> {
    /// This store.
    pub local: &'t mut StorePeer<'l>,
    /// The other store.
    pub remote: &'t mut Connection<'r>,
    /// The direction.
    pub direction: Direction,
    /// Expects the bytes that the receiver lacks.
    pub meter: WorkMeter,
}

/// The runs to move.
#[derive(Default)]
struct Plan {
    new: Vec<RunEntry>,
    annotated: Vec<String>,
}

impl Transfer<'_, '_, '_> {
    /// Counts what lacks, and moves nothing.
    pub fn examine(&mut self) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let plan = self.plan(&mut outcome)?;
        // A content that several runs have is sent once.
        let mut seen: HashSet<Digest> = HashSet::new();
        for entry in plan.new {
            outcome.bytes += entry.bytes;
            self.lacking_contents(&entry.run, &mut |_, mut lacking| {
                lacking.retain(|(digest, _)| seen.insert(*digest));
                outcome.contents += lacking.len() as u64;
                outcome.bytes += lacking.iter().map(|(_, size)| size).sum::<u64>();
                Ok(())
            })?;
            outcome.runs.push(entry.run);
        }
        outcome.annotations = plan.annotated.len() as u64;
        Ok(outcome)
    }

    /// Moves the runs that the receiver lacks. `refused` is called for each run that does not
    /// arrive, as soon as that is known.
    pub fn run(&mut self, refused: &mut dyn FnMut(&str, &str)) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let plan = self.plan(&mut outcome)?;
        outcome
            .refused
            .iter()
            .for_each(|(run, why)| refused(run, why));
        self.meter
            .expect(plan.new.iter().map(|entry| entry.bytes).sum());
        for entry in plan.new {
            match self.move_run(&entry, &mut outcome) {
                Ok(()) => {}
                Err(error) if error.concerns_one_run() => {
                    let why = backstory_vocabulary::error_chain(&error);
                    refused(&entry.run, &why);
                    outcome.refused.push((entry.run, why));
                }
                Err(error) => return Err(error),
            }
        }
        for runs in plan.annotated.chunks(ANNOTATED) {
            outcome.annotations += self.move_annotations(runs)?.annotations;
        }
        outcome.problems = match self.direction {
            Direction::Push => self.remote.finish()?,
            Direction::Pull => self.local.finish()?,
        };
        Ok(outcome)
    }

    /// Compares the lists of both stores.
    fn plan(&mut self, outcome: &mut Outcome) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut offered = Pages::new(self.direction == Direction::Push);
        let mut present = Pages::new(self.direction == Direction::Pull);
        let mut there = present.next(self)?;
        while let Some(entry) = offered.next(self)? {
            while there.as_ref().is_some_and(|there| there.run < entry.run) {
                there = present.next(self)?;
            }
            match there.as_ref().filter(|there| there.run == entry.run) {
                None if self.refuses(&entry) => {
                    outcome.refused.push((entry.run, not_signed().to_string()));
                }
                None => plan.new.push(entry),
                Some(there) if there.digest != entry.digest => {
                    let (here, other) = match self.direction {
                        Direction::Push => (&entry.digest, &there.digest),
                        Direction::Pull => (&there.digest, &entry.digest),
                    };
                    let why = conflict(&entry.run, here, other).to_string();
                    outcome.refused.push((entry.run, why));
                }
                Some(there) => {
                    outcome.known += 1;
                    let state = |one: &RunEntry| (one.annotations.clone(), one.signatures.clone());
                    let has_some = state(&entry) != <(String, String)>::default();
                    if has_some && state(there) != state(&entry) {
                        plan.annotated.push(entry.run);
                    }
                }
            }
            if plan.new.len() > MOST_RUNS {
                return Err(Error::Protocol(format!(
                    "more than {MOST_RUNS} runs are new: select some, as with --since"
                )));
            }
        }
        Ok(plan)
    }

    /// True if the run cannot be accepted, whatever its contents are.
    fn refuses(&self, entry: &RunEntry) -> bool {
        let pull = self.direction == Direction::Pull;
        pull && entry.signatures.is_empty() && self.local.needs_signatures()
    }

    /// Sends what lacks of a run, contents first.
    fn move_run(&mut self, entry: &RunEntry, outcome: &mut Outcome) -> Result<()> {
        for _ in 0..ATTEMPTS {
            self.lacking_contents(&entry.run, &mut |transfer, lacking| {
                let bytes = lacking.iter().map(|(_, size)| size).sum();
                transfer.meter.expect(bytes);
                transfer.move_contents(&lacking)?;
                outcome.contents += lacking.len() as u64;
                outcome.bytes += bytes;
                Ok(())
            })?;
            let accepted = match self.direction {
                Direction::Push => {
                    let local = &mut *self.local;
                    self.remote
                        .send_archive(|out| local.write_run(&entry.run, out))?
                }
                Direction::Pull => {
                    let local = &mut *self.local;
                    let expected = Expected::Run(entry);
                    self.remote
                        .read_run(&entry.run, |archive| local.accept(archive, expected))?
                }
            };
            if accepted.lacking.is_empty() {
                outcome.bytes += entry.bytes;
                outcome.runs.push(entry.run.clone());
                return Ok(());
            }
        }
        Err(Error::Refused(
            "contents of its files are not stored where it comes from, or are removed where it arrives".to_owned(),
        ))
    }

    /// Calls `each` for the contents of a run that the receiver lacks, in batches.
    fn lacking_contents(
        &mut self,
        run: &str,
        each: &mut dyn FnMut(&mut Self, Batch) -> Result<()>,
    ) -> Result<()> {
        let (mut after, mut seen) = (None, 0);
        loop {
            let page = match self.direction {
                Direction::Push => self.local.contents_of(run, after.as_ref())?,
                Direction::Pull => self.remote.contents_of(run, after.as_ref())?,
            };
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            after = Some(*last);
            seen += page.len() as u64;
            if seen > MOST_CONTENTS {
                return Err(Error::Refused(format!(
                    "it has more than {MOST_CONTENTS} contents"
                )));
            }
            let digests: Vec<Digest> = page.iter().map(|(digest, _)| *digest).collect();
            let lacking = match self.direction {
                Direction::Push => self.remote.lacking(&digests)?,
                Direction::Pull => self.local.lacking(&digests)?,
            };
            let (mut batch, mut bytes) = (Vec::new(), 0_u64);
            for (digest, size) in page {
                if !lacking.contains(&digest) {
                    continue;
                }
                if !batch.is_empty() && bytes.saturating_add(size) > BATCH_BYTES {
                    each(self, std::mem::take(&mut batch))?;
                    bytes = 0;
                }
                bytes = bytes.saturating_add(size);
                batch.push((digest, size));
            }
            if !batch.is_empty() {
                each(self, batch)?;
            }
        }
    }

    fn move_contents(&mut self, lacking: &[(Digest, u64)]) -> Result<Accepted> {
        let digests: Vec<Digest> = lacking.iter().map(|(digest, _)| *digest).collect();
        let local = &mut *self.local;
        match self.direction {
            Direction::Push => self
                .remote
                .send_archive(|out| local.write_contents(&digests, out)),
            Direction::Pull => self
                .remote
                .read_contents(&digests, |archive| local.accept(archive, Expected::NoRun)),
        }
    }

    fn move_annotations(&mut self, runs: &[String]) -> Result<Accepted> {
        let local = &mut *self.local;
        match self.direction {
            Direction::Push => self
                .remote
                .send_archive(|out| local.write_annotations(runs, out)),
            Direction::Pull => self
                .remote
                .read_annotations(runs, |archive| local.accept(archive, Expected::NoRun)),
        }
    }
}

/// The runs of one of the two stores, page by page.
struct Pages {
    is_local: bool,
    page: std::vec::IntoIter<RunEntry>,
    last: Option<String>,
    over: bool,
}

impl Pages {
    fn new(is_local: bool) -> Pages {
        Pages {
            is_local,
            page: Vec::new().into_iter(),
            last: None,
            over: false,
        }
    }

    fn next(&mut self, transfer: &mut Transfer<'_, '_, '_>) -> Result<Option<RunEntry>> {
        if self.page.len() == 0 && !self.over {
            let after = self.last.as_deref();
            let page = match self.is_local {
                true => transfer.local.runs(after)?,
                false => transfer.remote.runs(after)?,
            };
            self.over = page.is_empty();
            self.last = page.last().map(|entry| entry.run.clone());
            self.page = page.into_iter();
        }
        Ok(self.page.next())
    }
}
