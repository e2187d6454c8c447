//! Which files of an incident are the user's own, and what is there of them now.
//!
//! In: paths and acts. Out: files in the order of a report. Reads the files that were changed, to
//! compare their digests.

use backstory_ordering::{SmallCollect, SmallSort};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_files::Digest;
use backstory_query as query;
use backstory_store::Store;
use backstory_workflow::ownership::Ownership;

use crate::error::Result;
use crate::model::{FileAct, LeftState, SceneFile};

/// Most files of one incident.
pub const MOST_FILES: usize = 10_000;

/// Acts by path.
pub type Acts = BTreeMap<Vec<u8>, Vec<FileAct>>;

/// Adds an act.
pub fn add(acts: &mut Acts, path: &[u8], act: FileAct) {
    if acts.len() >= MOST_FILES && !acts.contains_key(path) {
        return;
    }
    let known = acts.entry(path.to_vec()).or_default();
    if !known.contains(&act) {
        known.push(act);
        known.sort_small();
    }
}

/// The files of an incident in the run: what was changed comes first, then the user's own files.
pub fn files(store: &dyn Store, run: &str, directory: &[u8], acts: Acts) -> Result<Vec<SceneFile>> {
    let mut ownership = Ownership::new(Path::new("/"), [directory]);
    let wanted = |path: &[u8]| {
        acts.get(path)
            .is_some_and(|acts| acts.iter().any(|a| a.is_change()))
    };
    let results = query::results(store, run, &wanted)?;
    let digests: BTreeMap<&[u8], Option<Digest>> = results
        .iter()
        .map(|result| (&*result.path, result.digest))
        .into_tree();
    let mut files: Vec<SceneFile> = acts
        .iter()
        .map(|(path, acts)| {
            let is_changed = acts.iter().any(|act| act.is_change());
            let digest = digests.get(&**path).copied().flatten();
            SceneFile {
                path: path.clone(),
                acts: acts.clone(),
                is_own: match is_changed {
                    true => ownership.is_own_result(path),
                    false => ownership.is_own(path),
                },
                digest,
                state: is_changed.then(|| state(path, digest)),
            }
        })
        .collect();
    let is_read = |file: &SceneFile| file.state.is_none();
    files.sort_small_by(|a, b| {
        let order = |file: &SceneFile| (!file.is_own, is_read(file));
        order(a).cmp(&order(b)).then_with(|| a.path.cmp(&b.path))
    });
    Ok(files)
}

/// The present state of a file with the digest that the run left.
fn state(path: &[u8], digest: Option<Digest>) -> LeftState {
    if fs::symlink_metadata(OsStr::from_bytes(path)).is_err() {
        return LeftState::Gone;
    }
    match (digest, backstory_currency::held(path)) {
        (Some(then), Some(now)) if then == now => LeftState::Unchanged,
        (Some(_), Some(_)) => LeftState::Changed,
        _ => LeftState::There,
    }
}
