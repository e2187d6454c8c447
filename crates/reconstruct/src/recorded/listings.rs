//! Arranges the listings of directories of the root.
//!
//! libc takes a listing in pieces (getdents64(2)), as many as its buffer needs. In a new execution,
//! the buffer may be another one. So the pieces of a listing are kept as one result.
//!
//! Invariant: a new execution takes a result when it reads a directory from the beginning. So a
//! program that goes back into a listing which has ended (seekdir(3)) gets no further result.

use super::{Arranging, ended};
use crate::process::{CallObject, RecordedResult, ResultKey};
use crate::resource::{Origin, ResourceId, is_kernels};
use backstory_deep::Call;
use libc::STDERR_FILENO;

/// The offset of the length in an entry (`struct linux_dirent64`).
pub(crate) const LENGTH_AT: usize = 16;
/// The offset of the name, which ends with a zero byte.
pub(crate) const NAME_AT: usize = 19;
/// Which argument of the call is the buffer.
const BUFFER: u16 = 1;

/// The listing of an open directory, as far as it came.
#[derive(Default)]
pub(super) struct Listing {
    entries: Vec<u8>,
    state: State,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum State {
    /// The program reads it from the beginning.
    #[default]
    New,
    /// It has ended, and is a result.
    Ended,
    /// It has ended, and the program went back into it.
    Again,
    /// A piece is missing. Where the program is in it is not known any more.
    Lost,
}

impl Arranging {
    /// A call took a piece of a listing, or found its end. A listing that was not read to its end
    /// is no result, and neither is one of a directory without an absolute path.
    pub(super) fn listed(&mut self, call: &Call) {
        let id = self.table.get(&call.fd).copied();
        let Some(id) = id.filter(|id| self.run.resources[*id].is_native()) else {
            return self.result(call);
        };
        if self.run.resources[id].origin == Origin::Inherited {
            self.was_not_open_at_start(id);
        }
        let resource = &self.run.resources[id];
        let path = match resource.link.is_empty() {
            true => &resource.name,
            false => &resource.link,
        };
        let object = CallObject::Path(path.clone());
        let is_known = path.starts_with(b"/") && !is_kernels(path);
        if !is_known || self.omits_result(call, &object) {
            return;
        }
        let key = ResultKey {
            call: call.number,
            object,
            detail: 0,
        };
        let piece = call.entered_at(BUFFER).filter(|_| !call.is_cut);
        match (call.result, piece) {
            (1.., Some(piece)) => {
                let listing = self.listings.entry(id).or_default();
                let results = self.process.results.get(&key);
                let last = results.and_then(|results| results.back()?.0.entered.first());
                listing.goes_on(last.map(Vec::as_slice), piece);
            }
            (0, _) => {
                let listing = self.listings.get_mut(&id);
                let Some(listing) = listing.filter(|listing| listing.state != State::Lost) else {
                    return;
                };
                let state = std::mem::replace(&mut listing.state, State::Ended);
                let entries = std::mem::take(&mut listing.entries);
                if state != State::New {
                    return;
                }
                let result = RecordedResult {
                    value: 0,
                    entered: vec![entries],
                };
                let queue = self.process.results.entry(key).or_default();
                queue.push_back((result, ended(call)));
            }
            // The position stays.
            (..0, _) => {}
            (1.., None) => {
                let listing = self.listings.entry(id).or_default();
                listing.state = State::Lost;
            }
        }
    }

