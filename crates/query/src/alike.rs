//! Joining runs by content: a copy made outside of any recording has another identity, but the same digest.
//!
//! The rule, which `docs/graph.md` explains: a version that nobody is known to have made (not in its run, and no other run by identity)
//! came from the latest version with its content that another run made before it was last modified. Contents of less than
//! [`LEAST`] bytes join nothing: empty files, `OK`, a version number are equal to each other without having to do with each other.

use backstory_files::Ident;
use backstory_store::{EntityKey, Store, same_version};

use crate::Result;

/// Bytes below which equal contents mean nothing.
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

/// Where the content of a version with this identity, which nobody is known to have made, came from. `made`: where a version was made.
pub fn origin(
    store: &dyn Store,
    ident: &Ident,
    made: impl Fn(&Ident) -> Result<Vec<EntityKey>>,
) -> Result<Option<EntityKey>> {
    let mut earlier = others(store, ident)?;
    earlier.retain(|other| other.mtime <= ident.mtime);
    earlier.sort_unstable_by_key(|other| std::cmp::Reverse((other.mtime, other.ino)));
    for other in earlier {
        let latest = made(&other)?.into_iter().max();
        if latest.is_some() {
            return Ok(latest);
        }
    }
    Ok(None)
}
