//! Logs that have their end while a process confirms the verdicts of earlier runs that their run
//! believed (`--guard=auto`).

use crate::part_lock::is_recording;
use backstory_eventlog::Log;
use backstory_eventlog::run::RunHeader;
use backstory_vocabulary::GuardMode;
use std::path::Path;

/// True if an unfinished log has its end, and a process confirms the verdicts that its run
/// believed. The log is finalized next. Only the log of a run without a filter is read as a whole.
pub fn is_confirming(part: &Path) -> bool {
    let is_auto = |header: RunHeader| header.modes.guard == Some(GuardMode::Auto);
    Log::header_of(part).is_ok_and(is_auto)
        && is_recording(part)
        && Log::open(part).is_ok_and(|log| log.end().is_some())
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::part_lock::claimed_log;
    use backstory_eventlog::run::{Modes, RunEnd};

    #[test]
    fn a_log_with_an_end_is_confirmed_as_long_as_its_process_lives() {
        for guard in [GuardMode::Auto, GuardMode::On] {
            let dir = tempfile::tempdir().unwrap();
            let part = dir.path().join("run.log.part");
            let header = RunHeader {
                modes: Modes {
                    guard: Some(guard),
                    ..Modes::default()
                },
                ..RunHeader::default()
            };
            assert!(!is_confirming(&part), "there is no log");
            let (mut log, claim) = claimed_log(&part, &header).unwrap();
            assert!(!is_confirming(&part), "it has no end");
            log.end(&RunEnd::default()).unwrap();
            assert_eq!(is_confirming(&part), guard == GuardMode::Auto);
            drop(claim);
            assert!(!is_confirming(&part), "no process is left");
        }
    }
}
