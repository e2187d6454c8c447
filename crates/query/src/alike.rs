//! Joins runs by content: a copy made outside of any recording has another identity, but the same
//! digest.
//!
//! `docs/graph.md` explains the rule. It applies to a version without a known maker, neither in its
//! run nor by identity in another. Such a version came from the latest version with its content
//! that another run made before it was last modified. Contents of less than [`LEAST`] bytes join
//! nothing: empty files, `OK` and version numbers are equal by coincidence.

use std::cell::{OnceCell, RefCell};
use std::cmp::Reverse;
use std::rc::Rc;

use backstory_files::Ident;
use backstory_ordering::SmallSort;
use backstory_store::{EntityKey, RunKey, Store, same_version};
use rustc_hash::FxHashMap;

use crate::Result;

/// Equal contents of fewer bytes mean nothing.
const LEAST: i64 = 64;

/// Other versions with the content of this one.
pub fn others(store: &dyn Store, ident: &Ident) -> Result<Vec<Ident>> {
    let digest = store.fact(ident)?.and_then(|fact| fact.digest);
    let Some(digest) = digest.filter(|_| tells(ident)) else {
        return Ok(Vec::new());
    };
    let mut found = store.with_content(&digest)?;
    found.retain(|other| !same_version(other, ident));
    Ok(found)
}

/// True if a content is large enough to join versions.
pub fn tells(ident: &Ident) -> bool {
    ident.size >= LEAST
}

/// The versions with one content.
///
/// A thousand checkouts can have one content that no run made. Each of these versions asks where it
/// came from, and none may look at all others for that. So the versions that no run made are passed
/// over once that is known. Likewise, each version that a run made asks for its copies, and all are
/// found at once.
pub struct SameContent {
    /// In the order of the store.
    versions: Vec<Ident>,
    /// Their places, those of the latest versions first.
    latest: Vec<u32>,
    /// For each place in `latest`, and for its end, a place at or behind it. No run made the
    /// versions from there up to the second place.
    next: RefCell<Vec<u32>>,
    /// The versions without a known maker, by their origins.
    copies: OnceCell<FxHashMap<EntityKey, Vec<EntityKey>>>,
}

impl SameContent {
    /// These versions have the content.
    pub fn new(versions: Vec<Ident>) -> SameContent {
        let mut latest: Vec<u32> = (0..).take(versions.len()).collect();
        latest.sort_small_by_key(|&at| {
            let version = &versions[at as usize];
            Reverse((version.mtime, version.ino))
        });
        let next = (0..).take(versions.len() + 1).collect();
        SameContent {
            versions,
            latest,
            next: RefCell::new(next),
            copies: OnceCell::new(),
        }
    }

    /// All of them, in the order of the store.
    pub fn versions(&self) -> &[Ident] {
        &self.versions
    }

    /// The versions that came from `key`. `all` finds all versions without a known maker, each
    /// behind its origin. It is asked once, so its answer must not change.
    pub fn copies(
        &self,
        key: EntityKey,
        all: impl FnOnce() -> Result<Vec<(EntityKey, EntityKey)>>,
    ) -> Result<Vec<EntityKey>> {
        let by_origin = match self.copies.get() {
            Some(known) => known,
            None => {
                let mut found: FxHashMap<EntityKey, Vec<EntityKey>> = FxHashMap::default();
                for (origin, copy) in all()? {
                    found.entry(origin).or_default().push(copy);
                }
                self.copies.get_or_init(|| found)
            }
        };
        Ok(by_origin.get(&key).cloned().unwrap_or_default())
    }

    /// The origin of a version of `run` without a known maker. `made` finds the places where a
    /// version was made, in any run.
    pub fn origin(
        &self,
        ident: &Ident,
        run: RunKey,
        made: impl Fn(&Ident) -> Result<Rc<[EntityKey]>>,
    ) -> Result<Option<EntityKey>> {
        let version = |at: u32| &self.versions[at as usize];
        let is_later = |&at: &u32| version(at).mtime > ident.mtime;
        let mut place = self.latest.partition_point(is_later);
        loop {
            place = self.skip(place);
            let Some(other) = self.latest.get(place).map(|&at| version(at)) else {
                return Ok(None);
            };
            let places = made(other)?;
            if places.is_empty() {
                self.next.borrow_mut()[place] = place as u32 + 1;
            } else if !same_version(other, ident) {
                let elsewhere = places.iter().filter(|place| place.run() != run);
                if let Some(latest) = elsewhere.max() {
                    return Ok(Some(*latest));
                }
            }
            place += 1;
        }
    }

