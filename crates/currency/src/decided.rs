//! Programs that only decide which commands to run. A `make` that finds nothing to do has decided
//! anew, but has made no file that would show it.

use backstory_graph::model::{Activity, Entity, Relation};
use backstory_store::{ActivityKey, RunKey, Store};

use crate::Result;

/// True if the same program decided with the present version of the file at `path`, in a later run
/// that ended well. The program is the same if its arguments and directory are those of `who`. It
/// must have read the file, or looked it up. `is_now` says whether an entity is the present
/// version.
pub fn decided_since(
    store: &dyn Store,
    run: RunKey,
    who: &Activity,
    path: &[u8],
    is_now: &mut dyn FnMut(&Entity) -> Result<bool>,
) -> Result<bool> {
    for key in store.at_path(path)? {
        if key.run() <= run {
            continue;
        }
        let entity = store.entity(key)?;
        let ended = store.run_by_key(key.run())?.map(|record| record.end);
        if ended.is_some_and(|end| end.exit == Some(0))
            && is_now(&entity)?
            && used(store, key.run(), who, &entity)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn used(store: &dyn Store, run: RunKey, who: &Activity, what: &Entity) -> Result<bool> {
    let same = |other: &Activity| (&other.argv, &other.cwd) == (&who.argv, &who.cwd);
    for activity in store
        .activities(run)?
        .iter()
        .filter(|activity| same(activity))
    {
        let stream = store.stream(ActivityKey::new(run, activity.id))?;
        let looks = |relation| {
            matches!(
                relation,
                Relation::Read | Relation::Execute | Relation::Stat | Relation::Missing
            )
        };
        if stream
            .edges
            .iter()
            .any(|edge| edge.entity == what.id && looks(edge.relation))
        {
            return Ok(true);
        }
    }
    Ok(false)
}
