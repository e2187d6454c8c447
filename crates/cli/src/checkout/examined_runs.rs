//! The runs of a store that were examined for git work trees.
//!
//! In: the runs of a store, and its file `checkouts.through`. The first line of the file is a mark:
//! the number and the id of a run. This run, and all with a lower number, were examined. Out: the
//! other runs.
//!
//! Invariants: the mark advances after the annotations were appended. So a killed process leaves
//! the runs to the next one. A mark that is damaged does not count, and neither does one of a store
//! that was rebuilt since. Absent: a lock. Two processes may examine a run at once, and find the
//! same.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use backstory_files::regular;
use backstory_store::{Error, Home, RunKey, Store};

/// The name of the file.
const NAME: &str = "checkouts.through";

/// How far the runs of a store were examined.
#[derive(Debug)]
pub struct ExaminedRuns {
    mark: PathBuf,
    through: Option<RunKey>,
}

impl ExaminedRuns {
    /// Reads the mark of a store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn read(home: &Home, store: &dyn Store) -> Result<ExaminedRuns, Error> {
        let mark = home.dir().join(NAME);
        let text = regular::read(&mark).unwrap_or_default();
        let through = match marked(&text) {
            // Without the id, a rebuilt store could have another run with this number.
            Some((run, id)) if store.run_id(run)?.as_deref() == Some(id) => Some(run),
            _ => None,
        };
        Ok(ExaminedRuns { mark, through })
    }

    /// The runs that were not examined, the newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn others(&self, store: &dyn Store) -> Result<Vec<RunKey>, Error> {
        let mut runs = store.runs_in_order()?;
        runs.retain(|run| Some(*run) > self.through);
        Ok(runs)
    }

    /// Advances the mark to the last of these runs. Without runs, nothing is written.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn advance(&self, store: &dyn Store, runs: &[RunKey]) -> Result<(), Error> {
        let Some(last) = runs.iter().max() else {
            return Ok(());
        };
        if let Some(id) = store.run_id(*last)? {
            // Without the mark, the next process examines the runs again.
            let _ = write(&self.mark, &format!("{} {id}\n", last.0));
        }
        Ok(())
    }
}

/// The run in the first line of the file.
fn marked(text: &[u8]) -> Option<(RunKey, &str)> {
    let line = std::str::from_utf8(text).ok()?.lines().next()?;
    let (number, id) = line.split_once(' ')?;
    Some((RunKey(number.parse().ok()?), id))
}

