//! Listings of directories of the root: a program gets the recorded entries, in their order.
//!
//! The root has only the files that the run used. Of a directory of the system, it lacks the
//! others. A program may depend on them without a use: Python keeps the names in the directories of
//! its modules in memory, so the addresses of its objects depend on their number.
//!
//! In: a call of `getdents64` for a directory of the root. Out: the next entries of a recorded
//! listing. The kernel answers if the new execution has made the directory into another one than it
//! was in the record.
//!
//! The position in a listing is that of the open file, so `dup`, `fork`, `rewinddir` and `seekdir`
//! need no code. It has a mark, the number of the listing, and that of the entry.

use super::{Response, Supervisor, asking};
use crate::engine::caller::NotifiedCall;
use crate::process::CallObject;
use rustix::fs::{Dir, FileType, SeekFrom, fstat, seek};
use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

/// The offsets of the fields in `struct linux_dirent64`.
const POSITION_AT: usize = 8;
const LENGTH_AT: usize = 16;
const NAME_AT: usize = 19;

/// The mark of a position in a recorded listing. File systems in memory have 31 bits for positions.
const MARK: u64 = 1 << 30;
/// Bits of the number of an entry.
const ENTRY_BITS: u32 = 18;
/// Most entries of a listing.
const MOST_ENTRIES: usize = (1 << ENTRY_BITS) - 1;
/// Most listings. The last number stays free: a position with all bits set is the end of a
/// directory in memory.
const MOST_LISTINGS: usize = (1 << (30 - ENTRY_BITS)) - 1;

/// A directory, and its recorded entries.
#[derive(Debug, PartialEq, Eq)]
struct Listing {
    /// Device and inode in the root.
    directory: (u64, u64),
    entries: Vec<Vec<u8>>,
}

/// The listings that programs have begun.
#[derive(Debug, Default)]
pub(super) struct Listings {
    all: Vec<Listing>,
    /// See [`Options::known_paths`](crate::engine::Options::known_paths).
    known: HashSet<Vec<u8>>,
}

impl Supervisor {
    /// The response to a call that lists a directory of the root.
    pub(super) fn list(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let Ok(directory) = self.copy_of(call, call.int(0)) else {
            return Ok(Response::Continue);
        };
        let Some((number, first)) = self.place_in_listing(call, index, &directory) else {
            return Ok(Response::Continue);
        };
        let (piece, after) = self.listings.piece(number, first, call.length(2));
        let is_end = self.listings.all[number].entries.len() == first;
        if piece.is_empty() && !is_end {
            return Ok(Response::Errno(libc::EINVAL));
        }
        if seek(&directory, SeekFrom::Start(position(number, after))).is_err() {
            return Ok(Response::Continue);
        }
        call.put(call.args[1], &piece)?;
        Ok(Response::Value(piece.len() as i64))
    }

    /// The number of the listing that an open directory is in, and that of its next entry. `None`:
    /// it is in none, and begins none.
    fn place_in_listing(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        directory: &OwnedFd,
    ) -> Option<(usize, usize)> {
        let about = fstat(directory).ok()?;
        if !FileType::from_raw_mode(about.st_mode).is_dir() {
            return None;
        }
        let ident = (about.st_dev, about.st_ino);
        let at = seek(directory, SeekFrom::Current(0)).ok()?;
        if at != 0 {
            return self.listings.place(ident, at);
        }
        let link = format!("/proc/{}/fd/{}", call.tid, call.int(0));
        let path = std::fs::read_link(link).ok()?.into_os_string().into_vec();
        let key = asking::key(call, CallObject::Path(path.clone()));
        let result = self.matchers[index].result(&key)?;
        let entries = entries(result.entered.first()?)?;
        let here = names_in(directory).ok()?;
        let is_same = is_of_directory(&path, &entries, &here, &self.listings.known);
        is_same
            .then(|| self.listings.begin(ident, entries))
            .flatten()
    }
}

