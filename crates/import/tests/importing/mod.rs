//! Imports of single files, for tests of damaged ones.

use backstory_import::{Error, ImportOptions, ImportedRun, LogFiles, MachineMode, format, import};
use std::path::{Path, PathBuf};

/// Imports a file of a format. Returns the run and the path of its log, which the caller removes.
pub fn imported(
    dir: &Path,
    name: &str,
    file: &str,
    bytes: &[u8],
) -> Result<(ImportedRun, PathBuf), Error> {
    let path = dir.join(file);
    std::fs::write(&path, bytes).unwrap();
    let files = LogFiles::read(&[path], &|_| ())?;
    let log = dir.join("aaaaaaaa.log");
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
    let run = import(format(name).unwrap(), &files, &options, &|_| ())?.unwrap();
    Ok((run, log))
}
