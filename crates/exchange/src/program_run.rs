//! Runs the programs that sign and verify.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// Runs a program with an input, and collects its outputs.
///
/// # Errors
///
/// The program cannot be started, or its outputs cannot be read.
pub fn with_input(command: &mut Command, input: &[u8]) -> io::Result<Output> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input reports why by its status.
        let _ = stdin.write_all(input);
    }
    child.wait_with_output()
}
