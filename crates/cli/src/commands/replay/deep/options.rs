//! The options of `replay --deep` as a request.
//!
//! In: the options. Out: a request, and the ways in which the replay deviates from the run.

use std::cell::OnceCell;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_deep::DeepLog;
use backstory_eventlog::event::Bytes;
use backstory_eventlog::run::RunEnd;
use backstory_query as query;
use backstory_query::answer::ProcessLine;
use backstory_reconstruct::engine;
use backstory_reconstruct::search::Attempt;
use backstory_reconstruct::time::RecordedClock;
use backstory_reconstruct::volatile::VolatileRules;
use backstory_replay::plan::Deviations;

use super::DeepRequest;
use crate::args::replay::{ReconstructionArgs, ReplayArgs};
use crate::commands::deep_programs;
use crate::commands::replay::fed_bytes::fed_bytes;
use crate::commands::replay::missing_program;
use crate::commands::replay::request_outputs;
use crate::commands::replay::shallow_command::{ShallowCommand, wait_status};
use crate::commands::replay::tool_choice::ToolChoice;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain, complain};
use crate::when as date;

/// Reads the options of `--deep`. Another program, and the files that a tool needs, are deviations.
pub fn request(
    current: &CurrentStore,
    run: &str,
    args: &ReplayArgs,
    deviations: &mut Deviations,
) -> Result<DeepRequest, Failure> {
    let given = &args.reconstruction;
    let choice = ToolChoice::of(given.with.as_ref(), given.binary.as_ref())?;
    choice.check_build()?;
    deviations.allow_host |= choice.needs_host;
    let (inputs, request_input) = fed_bytes(given)?;
    for pattern in &given.volatile {
        let declared = VolatileRules::default().declare(pattern);
        declared.map_err(|error| Failure::misuse(format!("--volatile: {error}")))?;
    }
    let end = current.store.run(run)?.map(|run| run.end);
    let mut request = DeepRequest {
        log: current.home.deep_log_path(run),
        process: given.process,
        program: Vec::new(),
        build: None,
        request: None,
        tool: choice.words,
        is_sanitized: choice.is_sanitized,
        patience: given.patience.max(1),
        window: (None, None),
        volatile: given.volatile.clone(),
        inputs,
        request_input,
        arguments: pairs(&deviations.args, |number| *number),
        variables: pairs(&deviations.env, |name| name.to_vec()),
        attempt: Attempt::default(),
        killed_by: end.as_ref().and_then(|end| end.signal),
        status: None,
        shallow_command: None,
        follows_bytes: false,
        wanted: None,
        lists_obstacles: args.json,
        read: OnceCell::new(),
    };
    if !request.log.exists() {
        return Err(Failure::not_found(format!(
            "run {run} has no deep log: record the command with `backstory record --deep`"
        )));
    }
    if given.from.is_some() || given.to.is_some() {
        request.window = window(&request.open()?, given)?;
    }
    let damage = request.read()?.damage;
    let found = checked(
        (current, run),
        args,
        deviations,
        (request, end, choice.build),
    );
    // The report says why ends of records may be missing, unless there is no report.
    if (found.is_err() || !damage.lacks_ends())
        && let Some(words) = damage.words()
    {
        complain(&words);
    }
    found
}

