//! A log of another tool is imported or refused, whichever bytes it has, and the run can be read.
//!
//! The first byte of the input selects the format. The second one says whether the log is split
//! into two files, and whether the first has a name of Nextflow. The rest is the log.

use super::place;
use backstory_eventlog::Log;
use backstory_import::{FORMATS, ImportOptions, LogFiles, MachineMode, import};

/// Imports the log.
pub fn run(data: &[u8]) {
    let Some(([format, split], log)) = data.split_first_chunk::<2>() else {
        return;
    };
    let format = FORMATS[usize::from(*format) % FORMATS.len()];
    let parts = match split % 2 {
        0 => vec![log],
        _ => {
            let (one, other) = log.split_at(log.len() / 2);
            vec![one, other]
        }
    };
    let mut paths: Vec<_> = (1..=parts.len())
        // strace tells threads by the ends of these names.
        .map(|at| place::file(&format!("foreign.{at}")))
        .collect();
    if split & 2 != 0 {
        // Nextflow has files with fixed names.
        paths[0] = place::file(".command.run");
    }
    for (path, part) in paths.iter().zip(parts) {
        std::fs::write(path, part).expect("written");
    }
    let Ok(files) = LogFiles::read(&paths, &|_| ()) else {
        return;
    };
    let log = place::file("foreign.log");
    let options = ImportOptions {
        id: "aaaaaaaa".to_owned(),
        name: None,
        log: log.clone(),
        cwd: None,
        root: None,
        machine: MachineMode::Other,
        redact: Vec::new(),
        version: "0".to_owned(),
    };
    if import(format, &files, &options, &|_| ()).is_ok() {
        let read = Log::open(&log).expect("a log");
        assert_eq!(read.damage().reason(), None, "a damaged log was written");
        read.events().count();
        std::fs::remove_file(&log).expect("removed");
    }
    assert!(!log.exists(), "a refused log left a run");
}
