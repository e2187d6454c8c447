//! A cache of the file system's state after the run, which is read once for each path.
//!
//! The cache is indexed by the path's number. For a path that comes again the fold needs neither
//! its bytes nor another look-up.

use std::cell::RefCell;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use rustc_hash::FxHashMap;

use crate::FinalState;
use crate::paths::{PathId, PathTable};

/// Codes of the cached states of a path. Codes from `THERE` on are indexes of identities.
const NOT_ASKED: u32 = 0;
const UNKNOWN: u32 = 1;
const NOTHING: u32 = 2;
const THERE: u32 = 3;

/// Looks up the final state of paths, and remembers the results.
#[derive(Clone)]
pub struct FinalStateCache<'a> {
    known: &'a dyn FinalState,
    /// One code for each path without, and one with, a link at its end followed.
    codes: RefCell<Vec<[u32; 2]>>,
    idents: RefCell<Vec<Ident>>,
    interpreters: RefCell<FxHashMap<PathId, Option<Bytes>>>,
}

impl<'a> FinalStateCache<'a> {
    /// A cache in front of `known`.
    pub fn new(known: &'a dyn FinalState) -> FinalStateCache<'a> {
        FinalStateCache {
            known,
            codes: RefCell::default(),
            idents: RefCell::default(),
            interpreters: RefCell::default(),
        }
    }

    /// See [`FinalState::preserved`].
    pub fn preserved(&self, paths: &PathTable, path: PathId, since: Time) -> Option<(Time, Ident)> {
        self.known.preserved(&paths.bytes(path), since)
    }

    /// See [`FinalState::interpreter`].
    pub fn interpreter(&self, paths: &PathTable, program: PathId) -> Option<Bytes> {
        let mut known = self.interpreters.borrow_mut();
        let ask = || self.known.interpreter(&paths.bytes(program));
        known.entry(program).or_insert_with(ask).clone()
    }

    /// See [`FinalState::link_text`].
    pub fn link_text(&self, paths: &PathTable, link: PathId) -> Option<Bytes> {
        self.known.link_text(&paths.bytes(link))
    }

    /// See [`FinalState::identity`].
    pub fn identity(&self, paths: &PathTable, path: PathId, follow: bool) -> Option<Option<Ident>> {
        let (at, side) = (path.0 as usize, usize::from(follow));
        let code = self
            .codes
            .borrow()
            .get(at)
            .map_or(NOT_ASKED, |sides| sides[side]);
        match code {
            NOT_ASKED => {}
            UNKNOWN => return None,
            NOTHING => return Some(None),
            there => return Some(Some(self.idents.borrow()[(there - THERE) as usize])),
        }
        let answer = self.known.identity(&paths.bytes(path), follow);
        let code = match answer {
            None => UNKNOWN,
            Some(None) => NOTHING,
            Some(Some(ident)) => {
                let mut idents = self.idents.borrow_mut();
                idents.push(ident);
                THERE + (idents.len() - 1) as u32
            }
        };
        let mut codes = self.codes.borrow_mut();
        if codes.len() <= at {
            codes.resize(paths.count(), [NOT_ASKED; 2]);
        }
        codes[at][side] = code;
        answer
    }
}
