//! `shell`: starts a shell each of whose command lines is a run. `init`: prints the script that a
//! start-up file evaluates.
//!
//! Invariant: a login never fails. If recording cannot begin, the plain shell starts.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use backstory_files::regular;
use backstory_session as session;
use backstory_store::{Home, random_run_id};

use super::{Outcome, answer};
use crate::args::shell::{InitArgs, ShellArgs};
use crate::error::{Failure, chain, complain};
use crate::recorded_shell::{NOT_RECORDED, SESSION, ShellStart};
use crate::recording_options;
use crate::remote;
use crate::shell_policy::ShellPolicy;

/// Starts the shell and returns its exit status.
pub fn run(args: &ShellArgs, store: Option<&Path>) -> Outcome {
    if let Some(session) = std::env::var_os(SESSION).filter(|session| session != NOT_RECORDED) {
        return Err(Failure::misuse(format!(
            "this shell is recorded already, as session {}",
            session.display()
        )));
    }
    let command = match args.shell.is_empty() {
        true => vec![users_shell()],
        false => args.shell.clone(),
    };
    let begun = begin(args, &command, store);
    let ended = begun.and_then(|(start, options)| {
        let recorded = session::record(options);
        drop(start);
        recorded.map_err(|error| chain(&error))
    });
    match ended {
        Ok(recorded) => {
            if let Some(line) = recorded.warning() {
                complain(&line);
            }
            Ok(recorded.status() as u8)
        }
        Err(why) => Err(plainly(&command, &why)),
    }
}

/// Prepares the shell and its recording.
fn begin(
    args: &ShellArgs,
    command: &[OsString],
    store: Option<&Path>,
) -> Result<(ShellStart, session::Options), String> {
    let home = Home::locate(store).map_err(|error| chain(&error))?;
    let id = home.new_run_id();
    let start = ShellStart::prepare(&id, command)
        .map_err(|error| format!("cannot write the hooks of the shell: {error}"))?;
    if let Some(why) = start
        .why_no_lines()
        .filter(|_| std::io::stdin().is_terminal())
    {
        complain(&format!("this whole shell is one run, because {why}"));
    }
    let policy = ShellPolicy::load();
    policy.warnings.iter().for_each(|warning| complain(warning));
    if policy.hides_private {
        keep_private(&start)?;
    }
    let mut variables = start.variables.clone();
    if args.remote || policy.remote {
        let remote = remote::variables(&home, args.contents);
        variables.extend(remote.map_err(|error| format!("cannot make wrappers: {error}"))?);
    }
    let options = session::Options {
        command: start.command.clone(),
        contents: args.contents,
        redact: args.redact.clone(),
        variables,
        lines: Some(session::LineOptions {
            new_id: random_run_id,
            policy: policy.of_lines(start.paused_file()),
        }),
        broker: true,
        ..recording_options::of_command(&home, id)
    };
    Ok((start, options))
}

/// Pauses a shell whose private lines are not known. A shell without lines has no private ones.
fn keep_private(start: &ShellStart) -> Result<(), String> {
    let Some(file) = start.paused_file() else {
        return Ok(());
    };
    regular::open_private(&file)
        .map_err(|error| format!("cannot pause: {}: {error}", file.display()))?;
    complain(
        "no line is recorded, because the list of private lines has a mistake; \
         correct it and start another shell, or type `backstory resume`",
    );
    Ok(())
}

/// The user's shell.
fn users_shell() -> OsString {
    std::env::var_os("SHELL")
        .filter(|shell| !shell.is_empty())
        .unwrap_or_else(|| "/bin/sh".into())
}

/// Replaces this process by the plain shell. Returns only if that fails, too.
fn plainly(command: &[OsString], why: &str) -> Failure {
    complain(&format!("this shell is not recorded: {why}"));
    let Some((program, rest)) = command.split_first() else {
        return Failure::misuse("no shell was given");
    };
    // A start-up file must not try again.
    let error = Command::new(program)
        .args(rest)
        .env(SESSION, NOT_RECORDED)
        .exec();
    Failure::not_found(format!("cannot start {}: {error}", program.display())).of_record()
}

/// Prints the script for a start-up file.
pub fn init(args: &InitArgs, store: Option<&Path>) -> Outcome {
    use std::io::Write;
    let program = std::env::current_exe()
        .map_err(|error| Failure::not_found(format!("cannot find this program: {error}")))?;
    let store = store.map(std::path::absolute).transpose();
    let store = store.map_err(|error| Failure::misuse(format!("--store: {error}")))?;
    let script = args.shell.script(program.as_os_str(), store.as_deref());
    answer(|out| out.write_all(script.as_bytes()))
}
