//! Programs that only decide what is to be done: a `make` that looks at everything and finds nothing to do has decided anew, and made nothing by which
//! that could be told.

use backstory_graph::model::{Activity, Entity, Relation};
use backstory_store::{ActivityKey, RunKey, Store};

use crate::Result;

/// True if in a run after `run` that ended well the same program (by its arguments and directory as `who`) read the file at `path`, or looked for it
/// or at it, as it is now. `is_now` says which version that is.
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
