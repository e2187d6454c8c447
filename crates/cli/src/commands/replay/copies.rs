//! The two ends of the channel over which further attempts at a request begin in copies of the
//! started program.
//!
//! In: attempts, on the side of the command. Out: their results, from processes inside the root.
//! The channel is the standard input of the process inside, whose programs have another one. Each
//! message is one byte. Invariant: if the process inside exits with status 0, the attempt that was
//! asked for begins with a start. With another status, the replay fails.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use backstory_reconstruct::engine::{AttemptSource, NextAttempt};
use backstory_replay::plan::Plan;
use backstory_replay::root::OWN;
use backstory_replay::root::results::RootState;

use super::deep::DeepRequest;
use super::directory::{NEXT, empty, empty_results};
use super::{Played, Started, failed_to, feed, play_fed, play_first, private_file};
use crate::current_store::CurrentStore;
use crate::error::Failure;

/// To the process inside: the next attempt lies in the directory of the replay.
const ASKED: u8 = b'a';
/// From there: that attempt begins in a copy.
const BEGINS: u8 = b'b';
/// From there: an attempt has ended.
const ENDED: u8 = b'e';

/// The command's end: the process inside, which holds a started program, and the channel to it.
pub struct Holder {
    started: Started,
    channel: UnixStream,
}

impl Holder {
    /// Waits for the end of the first attempt. Returns its result, and the holder if there is one.
    pub fn first(
        mut started: Started,
        mut channel: UnixStream,
        own: &Path,
    ) -> Result<(Played, Option<Holder>), Failure> {
        let is_held = started.while_it_runs(|| next_byte(&mut channel) == Some(ENDED));
        if !is_held {
            let status = started.wait()?;
            return Ok((started.result(own, status)?, None));
        }
        let played = started.result(own, None)?;
        Ok((played, Some(Holder { started, channel })))
    }

    /// Makes an attempt in a copy. `None`: it needs a start, and the process inside has ended.
    pub fn next(&mut self, own: &Path, deep: &DeepRequest) -> Result<Option<Played>, Failure> {
        let text = serde_json::to_vec(deep).map_err(|error| failed_to("plan", &error.into()))?;
        private_file(&own.join(NEXT), &text).map_err(|error| failed_to("plan", &error))?;
        let channel = &mut self.channel;
        let ended = self.started.while_it_runs(|| {
            let asked = channel.write_all(&[ASKED]).is_ok();
            asked && next_byte(channel) == Some(BEGINS) && next_byte(channel) == Some(ENDED)
        });
        if ended {
            return self.started.result(own, None).map(Some);
        }
        let status = self.started.wait()?;
        match status.is_some_and(|status| status.success()) {
            true => Ok(None),
            false => Err(Started::was_killed(status)),
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.channel.shutdown(std::net::Shutdown::Both);
        let _ = self.started.wait();
    }
}

/// The start of a program, for the attempts at one request or at several ones.
#[derive(Default)]
pub struct Starts {
    holder: Option<Holder>,
    /// The directory of its root, if it outlives a request.
    shared: Option<PathBuf>,
    /// Each attempt starts the program.
    without_copies: bool,
}

impl Starts {
    /// One start for several requests, with its root in this directory.
    pub fn shared(directory: PathBuf) -> Starts {
        Starts {
            shared: Some(directory),
            ..Starts::default()
        }
    }

    /// A start for each attempt.
    pub fn without_copies() -> Starts {
        Starts {
            without_copies: true,
            ..Starts::default()
        }
    }

    /// The directory in which attempts are made. `own`: that of the replay.
    pub fn place(&self, own: &Path) -> PathBuf {
        self.shared.as_deref().unwrap_or(own).to_owned()
    }

    /// Puts the part that an attempt is fed into its place. The files of the attempt before are no
    /// part of this one.
    pub fn feed(&self, place: &Path, deep: &DeepRequest) -> Result<(), Failure> {
        match self.holder {
            Some(_) => empty_results(place),
            None => empty(place),
        }
        feed(place, deep)
    }

    /// Makes an attempt, in a copy of the started program or behind a new start. `how`: further
    /// attempts at the request may follow, and the output of the command goes to standard error.
    pub fn play(
        &mut self,
        (current, place, plan): (&CurrentStore, &Path, &Plan),
        deep: DeepRequest,
        (may_follow, quiet): (bool, bool),
    ) -> Result<Played, Failure> {
        if let Some(mut holder) = self.holder.take() {
            if let Some(played) = holder.next(place, &deep)? {
                self.holder = Some(holder);
                return Ok(played);
            }
            drop(holder);
            self.feed(place, &deep)?;
        }
        let may_copy = may_follow || self.shared.is_some();
        if deep.has_tool() || self.without_copies || !may_copy {
            return play_fed(current, place, plan.clone(), Some(deep), (false, quiet));
        }
        let (played, holder) = play_first(place, plan.clone(), deep, quiet)?;
        self.holder = holder;
        Ok(played)
    }

    /// The attempts at a request are over. The program stays for the next request, if there is one.
    pub fn release(&mut self) {
        if self.shared.is_none() {
            self.end();
        }
    }

    /// Ends the program.
    pub fn end(&mut self) {
        self.holder = None;
    }
}

/// `None`: the other side has closed the channel.
fn next_byte(channel: &mut UnixStream) -> Option<u8> {
    let mut byte = [0];
    channel.read_exact(&mut byte).ok()?;
    Some(byte[0])
}

/// The holder's end, inside the root. It receives the attempts that the command asks for.
pub struct Asker {
    channel: UnixStream,
    plan: Plan,
    /// The files of the root when the program was copied.
    root: Option<RootState>,
}

impl Asker {
    /// Takes the channel from the standard input.
    pub fn new(plan: &Plan) -> io::Result<Asker> {
        Ok(Asker {
            channel: UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?),
            plan: plan.clone(),
            root: None,
        })
    }
}

impl AttemptSource for Asker {
    fn begins(&mut self) {
        self.root = RootState::take().ok();
    }

    fn next(&mut self) -> Option<NextAttempt> {
        self.channel.write_all(&[ENDED]).ok()?;
        if next_byte(&mut self.channel)? != ASKED {
            return None;
        }
        // A copy would find what the attempt before has written.
        let root = self.root.as_ref()?;
        if RootState::take().ok()? != *root {
            return None;
        }
        let own = Path::new(OWN);
        let deep: DeepRequest = serde_json::from_slice(&fs::read(own.join(NEXT)).ok()?).ok()?;
        let (run, options) = deep.inside(&self.plan, deep.load(own).ok()?);
        Some(NextAttempt { run, options })
    }

    fn goes_on(&mut self) {
        // Without the other side, the replay is over.
        let _ = self.channel.write_all(&[BEGINS]);
    }
}
