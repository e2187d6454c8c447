//! Joins runs by content: a copy made outside of any recording has another identity, but the same
//! digest.
//!
//! `docs/graph.md` explains the rule. It applies to a version without a known maker, neither in its
//! run nor by identity in another. Such a version came from the latest version with its content
//! that another run made before it was last modified. Contents of less than [`LEAST`] bytes join
//! nothing: empty files, `OK` and version numbers are equal by coincidence.

use backstory_files::{Digest, Ident};
use backstory_ordering::SmallSort;
use backstory_store::{EntityKey, Store, same_version};

use crate::Result;

/// Equal contents of fewer bytes mean nothing.
const LEAST: i64 = 64;

/// Other versions with the content of this one.
pub fn others(store: &dyn Store, ident: &Ident) -> Result<Vec<Ident>> {
    let digest = store.fact(ident)?.and_then(|fact| fact.digest);
    with_content(store, ident, digest)
}

/// True if a content is large enough to join versions.
pub fn tells(ident: &Ident) -> bool {
    ident.size >= LEAST
}

/// The same if the digest of the version was looked up before.
pub fn with_content(
    store: &dyn Store,
    ident: &Ident,
    digest: Option<Digest>,
) -> Result<Vec<Ident>> {
    let Some(digest) = digest.filter(|_| tells(ident)) else {
        return Ok(Vec::new());
    };
    let mut found = store.with_content(&digest)?;
    found.retain(|other| !same_version(other, ident));
    Ok(found)
}

/// The origin of the content of a version without a known maker. `others` are the other versions
/// with its content. `made` finds the places where a version was made.
pub fn origin(
    others: &[Ident],
    ident: &Ident,
    made: impl Fn(&Ident) -> Result<Vec<EntityKey>>,
) -> Result<Option<EntityKey>> {
    let is_earlier = |other: &&Ident| other.mtime <= ident.mtime;
    let mut earlier: Vec<&Ident> = others.iter().filter(is_earlier).collect();
    earlier.sort_small_by_key(|other| std::cmp::Reverse((other.mtime, other.ino)));
    for other in earlier {
        let latest = made(other)?.into_iter().max();
        if latest.is_some() {
            return Ok(latest);
        }
    }
    Ok(None)
}
