//! Joins runs by content: a copy made outside of any recording has another identity, but the same
//! digest.
//!
//! `docs/graph.md` explains the rule. It applies to a version without a known maker, neither in its
//! run nor by identity in another. Such a version came from the latest version with its content
//! that another run made before it was last modified. Contents of less than [`LEAST`] bytes join
//! nothing: empty files, `OK` and version numbers are equal by coincidence.

use backstory_files::Ident;
use backstory_ordering::SmallSort;
use backstory_store::{EntityKey, Store, same_version};

use crate::Result;

/// Equal contents of fewer bytes mean nothing.
const LEAST: i64 = 64;

/// Other versions with the content of this one.
pub fn others(store: &dyn Store, ident: &Ident) -> Result<Vec<Ident>> {
    if ident.size < LEAST {
        return Ok(Vec::new());
    }
    let Some(digest) = store.fact(ident)?.and_then(|fact| fact.digest) else {
        return Ok(Vec::new());
    };
    let mut found = store.with_content(&digest)?;
    found.retain(|other| !same_version(other, ident));
    Ok(found)
}

/// The origin of the content of a version without a known maker. `made` finds the places where a
/// version was made.
pub fn origin(
    store: &dyn Store,
    ident: &Ident,
    made: impl Fn(&Ident) -> Result<Vec<EntityKey>>,
) -> Result<Option<EntityKey>> {
    let mut earlier = others(store, ident)?;
    earlier.retain(|other| other.mtime <= ident.mtime);
    earlier.sort_small_by_key(|other| std::cmp::Reverse((other.mtime, other.ino)));
    for other in earlier {
        let latest = made(&other)?.into_iter().max();
        if latest.is_some() {
            return Ok(latest);
        }
    }
    Ok(None)
}
