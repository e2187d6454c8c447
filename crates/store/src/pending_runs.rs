//! The runs that a store does not have yet, in the order in which it takes them.
//!
//! Invariant: the order depends on the logs' headers alone. A database that is made again gives the
//! runs the same numbers, whenever their files were last changed.

use backstory_eventlog::Log;

use crate::order::order_of_runs;
use crate::{Home, Result, RunKey, Store};

impl Home {
    /// Finalized runs that `store` does not have yet, in the order of their starts, then of their
    /// ids. Only their headers are read: a store may have thousands of others.
    pub fn pending(&self, store: &dyn Store) -> Result<Vec<String>> {
        let known = store.run_ids()?;
        let mut ids = self.logs_but(".log", |id| known.contains(id))?;
        ids.sort_unstable();
        // A log without a readable header counts as the oldest.
        let begin = |id: &String| Log::header_of(self.log_path(id)).unwrap_or_default();
        let begins = ids.iter().map(|id| (&begin(id)).into());
        let mut order = order_of_runs((0..).map(RunKey).zip(begins).collect());
        order.reverse();
        let in_order = order.into_iter().map(|RunKey(place)| place as usize);
        Ok(in_order
            .map(|place| std::mem::take(&mut ids[place]))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, SqliteStore};
    use backstory_eventlog::Writer;
    use backstory_eventlog::run::RunHeader;
    use std::fs::File;
    use std::time::{Duration, UNIX_EPOCH};

    fn log(home: &Home, id: &str, boot: &str, since_boot: i64, started: i64) {
        let header = RunHeader {
            id: id.to_owned(),
            boot_id: boot.to_owned(),
            since_boot,
            started,
            ..RunHeader::default()
        };
        Writer::create(home.log_path(id), &header).unwrap();
    }

    /// Sets the time of the last change of each log: seconds since 1970.
    fn change(home: &Home, times: &[(&str, u64)]) {
        for (id, seconds) in times {
            let file = File::options().write(true).open(home.log_path(id)).unwrap();
            let time = UNIX_EPOCH + Duration::from_secs(*seconds);
            file.set_modified(time).unwrap();
        }
    }

    #[test]
    fn runs_are_taken_in_the_order_of_their_starts_whenever_their_logs_were_changed() {
        let tmp = tempfile::tempdir().unwrap();
        let home = Home::open(tmp.path()).unwrap();
        log(&home, "second", "boot", 20, 2000);
        log(&home, "first", "boot", 10, 1000);
        log(&home, "third", "boot", 30, 3000);
        // The clock was set back.
        log(&home, "fourth", "boot", 40, 500);
        std::fs::write(home.log_path("damaged"), "no log").unwrap();
        let wanted = ["damaged", "first", "second", "third", "fourth"];
        let store = MemoryStore::default();
        for times in [[5, 5, 5, 5], [9, 8, 7, 6], [6, 7, 8, 9]] {
            let ids = ["first", "second", "third", "fourth"];
            let times: Vec<(&str, u64)> = ids.into_iter().zip(times).collect();
            change(&home, &times);
            assert_eq!(home.pending(&store).unwrap(), wanted, "{times:?}");
        }
    }

    #[test]
    fn runs_that_started_together_are_taken_in_the_order_of_their_ids() {
        let tmp = tempfile::tempdir().unwrap();
        let home = Home::open(tmp.path()).unwrap();
        for id in ["c", "a", "b"] {
            log(&home, id, "boot", 10, 1000);
        }
        change(&home, &[("c", 1), ("b", 2), ("a", 3)]);
        let store = SqliteStore::open(&home).unwrap();
        assert_eq!(home.pending(&store).unwrap(), ["a", "b", "c"]);
    }
}
