//! What was there after the run, asked once for each path.
//!
//! Answers are kept by the path's number: a path that is met again costs neither its bytes nor another question.

use std::cell::RefCell;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use rustc_hash::FxHashMap;

use crate::Known;
use crate::paths::{PathId, Paths};

/// Codes of what is kept for a path; from `THERE` on they count identities.
const NOT_ASKED: u32 = 0;
const UNKNOWN: u32 = 1;
const NOTHING: u32 = 2;
const THERE: u32 = 3;

/// Asks, and remembers.
pub struct Answers<'a> {
    known: &'a dyn Known,
    /// By path, and whether a link at its end is followed.
    codes: RefCell<Vec<[u32; 2]>>,
    idents: RefCell<Vec<Ident>>,
    interpreters: RefCell<FxHashMap<PathId, Option<Bytes>>>,
}

impl<'a> Answers<'a> {
    /// Asks `known`.
    pub fn new(known: &'a dyn Known) -> Answers<'a> {
        Answers {
            known,
            codes: RefCell::default(),
            idents: RefCell::default(),
            interpreters: RefCell::default(),
        }
    }

    /// See [`Known::kept`].
    pub fn kept(&self, paths: &Paths, path: PathId, since: Time) -> Option<(Time, Ident)> {
        self.known.kept(&paths.bytes(path), since)
    }

    /// See [`Known::interpreter`].
    pub fn interpreter(&self, paths: &Paths, program: PathId) -> Option<Bytes> {
        let mut known = self.interpreters.borrow_mut();
        let ask = || self.known.interpreter(&paths.bytes(program));
        known.entry(program).or_insert_with(ask).clone()
    }

    /// See [`Known::link_text`].
    pub fn link_text(&self, paths: &Paths, link: PathId) -> Option<Bytes> {
        self.known.link_text(&paths.bytes(link))
    }

    /// See [`Known::of`].
    pub fn of(&self, paths: &Paths, path: PathId, follow: bool) -> Option<Option<Ident>> {
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
        let answer = self.known.of(&paths.bytes(path), follow);
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