/// Writes the first line in place. Some file systems write a replaced or truncated file to the disk
/// at once. The rest of a longer line comes after the first line, and is not read.
fn write(path: &Path, line: &str) -> io::Result<()> {
    regular::open_private(path)?.write_all_at(line.as_bytes(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkout::complete;
    use crate::text::when;
    use backstory_eventlog::run::{RunEnd, RunHeader};
    use backstory_git_objects::work_tree;
    use backstory_graph::model::{Entity, EntityId, EntityKind, Sink};
    use backstory_query::Checkout;
    use backstory_store::annotations::{self, AnnotationRecord};
    use backstory_store::open_store;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    /// A store, and directories with the files of its runs.
    struct Recordings {
        store: Box<dyn Store>,
        home: Home,
        files: TempDir,
        _directory: TempDir,
    }

    impl Recordings {
        fn new() -> Recordings {
            let directory = tempfile::tempdir().unwrap();
            let home = Home::open(directory.path()).unwrap();
            Recordings {
                store: open_store(&home).unwrap(),
                home,
                files: tempfile::tempdir().unwrap(),
                _directory: directory,
            }
        }

        /// Adds a run that has just ended, and began some seconds ago. It used one file.
        fn add(&mut self, id: &str, seconds: i64, file: &str) {
            let now = when::now();
            let header = RunHeader {
                id: id.to_owned(),
                started: now - seconds * 1_000_000_000,
                ..RunHeader::default()
            };
            let end = RunEnd {
                ended: now,
                ..RunEnd::default()
            };
            let path = self.files.path().join(file);
            let entity = Entity {
                id: EntityId(0),
                kind: EntityKind::File,
                path: path.as_os_str().as_bytes().into(),
                aliases: Vec::new(),
                by_name: Vec::new(),
                version: 0,
                previous: None,
                ident: None,
                last: true,
            };
            self.store
                .append(&header, &end, 0, &mut |sink| sink.entity(&entity))
                .unwrap();
        }

        /// Makes a directory a work tree.
        fn work_tree(&self, name: &str) {
            let git = self.files.path().join(name).join(".git");
            fs::create_dir_all(&git).unwrap();
            fs::write(git.join("HEAD"), COMMIT).unwrap();
        }

        fn complete(&mut self) -> Result<(), Error> {
            complete(&self.home, &mut self.store)
        }

        /// Removes the names of all files from the database, so that no file can be read.
        fn lose_names(&mut self) {
            let database = rusqlite::Connection::open(self.home.database_path()).unwrap();
            database.execute("DELETE FROM versions", []).unwrap();
            self.store = open_store(&self.home).unwrap();
        }

        /// Adds an annotation of a run that cannot be read.
        fn damage_annotations_of(&mut self, run: &str) {
            let database = rusqlite::Connection::open(self.home.database_path()).unwrap();
            let damaged = "INSERT INTO annotations VALUES (?1, 3, '', CAST(x'ff' AS TEXT))";
            database.execute(damaged, [run]).unwrap();
            self.store = open_store(&self.home).unwrap();
        }

        /// The names of the work trees that were found for a run.
        fn found(&self, run: &str) -> Vec<String> {
            let all = self.store.annotations(run).unwrap().into_iter();
            // The directory for temporary files may itself be in a work tree.
            let name = |root: String| {
                let name = Path::new(&root).strip_prefix(self.files.path()).ok()?;
                Some(name.to_str()?.to_owned())
            };
            all.filter_map(|one| name(one.key)).collect()
        }
    }

    #[test]
    fn a_run_is_examined_once_and_gets_no_work_tree_of_a_later_time() {
        let mut recordings = Recordings::new();
        recordings.add("first000", 1, "one/a");
        recordings.complete().unwrap();
        // The run is still fresh, and one of the newest three.
        recordings.work_tree("one");
        recordings.work_tree("two");
        recordings.add("second00", 0, "two/a");
        recordings.complete().unwrap();
        assert!(recordings.found("first000").is_empty());
        assert_eq!(recordings.found("second00"), ["two"]);
    }

    #[test]
    fn the_files_of_a_run_that_used_no_other_work_tree_are_not_read() {
        let mut recordings = Recordings::new();
        if work_tree::root(recordings.files.path()).is_some() {
            let reason = "the directory for temporary files is in a work tree";
            backstory_testkit::need::skipped("runs without a work tree", reason);
            return;
        }
        recordings.work_tree("one");
        recordings.add("first000", 1, "one/a");
        recordings.lose_names();
        assert!(recordings.complete().is_err());
        fs::remove_dir_all(recordings.files.path().join("one")).unwrap();
        recordings.complete().unwrap();
        assert!(recordings.found("first000").is_empty());
    }

    #[test]
    fn only_annotations_of_runs_that_were_not_examined_are_read() {
        let mut recordings = Recordings::new();
        recordings.add("first000", 1, "none/a");
        recordings.complete().unwrap();
        recordings.damage_annotations_of("first000");
        recordings.add("second00", 0, "none/a");
        let begun = Checkout {
            root: "/none".to_owned(),
            ..Checkout::default()
        };
        let begun = AnnotationRecord::Set(begun.annotation("second00"));
        annotations::append(&recordings.home, &[begun]).unwrap();
        recordings.complete().unwrap();
        let found = recordings.store.annotations("second00").unwrap();
        let found = found.iter().filter_map(Checkout::of);
        let mut begun = found.filter(|checkout| checkout.root == "/none");
        assert!(begun.next().is_some_and(|checkout| checkout.examined));
        fs::remove_file(recordings.home.dir().join(NAME)).unwrap();
        assert!(recordings.complete().is_err());
    }

    #[test]
    fn a_long_run_that_ended_after_three_newer_ones_is_examined() {
        let mut recordings = Recordings::new();
        recordings.work_tree("one");
        for id in ["first000", "second00", "third000"] {
            recordings.add(id, 1, "none/a");
        }
        recordings.complete().unwrap();
        recordings.add("long0000", 60, "one/a");
        recordings.complete().unwrap();
        assert_eq!(recordings.found("long0000"), ["one"]);
    }

    #[test]
    fn with_an_unusable_mark_the_newest_runs_are_examined() {
        for text in ["", "1", "1 ", "1 other000\n", "2 first000\n", "x first000"] {
            let mut recordings = Recordings::new();
            recordings.work_tree("one");
            recordings.add("first000", 1, "one/a");
            fs::write(recordings.home.dir().join(NAME), text).unwrap();
            recordings.complete().unwrap();
            assert_eq!(recordings.found("first000"), ["one"], "{text:?}");
        }
        // The mark can neither be read nor be written.
        let mut recordings = Recordings::new();
        recordings.work_tree("one");
        recordings.add("first000", 1, "one/a");
        fs::create_dir(recordings.home.dir().join(NAME)).unwrap();
        recordings.complete().unwrap();
        assert_eq!(recordings.found("first000"), ["one"]);
    }

    #[test]
    fn a_shorter_mark_over_a_longer_one_counts() {
        let mut recordings = Recordings::new();
        recordings.add("first000", 1, "one/a");
        let mark = recordings.home.dir().join(NAME);
        fs::write(&mark, "4000000000 other000\n").unwrap();
        recordings.complete().unwrap();
        let examined = ExaminedRuns::read(&recordings.home, &recordings.store).unwrap();
        assert_eq!(examined.through, Some(RunKey(1)));
        assert!(examined.others(&recordings.store).unwrap().is_empty());
    }

    #[test]
    fn a_run_whose_work_trees_could_not_be_noted_is_examined_again() {
        let mut recordings = Recordings::new();
        recordings.work_tree("one");
        recordings.add("first000", 1, "one/a");
        let journal = recordings.home.annotations_path();
        symlink(recordings.files.path().join("none/journal"), &journal).unwrap();
        assert!(recordings.complete().is_err());
        fs::remove_file(&journal).unwrap();
        recordings.complete().unwrap();
        assert_eq!(recordings.found("first000"), ["one"]);
    }
}
