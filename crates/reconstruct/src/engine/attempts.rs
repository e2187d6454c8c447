//! Further attempts at a request, which begin in copies of the started program.
//!
//! In: the next attempts, from another process. Out: the verdict on each, from a process of its
//! own. `docs/design/start-copies.md` has the rules.

use super::Options;
use crate::recorded::RecordedRun;

/// An attempt that may begin in a copy.
#[derive(Debug)]
pub struct NextAttempt {
    /// The part of the record that is fed.
    pub run: RecordedRun,
    /// As for the first attempt, but for the requests that are fed.
    pub options: Options,
}

/// The holder's end of the channel to the process that asks for attempts.
pub trait AttemptSource {
    /// The program was copied. The first attempt goes on in another process.
    fn begins(&mut self);

    /// The attempt before has ended, and so have all of its processes. Waits for the next one.
    /// `None`: no further one begins in a copy.
    fn next(&mut self) -> Option<NextAttempt>;

    /// The attempt that was asked for begins in a copy.
    fn goes_on(&mut self);
}