impl Listings {
    /// Without any listing yet.
    pub fn new(known: HashSet<Vec<u8>>) -> Listings {
        Listings {
            all: Vec::new(),
            known,
        }
    }

    /// Begins a listing. `None`: there are too many, or it is too long.
    fn begin(&mut self, directory: (u64, u64), entries: Vec<Vec<u8>>) -> Option<(usize, usize)> {
        let listing = Listing { directory, entries };
        let known = self.all.iter().position(|known| *known == listing);
        if let Some(number) = known {
            return Some((number, 0));
        }
        if self.all.len() == MOST_LISTINGS || listing.entries.len() > MOST_ENTRIES {
            return None;
        }
        self.all.push(listing);
        Some((self.all.len() - 1, 0))
    }

    /// The listing and the entry at a position of an open directory. `None`: it is a position of
    /// the kernel.
    fn place(&self, directory: (u64, u64), at: u64) -> Option<(usize, usize)> {
        let marked = at.checked_sub(MARK).filter(|rest| *rest < MARK)?;
        let number = usize::try_from(marked >> ENTRY_BITS).ok()?;
        let entry = usize::try_from(marked & MOST_ENTRIES as u64).ok()?;
        let listing = self.all.get(number)?;
        let is_inside = listing.directory == directory && entry <= listing.entries.len();
        is_inside.then_some((number, entry))
    }

    /// The entries from one on, as many as there is room for, and the number of the next one.
    fn piece(&self, number: usize, first: usize, room: usize) -> (Vec<u8>, usize) {
        let (mut piece, mut after) = (Vec::new(), first);
        for entry in &self.all[number].entries[first..] {
            if piece.len() + entry.len() > room {
                break;
            }
            after += 1;
            let start = piece.len();
            piece.extend_from_slice(entry);
            let next = position(number, after).to_le_bytes();
            piece[start + POSITION_AT..start + LENGTH_AT].copy_from_slice(&next);
        }
        (piece, after)
    }
}

/// The position of an entry of a listing.
fn position(number: usize, entry: usize) -> u64 {
    MARK | (number as u64) << ENTRY_BITS | entry as u64
}

/// The entries of a recorded listing. `None`: the bytes are no listing.
fn entries(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let length = u16::from_le_bytes(*bytes.get(LENGTH_AT..)?.first_chunk()?);
        let (entry, rest) = bytes.split_at_checked(usize::from(length))?;
        if entry.len() <= NAME_AT {
            return None;
        }
        entries.push(entry.to_vec());
        bytes = rest;
    }
    Some(entries)
}

/// The name in an entry.
fn name(entry: &[u8]) -> &[u8] {
    let name = entry.get(NAME_AT..).unwrap_or_default();
    let end = name.iter().position(|byte| *byte == 0);
    &name[..end.unwrap_or(name.len())]
}

/// The names in a directory of the root. The position of the descriptor stays.
fn names_in(directory: &OwnedFd) -> io::Result<HashSet<Vec<u8>>> {
    Dir::read_from(directory)?
        .map(|entry| Ok(entry?.file_name().to_bytes().to_vec()))
        .collect()
}

/// True if recorded entries can be those of a directory as it is here. All names here have to be
/// among them. A name that is missing here must not be one that the root had or that the run made.
/// Otherwise the new execution has removed the file, or has not made it.
fn is_of_directory(
    path: &[u8],
    entries: &[Vec<u8>],
    here: &HashSet<Vec<u8>>,
    known: &HashSet<Vec<u8>>,
) -> bool {
    let recorded: HashSet<&[u8]> = entries.iter().map(|entry| name(entry)).collect();
    let has_all = here.iter().all(|name| recorded.contains(&name[..]));
    let top = path.strip_suffix(b"/").unwrap_or(path);
    let is_known = |name: &[u8]| known.contains(&[top, name].join(&b'/'));
    let mut missing = recorded.iter().filter(|name| !here.contains(**name));
    has_all && !missing.any(|name| is_known(name))
}

