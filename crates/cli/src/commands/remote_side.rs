//! `remote-side`: records a command that ssh started on this machine, for `record --remote` on
//! another one.
//!
//! Invariants: the command runs as sshd would have run it, by the user's login shell. If recording
//! cannot begin, the plain command runs. Nothing is printed.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use backstory_session as session;
use backstory_store::{Home, is_run_id};

use super::{Outcome, answer};
use crate::args::remote::RemoteSideArgs;
use crate::error::Failure;
use crate::recording_options;
use crate::remote::READY;

/// Runs the command and returns its exit status.
pub fn run(args: RemoteSideArgs, store: Option<&Path>) -> Outcome {
    use std::io::Write;
    if args.ready {
        return answer(|out| writeln!(out, "{READY}"));
    }
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.unwrap_or_else(|| "/bin/sh".into());
    // sshd gives the shell its name without directories.
    let name = Path::new(&shell).file_name().unwrap_or(&shell).to_owned();
    let command = [name, "-c".into(), args.line.clone().unwrap_or_default()];
    let recorded = options(&args, &shell, &command, store).map(session::record);
    match recorded {
        Some(Ok(recorded)) => {
            if let Some(signal) = recorded.signal {
                // sshd passes the signal on to the other side.
                session::end_by_signal(signal);
            }
            // An exit status has 8 bits.
            Ok(recorded.status() as u8)
        }
        _ => Err(plainly(&shell, &command)),
    }
}

/// The options of the recording. `None` if this store cannot have the run.
fn options(
    args: &RemoteSideArgs,
    shell: &OsStr,
    command: &[OsString],
    store: Option<&Path>,
) -> Option<session::Options> {
    let home = Home::locate(store).ok()?;
    let id = args.run.clone().filter(|id| is_run_id(id))?;
    if home.log_path(&id).exists() || home.part_path(&id).exists() {
        return None;
    }
    Some(session::Options {
        command: command.to_vec(),
        program: Some(shell.to_owned()),
        contents: args.contents,
        ssh_connection: args.connection.clone(),
        ..recording_options::of_command(&home, id)
    })
}

/// Replaces this process by the plain command. Returns only if that fails.
fn plainly(shell: &OsStr, command: &[OsString]) -> Failure {
    let (name, rest) = (&command[0], &command[1..]);
    let error = Command::new(shell).arg0(name).args(rest).exec();
    Failure::not_found(format!("cannot start {}: {error}", shell.display())).of_record()
}
