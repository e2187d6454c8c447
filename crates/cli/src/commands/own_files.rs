//! The files of the user's own that a run read and left, without those of the system and of tools.

use backstory_eventlog::event::Bytes;
use backstory_graph::model::EntityKind;
use backstory_ordering::SmallSort;
use backstory_query::answer::Access;
use backstory_query::{Content, ContentRole};

use super::file_choice::OwnFilter;

/// The user's own files of a run. Files below the run's directory come first, in the order of their
/// paths.
pub struct OwnFiles {
    /// Files that existed before the run and that it read or executed.
    pub inputs: Vec<Bytes>,
    /// Files that it made or changed and that existed at its end.
    pub outputs: Vec<Bytes>,
}

impl OwnFiles {
    /// Selects them from all files of a run, whose current directory was `cwd`.
    pub fn of(files: &[Content], cwd: &[u8], own: &OwnFilter) -> OwnFiles {
        let select = |wanted: fn(&Content) -> bool, access: Access| {
            let own = files.iter().filter(|file| {
                file.kind == EntityKind::File && wanted(file) && own.is_own(&file.path, &[access])
            });
            let mut paths: Vec<Bytes> = own.map(|file| file.path.clone()).collect();
            paths.sort_small_by_key(|path| (!path.starts_with(cwd), path.clone()));
            paths.dedup();
            paths
        };
        OwnFiles {
            inputs: select(is_input, Access::Read),
            outputs: select(|file| file.role == ContentRole::Output, Access::Write),
        }
    }
}

fn is_input(file: &Content) -> bool {
    let made = matches!(file.role, ContentRole::Output | ContentRole::Intermediate);
    file.version == 0 && !made
}
