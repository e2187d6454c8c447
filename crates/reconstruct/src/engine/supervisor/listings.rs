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
//! need no code. It has a mark, the number of the listing of this directory, and that of the entry.

use super::{Response, Supervisor, asking};
use crate::engine::caller::NotifiedCall;
use crate::process::CallObject;
use crate::recorded::listings::{LENGTH_AT, NAME_AT, first_entry};
use rustix::fs::{Dir, FileType, SeekFrom, fstat, seek};
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

/// The offset of the position of the next entry in an entry.
const POSITION_AT: usize = 8;

/// The mark of a position in a recorded listing. File systems in memory have 31 bits for positions.
const MARK: u64 = 1 << 30;
/// Bits of the number of an entry.
const ENTRY_BITS: u32 = 18;
/// Most entries of a listing.
const MOST_ENTRIES: usize = (1 << ENTRY_BITS) - 1;
/// Most different listings of one directory. The last number stays free: a position with all bits
/// set is the end of a directory in memory.
const MOST_LISTINGS: usize = (1 << (30 - ENTRY_BITS)) - 1;

/// A directory: its device and inode in the root.
type Directory = (u64, u64);

/// An entry of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    directory: Directory,
    number: usize,
    entry: usize,
}

/// The listings that programs have begun.
#[derive(Debug, Default)]
pub(super) struct Listings {
    /// The entries of each listing of a directory.
    all: HashMap<Directory, Vec<Vec<Vec<u8>>>>,
    /// See [`Options::known_paths`](crate::engine::Options::known_paths).
    known: HashSet<Vec<u8>>,
}

impl Supervisor {
    /// The response to a call that lists a directory of the root.
    pub(super) fn list(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let Ok(directory) = self.copy_of(call, call.int(0)) else {
            return Ok(Response::Continue);
        };
        let Some(place) = self.place_in_listing(call, index, &directory) else {
            return Ok(Response::Continue);
        };
        let rest = self.listings.rest(place);
        // The kernel takes the room for a number with a sign.
        let room = usize::try_from(call.int(2)).unwrap_or(0);
        let (piece, after) = piece(rest, place, room);
        if piece.is_empty() && !rest.is_empty() {
            return Ok(Response::Errno(libc::EINVAL));
        }
        // Without the entries, the program stays where it is.
        call.put(call.args[1], &piece)?;
        let after = position(place.number, after);
        match seek(&directory, SeekFrom::Start(after)) {
            Ok(_) => Ok(Response::Value(piece.len() as i64)),
            Err(_) => Ok(Response::Continue),
        }
    }

    /// The next entry of the listing that an open directory is in. `None`: it is in none, and
    /// begins none.
    fn place_in_listing(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        directory: &OwnedFd,
    ) -> Option<Place> {
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
        let begun = is_same.then(|| self.listings.begin(ident, entries));
        let place = begun.flatten()?;
        // A call that gets no entries has begun this listing, and the next call goes on with it.
        let here = SeekFrom::Start(position(place.number, place.entry));
        seek(directory, here).ok().map(|_| place)
    }
}

impl Listings {
    /// Without any listing yet.
    pub fn new(known: HashSet<Vec<u8>>) -> Listings {
        Listings {
            all: HashMap::new(),
            known,
        }
    }

    /// Begins a listing. `None`: the directory has too many, or it is too long.
    fn begin(&mut self, directory: Directory, entries: Vec<Vec<u8>>) -> Option<Place> {
        let all = self.all.entry(directory).or_default();
        let number = match all.iter().position(|known| *known == entries) {
            Some(number) => number,
            None if all.len() == MOST_LISTINGS || entries.len() > MOST_ENTRIES => return None,
            None => {
                all.push(entries);
                all.len() - 1
            }
        };
        Some(Place {
            directory,
            number,
            entry: 0,
        })
    }

    /// The entry at a position of an open directory. `None`: it is a position of the kernel.
    fn place(&self, directory: Directory, at: u64) -> Option<Place> {
        let marked = at.checked_sub(MARK).filter(|rest| *rest < MARK)?;
        let number = usize::try_from(marked >> ENTRY_BITS).ok()?;
        let entry = usize::try_from(marked & MOST_ENTRIES as u64).ok()?;
        let entries = self.all.get(&directory)?.get(number)?;
        (entry <= entries.len()).then_some(Place {
            directory,
            number,
            entry,
        })
    }

    /// The entries of a listing from one on.
    fn rest(&self, place: Place) -> &[Vec<u8>] {
        let all = self.all.get(&place.directory);
        let entries = all.and_then(|all| all.get(place.number)?.get(place.entry..));
        entries.unwrap_or_default()
    }
}

/// As many entries from a place on as there is room for, and the number of the next one.
fn piece(rest: &[Vec<u8>], place: Place, room: usize) -> (Vec<u8>, usize) {
    let (mut piece, mut after) = (Vec::new(), place.entry);
    for entry in rest {
        if piece.len() + entry.len() > room {
            break;
        }
        after += 1;
        let start = piece.len();
        piece.extend_from_slice(entry);
        let next = position(place.number, after).to_le_bytes();
        piece[start + POSITION_AT..start + LENGTH_AT].copy_from_slice(&next);
    }
    (piece, after)
}

/// The position of an entry of a listing.
fn position(number: usize, entry: usize) -> u64 {
    MARK | (number as u64) << ENTRY_BITS | entry as u64
}

/// The entries of a recorded listing. `None`: the bytes are no listing.
fn entries(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let entry = first_entry(bytes)?;
        entries.push(entry.to_vec());
        bytes = &bytes[entry.len()..];
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
    use super::{Listings, Place, entries, is_of_directory, name, piece, position};
    use crate::recorded::listings::tests::entry;
    use std::collections::HashSet;

    const DIRECTORY: (u64, u64) = (1, 2);

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
        listings.begin(DIRECTORY, all(&["before"])).unwrap();
        let begun = listings.begin(DIRECTORY, all(&names)).unwrap();
        assert_eq!((begun.number, begun.entry), (1, 0));
        let again = listings.begin(DIRECTORY, all(&names));
        assert_eq!(again, Some(begun), "the same");
        let none = piece(listings.rest(begun), begun, 23);
        assert_eq!(none, (Vec::new(), 0), "no room");
        let (mut at, mut seen) = (position(1, 0), Vec::new());
        loop {
            let place = listings.place(DIRECTORY, at).unwrap();
            let (piece, after) = piece(listings.rest(place), place, 40);
            let piece = entries(&piece).unwrap();
            let Some(last) = piece.last() else {
                break;
            };
            seen.extend(piece.iter().map(|one| name(one).to_vec()));
            at = u64::from_le_bytes(*last[8..].first_chunk().unwrap());
            assert_eq!(at, position(1, after));
        }
        assert_eq!(seen, names.map(|name| name.as_bytes().to_vec()));
    }

    #[test]
    fn any_number_of_directories_can_be_listed() {
        let mut listings = Listings::default();
        for inode in 0..5000 {
            assert!(listings.begin((1, inode), all(&["a"])).is_some(), "{inode}");
        }
    }

    #[test]
    fn positions_of_the_kernel_are_in_no_listing() {
        let mut listings = Listings::default();
        listings.begin(DIRECTORY, all(&["a"])).unwrap();
        let end = Place {
            directory: DIRECTORY,
            number: 0,
            entry: 1,
        };
        assert_eq!(listings.place(DIRECTORY, position(0, 1)), Some(end));
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