#[cfg(test)]
mod tests {
    use super::{Listings, entries, is_of_directory, name, position};
    use std::collections::HashSet;

    const DIRECTORY: (u64, u64) = (1, 2);

    fn entry(name: &str) -> Vec<u8> {
        let length = (19 + name.len() + 1).next_multiple_of(8);
        let mut bytes = vec![0; length];
        bytes[16..18].copy_from_slice(&(length as u16).to_le_bytes());
        bytes[19..19 + name.len()].copy_from_slice(name.as_bytes());
        bytes
    }

    fn all(names: &[&str]) -> Vec<Vec<u8>> {
        names.iter().map(|name| entry(name)).collect()
    }

    fn set(names: &[&str]) -> HashSet<Vec<u8>> {
        names.iter().map(|name| name.as_bytes().to_vec()).collect()
    }

    #[test]
    fn a_listing_comes_in_pieces_of_any_size_and_goes_on_at_the_position_of_an_entry() {
        let mut listings = Listings::default();
        let names = ["a", "longer name", "c"];
        assert_eq!(listings.begin((9, 9), all(&["other"])), Some((0, 0)));
        let begun = listings.begin(DIRECTORY, all(&names));
        assert_eq!(begun, Some((1, 0)));
        assert_eq!(listings.begin(DIRECTORY, all(&names)), begun, "the same");
        assert_eq!(listings.piece(1, 0, 23), (Vec::new(), 0), "no room");
        let (mut at, mut seen) = (position(1, 0), Vec::new());
        loop {
            let (number, first) = listings.place(DIRECTORY, at).unwrap();
            let (piece, after) = listings.piece(number, first, 40);
            let Some(last) = entries(&piece).unwrap().pop() else {
                break;
            };
            seen.extend(
                entries(&piece)
                    .unwrap()
                    .iter()
                    .map(|one| name(one).to_vec()),
            );
            at = u64::from_le_bytes(*last[8..].first_chunk().unwrap());
            assert_eq!(at, position(number, after));
        }
        assert_eq!(seen, names.map(|name| name.as_bytes().to_vec()));
    }

    #[test]
    fn positions_of_the_kernel_are_in_no_listing() {
        let mut listings = Listings::default();
        listings.begin(DIRECTORY, all(&["a"])).unwrap();
        assert_eq!(listings.place(DIRECTORY, position(0, 1)), Some((0, 1)));
        assert_eq!(listings.place((1, 3), position(0, 1)), None);
        let kernels = [
            3,
            0x7fff_ffff,
            i64::MAX as u64,
            position(0, 2),
            position(1, 0),
        ];
        for at in kernels {
            assert_eq!(listings.place(DIRECTORY, at), None, "{at:x}");
        }
    }

    #[test]
    fn a_listing_is_that_of_the_directory_unless_the_execution_changed_it() {
        let recorded = all(&["used", "unused", "made"]);
        let known = set(&["/d/used", "/d/made"]);
        let is_same = |here: &[&str]| is_of_directory(b"/d", &recorded, &set(here), &known);
        assert!(is_same(&["used", "made"]), "the root lacks an unused file");
        assert!(!is_same(&["used"]), "not made");
        assert!(!is_same(&["made"]), "removed");
        assert!(!is_same(&["used", "made", "more"]), "another one was made");
        let of_root = is_of_directory(b"/", &recorded, &set(&["made"]), &set(&["/used"]));
        assert!(!of_root, "the root itself");
    }

    #[test]
    fn damaged_entries_are_no_listing() {
        let mut long = entry("a");
        long[16] = 200;
        let mut short = entry("a");
        short[16] = 0;
        for bytes in [long, short, vec![1; 10]] {
            assert_eq!(entries(&bytes), None);
        }
    }
}
