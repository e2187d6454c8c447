//! The reason why the content of a version is unknown, as far as the run's record tells it.
//!
//! In: a version. Out: a sentence without its subject. If the content was looked for and not found,
//! the fact about the version has the reason.

use backstory_eventlog::run::RunHeader;
use backstory_graph::model::{Edge, Entity, Relation};
use backstory_store::facts::Availability;
use backstory_store::{ActivityKey, EntityKey, Store};

use crate::Result;

/// Why the store does not have the content of a version of a run. A sentence without its subject.
///
/// # Errors
///
/// If the store fails, or does not have the version.
pub fn why_unknown(store: &dyn Store, version: EntityKey) -> Result<String> {
    let entity = store.entity(version)?;
    let fact = entity.ident.map(|ident| store.fact(&ident)).transpose()?;
    if let Some(Availability::Missing(why)) = fact.flatten().map(|fact| fact.availability) {
        return Ok(why);
    }
    let record = store.run_by_key(version.run())?;
    let header = record.map(|record| record.header).unwrap_or_default();
    let settled = store.directory_snapshot(&header.id)?.is_some();
    let (entities, own) = (store.entities(version.run())?, version.local());
    let mut ended = entities.iter().any(|other| other.previous == Some(own));
    for (activity, _) in store.touching(version)? {
        let stream = store.stream(ActivityKey::new(version.run(), activity))?;
        let removes = |edge: &Edge| edge.entity == own && edge.relation == Relation::Delete;
        ended |= stream.edges.iter().any(removes);
    }
    Ok(why_not((&header, settled), &entity, ended).to_owned())
}

/// `settled`: the contents of the run were stored. `ended`: the run itself changed or removed the
/// version again.
pub(crate) fn why_not(
    (header, settled): (&RunHeader, bool),
    entity: &Entity,
    ended: bool,
) -> &'static str {
    match (header.modes.stores_contents(), settled) {
        (false, _) if header.source.as_deref() == Some("mount") => {
            "a run of `mount` stores contents only with --contents=lazy or --contents=all"
        }
        (false, _) if header.imported.is_some() || header.source.is_some() => {
            "runs of `watch` and `import` store no contents"
        }
        (false, _) => "the run was recorded with --contents=off",
        (true, false) => "it has not been stored yet; `backstory index --wait` stores it now",
        _ if entity.version > 0 && ended => {
            "the run changed or removed the file again before another program read this version \
             (--contents=all stores such versions)"
        }
        _ if entity.version > 0 => {
            "the file was changed, moved or made unreadable after the run, before backstory \
             examined it"
        }
        _ => "which version it was could not be told for certain",
    }
}
