//! `requests`: lists the units of work that the processes of a deep run served or asked for.

use std::io::{self, Write};
use std::path::Path;

use backstory_deep::{DeepLog, MOST_REQUESTS, Request, Role as End};

use super::{Outcome, answer, deep_programs};
use crate::args::runs::RequestsArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, complain, one_line};
use crate::json::{self, Value};
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;

/// Lines that fit on a screen, without the first and the last one.
const SCREEN: usize = 20;

/// Prints the requests of a run.
pub fn run(args: RequestsArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let run = current.run(args.run.run.as_deref())?;
    let Some(log) = deep_programs::deep_log(&current.home, &run)? else {
        return Err(Failure::not_found(format!(
            "run {run} has no deep log: record it with `backstory record --deep`"
        )));
    };
    if log.end().is_none() {
        complain(
            "the deep log has no end, so later requests can be missing: it was cut off, or the \
             recording goes on",
        );
    }
    let requests = log.requests();
    answer(|out| match args.run.json {
        true => json::lines(
            out,
            requests.iter().enumerate().map(|(i, r)| json(i, r, &log)),
        ),
        false => text(&requests, &log, args.all, Style::of_stdout(), out),
    })
}

fn end(role: End) -> &'static str {
    match role {
        End::Server => "server",
        End::Client => "client",
    }
}

fn json(index: usize, request: &Request, log: &DeepLog) -> Value {
    let files = request.files.iter().map(|path| path.as_slice().into());
    Value::Object(vec![
        ("number", (index as u64 + 1).into()),
        ("role", end(request.role).into()),
        ("peer", (&request.peer).into()),
        ("pid", request.pid.into()),
        ("tid", request.tid.into()),
        ("epoch", request.epoch.into()),
        ("descriptor", request.fd.into()),
        ("connection", request.connection.into()),
        ("start", Value::Time(log.time_of(request.began))),
        ("end", Value::Time(log.time_of(request.ended))),
        ("bytes_in", request.bytes_in.into()),
        ("bytes_out", request.bytes_out.into()),
        ("calls", request.calls.into()),
        ("files", Value::Array(files.collect())),
    ])
}

fn text(
    requests: &[Request],
    log: &DeepLog,
    all: bool,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    if requests.is_empty() {
        return writeln!(out, "No process of the run served or made a request.");
    }
    let head = format!(
        "{:>6}  {:<6}  {:>7}  {:>9}  {:>9}  {:>9}  {:>5}  peer",
        "number", "role", "pid", "took", "in", "out", "files"
    );
    writeln!(out, "{}", style.paint(Role::Dim, &head))?;
    let shown = if all { requests.len() } else { SCREEN };
    for (index, request) in requests.iter().take(shown).enumerate() {
        let took = log.time_of(request.ended) - log.time_of(request.began);
        let peer = match request.peer.is_empty() {
            true => "unknown".to_owned(),
            false => one_line(&request.peer),
        };
        writeln!(
            out,
            "{:>6}  {:<6}  {:>7}  {:>9}  {:>9}  {:>9}  {:>5}  {}",
            index + 1,
            end(request.role),
            request.pid,
            when::duration(took),
            when::size(request.bytes_in),
            when::size(request.bytes_out),
            request.files.len(),
            style.paint(Role::Subject, &peer)
        )?;
    }
    if requests.len() == MOST_REQUESTS {
        writeln!(
            out,
            "The record may have further requests, which are not read."
        )?;
    }
    let rest = requests.len().saturating_sub(shown);
    if rest > 0 {
        let more = counted(rest, "more request", "more requests");
        writeln!(out, "{more} (--all lists them)")?;
    }
    Ok(())
}
