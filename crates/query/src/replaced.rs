//! Results of a run that another run replaced before their identities were taken.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_graph::model::{Entity, EntityKind};

use crate::now;

/// The numbers of versions that the run left, although they are not the last of their files. The
/// run did not remove them, and a file exists at their paths. Identities are taken after the end of
/// a run. If the next run starts at once and makes the same files, the identities belong to its
/// files by then. `removed` says whether the run removed or renamed the version with this number.
pub fn replaced(entities: &[Entity], removed: impl Fn(u32) -> bool) -> HashSet<u32> {
    let mut newest: HashMap<&[u8], &Entity> = HashMap::new();
    let mut known: HashSet<&[u8]> = HashSet::new();
    for entity in entities {
        if entity.last || removed(entity.id.0) {
            known.insert(&entity.path);
        }
        let one = newest.entry(&entity.path).or_insert(entity);
        if entity.version > one.version {
            *one = entity;
        }
    }
    let made = newest.into_values().filter(|entity| {
        entity.kind == EntityKind::File && entity.version > 0 && !known.contains(&*entity.path)
    });
    let there =
        |entity: &&Entity| now::ident(Path::new(OsStr::from_bytes(&entity.path)), false).is_some();
    made.filter(there).map(|entity| entity.id.0).collect()
}