/// The request, if the deep log has all that it needs. Errors that need no root come before it is
/// built.
fn checked(
    (current, run): (&CurrentStore, &str),
    args: &ReplayArgs,
    deviations: &mut Deviations,
    (mut request, end, build): (DeepRequest, Option<RunEnd>, Option<PathBuf>),
) -> Result<DeepRequest, Failure> {
    let given = &args.reconstruction;
    let read = request.read()?;
    let recorded = &read.run;
    for &(first, last) in &given.request {
        for number in [last, first] {
            let chosen = backstory_reconstruct::request::chosen(recorded, number);
            chosen.map_err(|error| Failure::not_found(chain(&error)))?;
        }
    }
    let is_whole = given.process.is_none() && given.request.is_empty();
    if is_whole {
        let executed = query::processes(&current.store, run)?;
        note_end(&mut request, &executed, end.as_ref())?;
    }
    if request.shallow_command.is_some() && !request.inputs.is_empty() {
        return Err(Failure::misuse(
            "--feed needs a recorded input, and the deep log has none of the command: name a \
             program that it has with --process",
        ));
    }
    for (fd, _) in &request.inputs {
        let has = engine::has_input(recorded, &request.options(), *fd);
        if !has.map_err(|error| Failure::not_found(chain(&error)))? {
            return Err(Failure::not_found(format!(
                "--feed cannot replace descriptor {fd}: the program was not started with it, or \
                 did not use it"
            )));
        }
    }
    deviations.is_fed = request.shallow_command.is_none();
    let program = match &request.shallow_command {
        Some(command) => command.program().to_vec(),
        None => engine::program(recorded, &request.options())
            .map_err(|error| Failure::not_found(chain(&error)))?,
    };
    if request.shallow_command.is_none() {
        request.build = missing_program::hex(&engine::build(recorded, &request.options()));
    }
    let directory = engine::directory(recorded, &request.options());
    let absolute = Path::new(std::ffi::OsStr::from_bytes(&directory));
    let absolute = absolute.join(std::ffi::OsStr::from_bytes(&program));
    request.program = request_outputs::normal(&absolute);
    if given.request.is_empty() {
        // The process inside reads the log itself.
        request.read = OnceCell::new();
    }
    if let Some(build) = build {
        // The command may have a relative path, as in `./program`.
        let recorded = std::ffi::OsStr::from_bytes(&request.program);
        deviations.inputs.push((recorded.into(), build));
    }
    Ok(request)
}

/// Notes the end of the command, which is compared whether the deep log has the command or not.
fn note_end(
    request: &mut DeepRequest,
    executed: &[ProcessLine],
    end: Option<&RunEnd>,
) -> Result<(), Failure> {
    let log = request.open()?;
    let status = end.and_then(wait_status);
    request.shallow_command = ShallowCommand::of(&log, executed, status);
    request.status = status.filter(|_| deep_programs::has_command(&log, executed));
    Ok(())
}

/// Pairs with their values as vectors.
fn pairs<K, L>(given: &[(K, Bytes)], key: impl Fn(&K) -> L) -> Vec<(L, Vec<u8>)> {
    let all = given
        .iter()
        .map(|(name, value)| (key(name), value.to_vec()));
    all.collect()
}

/// The time-stamp counters of `--from` and `--to`. A part that ends before it begins is refused:
/// nothing would be compared.
fn window(
    log: &DeepLog,
    given: &ReconstructionArgs,
) -> Result<(Option<u64>, Option<u64>), Failure> {
    let moment = |words: &Option<String>| match words {
        Some(words) => moment(log, words).map(Some),
        None => Ok(None),
    };
    let (begin, end) = (moment(&given.from)?, moment(&given.to)?);
    match (&given.from, &given.to) {
        (Some(from), Some(to)) if begin > end => Err(Failure::misuse(format!(
            "--from {from} is later than --to {to}: give the earlier moment with --from"
        ))),
        _ => Ok((begin, end)),
    }
}

/// The time-stamp counter at a moment that the user names.
fn moment(log: &DeepLog, words: &str) -> Result<u64, Failure> {
    if let Ok(number) = words.parse() {
        let found = log.end_of_call(number);
        return found
            .ok_or_else(|| Failure::not_found(format!("the deep log has no call {number}")));
    }
    let time = date::parse(words).map_err(Failure::misuse)?;
    let counter = RecordedClock::of(log).counter(time);
    counter.ok_or_else(|| {
        Failure::not_found("the deep log was cut off, so it has no dates: give numbers of calls")
    })
}