    /// The first place from `place` on whose version may have been made.
    fn skip(&self, place: usize) -> usize {
        let mut next = self.next.borrow_mut();
        let mut end = place;
        while next[end] as usize != end {
            end = next[end] as usize;
        }
        // The next question need not go the same way.
        let mut at = place;
        while at != end {
            at = std::mem::replace(&mut next[at], end as u32) as usize;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// The origin by a look at all versions.
    fn by_all(
        versions: &[Ident],
        ident: &Ident,
        run: RunKey,
        made: impl Fn(&Ident) -> Rc<[EntityKey]>,
    ) -> Option<EntityKey> {
        let is_earlier = |other: &&Ident| other.mtime <= ident.mtime && !same_version(other, ident);
        let mut earlier: Vec<&Ident> = versions.iter().filter(is_earlier).collect();
        earlier.sort_by_key(|other| Reverse((other.mtime, other.ino)));
        earlier.into_iter().find_map(|other| {
            let places = made(other);
            let elsewhere = places.iter().filter(|place| place.run() != run);
            elsewhere.max().copied()
        })
    }

    fn random(state: &mut u64, below: u64) -> u64 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    }

    /// A version; many have one time, and some have one inode, too.
    fn version(state: &mut u64) -> Ident {
        Ident {
            dev: random(state, 2),
            ino: random(state, 6),
            mtime: random(state, 12) as i64,
            size: 100,
            ..Ident::default()
        }
    }

    /// The runs that made a version: none, one or two.
    fn makers(ident: &Ident) -> Rc<[EntityKey]> {
        let number = ident.dev * 72 + ident.ino * 12 + ident.mtime as u64;
        let key = |run: u64| EntityKey((run % 5) << 32 | number);
        let made = match number % 7 {
            0 => vec![key(number)],
            1 => vec![key(number), key(number / 7)],
            _ => Vec::new(),
        };
        made.into()
    }

    #[test]
    fn an_origin_is_that_of_a_look_at_all_versions_whatever_was_asked_before() {
        let mut state = 1;
        for length in 0..40 {
            let versions: Vec<Ident> = (0..length).map(|_| version(&mut state)).collect();
            let same = SameContent::new(versions.clone());
            for _ in 0..50 {
                let ident = version(&mut state);
                let run = RunKey(random(&mut state, 5) as u32);
                let found = same.origin(&ident, run, |other| Ok(makers(other))).unwrap();
                assert_eq!(found, by_all(&versions, &ident, run, makers), "{ident:?}");
            }
        }
    }

    #[test]
    fn the_copies_of_all_versions_with_one_content_are_looked_for_once() {
        let key = |run: u64| EntityKey(run << 32);
        let same = SameContent::new(Vec::new());
        let asked = Cell::new(0);
        let copies = |origin: u64| {
            let found = same.copies(key(origin), || {
                asked.set(asked.get() + 1);
                Ok((10..510).map(|run| (key(run % 5), key(run))).collect())
            });
            found.unwrap()
        };
        for origin in 0..5 {
            let own: Vec<EntityKey> = (10..510).filter(|run| run % 5 == origin).map(key).collect();
            assert_eq!(copies(origin), own);
        }
        assert_eq!((copies(5), asked.get()), (Vec::new(), 1));
    }

    #[test]
    fn of_a_content_that_no_run_made_each_version_is_looked_for_once() {
        let copy = |number: i64| Ident {
            ino: number as u64,
            mtime: number,
            size: 100,
            ..Ident::default()
        };
        let versions: Vec<Ident> = (0..500).map(copy).collect();
        let same = SameContent::new(versions.clone());
        let asked = Cell::new(0);
        for ident in versions.iter().chain(versions.iter().rev()) {
            let found = same.origin(ident, RunKey(1), |_| {
                asked.set(asked.get() + 1);
                Ok(Vec::new().into())
            });
            assert_eq!(found.unwrap(), None);
        }
        assert_eq!(asked.get(), versions.len());
    }
}
