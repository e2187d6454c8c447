//! The programs that sign, verify and get time stamps: `openssl` and `curl`.

use std::io::Write;
use std::process::Command;

use backstory_exchange::program_run;

use crate::{Error, Result};

/// A temporary file with these bytes.
pub fn temporary(bytes: &[u8]) -> Result<tempfile::NamedTempFile> {
    tempfile::NamedTempFile::new()
        .and_then(|mut file| file.write_all(bytes).map(|()| file))
        .map_err(Error::io("create a file in", &std::env::temp_dir()))
}

/// The failure of a program.
pub fn failed(what: &str, why: &str) -> Error {
    Error::Tool(format!("{what}: {why}"))
}

/// Runs a program with an input. Returns its output, or the last line that it complained.
pub fn output(command: &mut Command, input: &[u8]) -> Result<std::result::Result<Vec<u8>, String>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = program_run::with_input(command, input).map_err(|error| {
        failed(
            &format!("cannot run {program}, which signs, verifies or gets time stamps"),
            &error.to_string(),
        )
    })?;
    match output.status.success() {
        true => Ok(Ok(output.stdout)),
        false => {
            let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Ok(Err(complaint
                .lines()
                .last()
                .unwrap_or("it failed")
                .to_owned()))
        }
    }
}
