//! The identities of paths after a run's end, and the interpreters of the programs there.

use crate::chunk::{ChunkView, SkippedRecords};
use crate::record::{NOFOLLOW, RawRecord};
use backstory_abi::{DONE, op};
use backstory_files::Ident;
use rustc_hash::FxHashMap;

const FILE_TYPE: u32 = 0o170_000;
const SYMLINK: u32 = 0o120_000;

/// Two results for a path: with its final link followed, and not. `Some(None)`: no file is there.
type Answers = [Option<Option<Ident>>; 2];

/// Identities by path. A later look-up replaces an earlier one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identities {
    paths: FxHashMap<Box<[u8]>, Answers>,
    interpreters: FxHashMap<Box<[u8]>, Box<[u8]>>,
    link_texts: FxHashMap<Box<[u8]>, Box<[u8]>>,
}

impl Identities {
    /// From frames of `IDENT` records.
    pub(crate) fn read<'a>(frames: impl Iterator<Item = &'a [u8]>) -> Identities {
        let mut identities = Identities::default();
        for frame in frames {
            let view = ChunkView::bare(frame);
            let mut offset = 0;
            while let Some((at, head)) = view.next(offset, &mut SkippedRecords::default()) {
                offset = at + usize::from(head.size);
                if let Some(raw) = RawRecord::parse(view.from(at)) {
                    identities.take(&raw);
                }
            }
        }
        identities
    }

    fn take(&mut self, raw: &RawRecord<'_>) {
        if raw.head.op == op::RUNS && raw.head.state == DONE {
            let [program, interpreter] = raw.strings().map(Into::into);
            self.interpreters.insert(program, interpreter);
        }
        if raw.head.op == op::LINK_TEXT && raw.head.state == DONE {
            let [path, text] = raw.strings().map(Into::into);
            self.link_texts.insert(path, text);
        }
        if raw.head.op != op::IDENT || raw.head.state != DONE {
            return;
        }
        let answer = if raw.head.result < 0 { None } else { raw.ident };
        if raw.head.result >= 0 && answer.is_none() {
            return;
        }
        let follow = raw.head.arg & NOFOLLOW == 0;
        let path = raw.strings()[0];
        match self.paths.get_mut(path) {
            Some(answers) => answers[usize::from(follow)] = Some(answer),
            None => {
                let mut answers = Answers::default();
                answers[usize::from(follow)] = Some(answer);
                self.paths.insert(path.into(), answers);
            }
        }
    }

    /// The identity of a path, with its final link followed or not. `None` if it was not looked up,
    /// `Some(None)` if no file is there.
    ///
    /// One look-up serves both where the results must be the same: no file, or a file that is no
    /// link.
    pub fn of(&self, path: &[u8], follow: bool) -> Option<Option<Ident>> {
        let answers = self.paths.get(path)?;
        answers[usize::from(follow)].or_else(|| match (follow, answers[usize::from(!follow)]?) {
            (true, None) => Some(None),
            (true, Some(ident)) => (ident.mode & FILE_TYPE != SYMLINK).then_some(Some(ident)),
            (false, _) => None,
        })
    }

    /// The interpreter of the program at `path`, as the program's first bytes named it after the
    /// end: of a script, or a dynamic loader. `None` if it has none, or if it was not looked up.
    pub fn interpreter(&self, path: &[u8]) -> Option<&[u8]> {
        self.interpreters
            .get(path)
            .map(|interpreter| &**interpreter)
    }

    /// The text of the symbolic link at `path` after the end. `None` if the path is no link, or if
    /// its text was not read.
    pub fn link_text(&self, path: &[u8]) -> Option<&[u8]> {
        self.link_texts.get(path).map(|text| &**text)
    }

    /// Number of paths with a result.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// True without any result.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}
