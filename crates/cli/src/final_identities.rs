//! The identities of paths after a run, for the fold of its log.

use std::cell::RefCell;
use std::collections::HashMap;

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::{Identities, Log};
use backstory_files::Ident;
use backstory_graph::FinalState;
use backstory_session::IdentityResolver;

/// Identities of the files that were preserved at each path, each with its time, in order of time.
pub type PreservedIdentities = HashMap<Bytes, Vec<(Time, Ident)>>;

/// Those of a log.
pub fn preserved_identities(log: &Log) -> PreservedIdentities {
    let mut all = PreservedIdentities::new();
    for kept in log.preserved() {
        let of_path = all.entry(kept.path).or_default();
        of_path.push((kept.time, kept.ident));
    }
    all
}

fn first_since(kept: &PreservedIdentities, path: &[u8], since: Time) -> Option<(Time, Ident)> {
    let mut kept = kept.get(path)?.iter();
    kept.find(|(at, _)| *at >= since).copied()
}

/// Identities that the log has, for the fold. The crate `graph` has no access to logs, and
/// `eventlog` none to graphs.
pub struct LoggedIdentities<'a>(pub Identities, pub &'a PreservedIdentities);

impl FinalState for LoggedIdentities<'_> {
    fn identity(&self, path: &[u8], follow: bool) -> Option<Option<Ident>> {
        self.0.of(path, follow)
    }

    fn preserved(&self, path: &[u8], since: Time) -> Option<(Time, Ident)> {
        first_since(self.1, path, since)
    }

    fn interpreter(&self, path: &[u8]) -> Option<Bytes> {
        self.0.interpreter(path).map(Into::into)
    }

    fn link_text(&self, path: &[u8]) -> Option<Bytes> {
        self.0.link_text(path).map(Into::into)
    }
}

/// Identities that are taken from the file system now, while files are as the run left them.
pub struct FreshIdentities<'a>(pub RefCell<IdentityResolver>, pub &'a PreservedIdentities);

impl FinalState for FreshIdentities<'_> {
    fn identity(&self, path: &[u8], follow: bool) -> Option<Option<Ident>> {
        Some(self.0.borrow_mut().of(path, follow))
    }

    fn preserved(&self, path: &[u8], since: Time) -> Option<(Time, Ident)> {
        first_since(self.1, path, since)
    }

    fn interpreter(&self, path: &[u8]) -> Option<Bytes> {
        self.0.borrow_mut().interpreter(path).map(Into::into)
    }

    fn link_text(&self, path: &[u8]) -> Option<Bytes> {
        self.0.borrow_mut().link_text(path).map(Into::into)
    }
}
