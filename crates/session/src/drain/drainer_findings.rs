//! The drainer's findings about the run: gaps in the record, and losses.

use super::{Drainer, LoggedPieces};
use backstory_eventlog::Reason;
use backstory_functions::UnmatchedPattern;
use std::sync::atomic::Ordering;

impl Drainer {
    /// The programs that neither recorder nor guard observed, in a sentence.
    pub(crate) fn unwatched(&self) -> Option<String> {
        self.unwatched.reason().or_else(|| self.silent.reason())
    }

    /// Those of the patterns that no interpreted function matched either, in sentences.
    pub(crate) fn without_functions<'a>(
        &self,
        unmatched: &'a [UnmatchedPattern],
    ) -> impl Iterator<Item = String> + use<'a, '_> {
        let matched =
            |one: &&UnmatchedPattern| self.interpreted.as_ref().is_some_and(|all| all.has(one));
        unmatched
            .iter()
            .filter(move |one| !matched(one))
            .map(ToString::to_string)
    }

    /// Gaps that the drained records report, in sentences.
    pub(crate) fn undecoded(&self) -> impl Iterator<Item = String> {
        let mut undecoded = self.undecoded.clone();
        for chunk in self.pieces.iter().flat_map(LoggedPieces::chunks) {
            undecoded.look_for_unfinished(chunk);
        }
        undecoded.reasons().collect::<Vec<_>>().into_iter()
    }

    /// Programs that lost a privilege, in sentences.
    pub(crate) fn privileges_lost(&self) -> &[String] {
        self.privileges.reported()
    }

    /// Number of operations known to be lost so far.
    pub(crate) fn lost(&self) -> u64 {
        let arena = self.stock.arena.header();
        self.lost.saturating_add(arena.lost.load(Ordering::Acquire))
    }

    /// Why records cannot be in the log: it could not be written, or the arena was cut short.
    pub(crate) fn broken(&self) -> impl Iterator<Item = Reason> {
        let failed = self.failure().map(|error| Reason::LogFailed {
            error: error.to_owned(),
        });
        let cut_short = self.stock.arena.is_cut_short();
        failed
            .into_iter()
            .chain(cut_short.then_some(Reason::CutShort {}))
    }

    /// The number of lost operations as a reason, if there are any.
    pub(crate) fn loss(&self) -> Option<Reason> {
        let operations = self.lost();
        (operations > 0).then_some(Reason::Lost { operations })
    }

    /// The reason why the log is not whole. `None` if it is.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }
}
