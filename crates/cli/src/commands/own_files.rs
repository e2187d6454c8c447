//! The files of the user's own that a run read and left, without those of the system and of tools.

use std::path::Path;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::EntityKind;
use backstory_query::{Content, ContentRole};
use backstory_workflow::ownership::Ownership;

/// The user's own files of a run. Files below the run's directory come first, in the order of their
/// paths.
pub struct OwnFiles {
    /// Files that existed before the run and that it read or executed.
    pub inputs: Vec<Bytes>,
    /// Files that it made or changed and that existed at its end.
    pub outputs: Vec<Bytes>,
}

impl OwnFiles {
    /// Selects them from all files of a run, whose current directory was `cwd`. `printed`: the
    /// files of its standard descriptors, which are the shell's.
    pub fn of(files: &[Content], cwd: &[u8], printed: &[Vec<u8>]) -> OwnFiles {
        let mut ownership = Ownership::new(Path::new("/"), [cwd]);
        let mut select = |wanted: fn(&Content) -> bool| {
            let own = files.iter().filter(|file| {
                let shells = || printed.iter().any(|path| **path == *file.path);
                file.kind == EntityKind::File
                    && wanted(file)
                    && !shells()
                    && ownership.is_own(&file.path)
            });
            let mut paths: Vec<Bytes> = own.map(|file| file.path.clone()).collect();
            paths.sort_unstable_by_key(|path| (!path.starts_with(cwd), path.clone()));
            paths.dedup();
            paths
        };
        OwnFiles {
            inputs: select(|file| {
                let made = matches!(file.role, ContentRole::Output | ContentRole::Intermediate);
                file.version == 0 && !made
            }),
            outputs: select(|file| file.role == ContentRole::Output),
        }
    }
}