    /// The program lists a directory that no recorded call opened. libc did so inside itself, as in
    /// nftw(3). So a new execution does not start with it.
    fn was_not_open_at_start(&mut self, id: ResourceId) {
        let had = &mut self.process.inherited;
        had.retain(|(fd, known, _)| *known != id || *fd <= STDERR_FILENO);
    }
}

impl Listing {
    /// A piece came. `last`: the entries of the last result for the directory.
    fn goes_on(&mut self, last: Option<&[u8]>, piece: &[u8]) {
        if self.state == State::Lost {
            return;
        }
        let had_ended = self.state == State::Ended;
        if had_ended {
            self.entries = last.unwrap_or_default().to_vec();
        }
        let went_back = go_back(&mut self.entries, piece);
        if had_ended && !went_back {
            self.entries.clear();
        }
        self.state = match self.state {
            _ if self.entries.is_empty() => State::New,
            State::Ended => State::Again,
            state => state,
        };
        self.entries.extend_from_slice(piece);
    }
}

/// Goes back to the first entry of a piece, if the listing has it: the program went back there
/// (rewinddir(3), seekdir(3)). No name is twice in a directory. False: the listing lacks it.
fn go_back(listing: &mut Vec<u8>, piece: &[u8]) -> bool {
    let Some(first) = first_entry(piece) else {
        return false;
    };
    let mut at = 0;
    while let Some(entry) = first_entry(&listing[at..]) {
        if entry == first {
            listing.truncate(at);
            return true;
        }
        at += entry.len();
    }
    false
}

/// The first entry of a listing (`struct linux_dirent64`). `None`: the bytes do not begin with a
/// complete entry.
pub(crate) fn first_entry(entries: &[u8]) -> Option<&[u8]> {
    let length = u16::from_le_bytes(*entries.get(LENGTH_AT..)?.first_chunk()?);
    let first = entries.get(..usize::from(length))?;
    (first.len() > NAME_AT).then_some(first)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{LENGTH_AT, NAME_AT};
    use crate::process::{CallObject, ResultKey};
    use crate::recorded::RecordedRun;
    use backstory_abi::deep;
    use backstory_deep::{Call, Section};
    use libc::{AT_FDCWD, S_IFDIR, SYS_getdents64, SYS_openat};

    const DIRECTORY: i32 = 3;

    /// An entry of a listing. Its length is a multiple of eight.
    pub(crate) fn entry(name: &str) -> Vec<u8> {
        let length = (NAME_AT + name.len() + 1).next_multiple_of(8);
        let mut bytes = vec![0; length];
        bytes[LENGTH_AT..LENGTH_AT + 2].copy_from_slice(&(length as u16).to_le_bytes());
        bytes[NAME_AT..NAME_AT + name.len()].copy_from_slice(name.as_bytes());
        bytes
    }

    fn opened(path: &str) -> Call {
        Call {
            number: SYS_openat as u16,
            fd: AT_FDCWD,
            result: i64::from(DIRECTORY),
            sections: vec![Section {
                kind: deep::PATH,
                arg: 1,
                bytes: path.as_bytes().to_vec(),
            }],
            ..Call::default()
        }
    }

    /// The absolute path of the open directory.
    fn described(path: &str) -> Call {
        Call {
            number: deep::DESCRIPTOR,
            fd: DIRECTORY,
            result: i64::from(S_IFDIR),
            sections: vec![Section {
                kind: deep::PATH,
                arg: 0,
                bytes: path.as_bytes().to_vec(),
            }],
            ..Call::default()
        }
    }

    /// A call that took these entries. Without any: the end.
    fn piece(names: &[&str]) -> Call {
        let bytes: Vec<u8> = names.iter().flat_map(|name| entry(name)).collect();
        Call {
            number: SYS_getdents64 as u16,
            fd: DIRECTORY,
            result: bytes.len() as i64,
            sections: vec![Section {
                kind: deep::ENTERED,
                arg: 1,
                bytes,
            }],
            ..Call::default()
        }
    }

    /// The listings of a directory, in order.
    fn listings(path: &str, calls: Vec<Call>) -> Vec<Vec<u8>> {
        let run = RecordedRun::arrange([(1, 7, 0, calls.into_iter())].into_iter());
        let key = ResultKey {
            call: SYS_getdents64 as u16,
            object: CallObject::Path(path.as_bytes().to_vec()),
            detail: 0,
        };
        let results = run.processes[0].results.get(&key).into_iter().flatten();
        let entries = results.flat_map(|(result, _)| result.entered.clone());
        entries.collect()
    }

    #[test]
    fn the_pieces_of_a_listing_are_one_result_also_after_a_return_to_an_entry() {
        let calls = vec![
            opened("/d"),
            piece(&["a", "b"]),
            piece(&["c"]),
            piece(&[]),
            piece(&["a", "b"]),
            piece(&["a"]),
            piece(&["b", "c"]),
            piece(&["b"]),
            piece(&["c"]),
            piece(&[]),
            opened("/d"),
            piece(&["never", "ended"]),
        ];
        let all: Vec<u8> = ["a", "b", "c"]
            .iter()
            .flat_map(|name| entry(name))
            .collect();
        assert_eq!(listings("/d", calls), [all.clone(), all]);
    }

    #[test]
    fn a_return_into_a_listing_that_has_ended_is_no_further_one() {
        let calls = vec![
            opened("/d"),
            piece(&["a", "b"]),
            piece(&["c"]),
            piece(&[]),
            piece(&["b", "c"]),
            piece(&[]),
            piece(&["c"]),
            piece(&["a", "c", "d"]),
            piece(&[]),
            piece(&[]),
        ];
        let [before, after] = [&["a", "b", "c"], &["a", "c", "d"]].map(|names| {
            let all = names.iter().flat_map(|name| entry(name));
            all.collect::<Vec<u8>>()
        });
        assert_eq!(listings("/d", calls), [before, after]);
    }

    #[test]
    fn a_call_that_fails_leaves_the_listing_where_it_is() {
        let failed = Call {
            result: -i64::from(libc::EINVAL),
            sections: Vec::new(),
            ..piece(&[])
        };
        let calls = vec![
            opened("/d"),
            piece(&["a"]),
            failed,
            piece(&["b"]),
            piece(&[]),
        ];
        assert_eq!(listings("/d", calls), [[entry("a"), entry("b")].concat()]);
    }

    #[test]
    fn a_listing_that_lacks_a_piece_is_none() {
        let cut = Call {
            is_cut: true,
            ..piece(&["b"])
        };
        let calls = vec![
            opened("/d"),
            piece(&["a"]),
            cut,
            piece(&["c"]),
            piece(&[]),
            opened("/d"),
            piece(&["d"]),
            piece(&[]),
        ];
        assert_eq!(listings("/d", calls), [entry("d")]);
    }

    #[test]
    fn a_listing_belongs_to_the_absolute_path_of_its_directory() {
        for name in ["d", ".", "/link"] {
            let calls = vec![opened(name), described("/w/d"), piece(&["a"]), piece(&[])];
            assert_eq!(listings("/w/d", calls), [entry("a")], "{name}");
        }
    }

    #[test]
    fn a_relative_path_without_the_absolute_one_has_no_listing() {
        let calls = vec![opened("d"), piece(&["a"]), piece(&[])];
        assert!(listings("d", calls).is_empty());
        let of_kernel = vec![opened("d"), described("/proc/d"), piece(&["a"]), piece(&[])];
        assert!(listings("/proc/d", of_kernel).is_empty());
    }

    #[test]
    fn a_path_that_is_cut_is_not_that_of_the_directory() {
        let cut = Call {
            is_cut: true,
            ..described("/w/lo")
        };
        for (name, count) in [("d", 0), ("/w/long", 1)] {
            let calls = vec![opened(name), cut.clone(), piece(&["a"]), piece(&[])];
            assert!(listings("/w/lo", calls.clone()).is_empty(), "{name}");
            assert_eq!(listings(name, calls).len(), count, "{name}");
        }
    }

    #[test]
    fn a_directory_that_libc_opened_inside_itself_has_a_listing_and_was_not_open_at_the_start() {
        let one = || [described("/w/d"), piece(&["a"]), piece(&[])];
        let calls: Vec<Call> = one().into_iter().chain(one()).collect();
        assert_eq!(listings("/w/d", calls.clone()), [entry("a"), entry("a")]);
        let run = RecordedRun::arrange([(1, 7, 0, calls.into_iter())].into_iter());
        assert!(run.processes[0].inherited.is_empty());
    }
}
