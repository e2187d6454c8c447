//! `requests`: lists the units of work that the processes of a deep run served or asked for.
//!
//! With `--turns`, it lists the turns of the event loops of those that asked.

use std::io::{self, Write};
use std::path::Path;

use backstory_deep::{DeepLog, LoopTurn, MOST_TURNS, ReadMeter, Request, Role as End};
use backstory_ordering::SmallSort;

use super::{Outcome, answer, deep_programs};
use crate::args::runs::RequestsArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, complain, one_line};
use crate::json::{self, Value};
use crate::text::progress::Progress;
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;

/// Lines that fit on a screen, without the first and the last one.
const SCREEN: usize = 20;

/// Prints the requests of a run.
pub fn run(args: RequestsArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let named = args.run.run.as_deref().or(args.of_run.as_deref());
    let run = current.run(named)?;
    let Some(log) = deep_programs::deep_log(&current.home, &run)? else {
        return Err(Failure::not_found(format!(
            "run {run} has no deep log: record it with `backstory record --deep`"
        )));
    };
    if let Some(damage) = log.damage().words() {
        complain(&damage);
    }
    let meter = ReadMeter::default();
    let log = log.metered(&meter);
    let progress = Progress::reading("reading the deep log", &meter);
    if args.turns {
        let found = log.loop_turns();
        progress.end();
        return list_turns(&args, &log, found);
    }
    let requests = log.requests();
    progress.end();
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
        let peer = peer(request);
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
    let most = requests.len() == log.most_requests();
    end_of_list("request", requests.len().saturating_sub(shown), most, out)
}

/// The lines below a list of units with this name. `rest`: how many of them are not shown. `most`:
/// the record may have others.
fn end_of_list(name: &str, rest: usize, most: bool, out: &mut impl Write) -> io::Result<()> {
    if most {
        let line = format!("The record may have further {name}s, which are not read.");
        writeln!(out, "{line}")?;
    }
    if rest > 0 {
        let (one, many) = (format!("more {name}"), format!("more {name}s"));
        writeln!(out, "{} (--all lists them)", counted(rest, &one, &many))?;
    }
    Ok(())
}

fn peer(request: &Request) -> String {
    match request.peer.is_empty() {
        true => "unknown".to_owned(),
        false => one_line(&request.peer),
    }
}

/// Prints the turns of the event loops of clients. The requests are those of the log.
fn list_turns(
    args: &RequestsArgs,
    log: &DeepLog,
    (turns, requests): (Vec<LoopTurn>, Vec<Request>),
) -> Outcome {
    answer(|out| match args.run.json {
        true => json::lines(out, turns.iter().map(|turn| turn_json(turn, log))),
        false => {
            let peers = |turn: &LoopTurn| {
                let of = turn.requests.iter().filter_map(|at| requests.get(*at));
                let mut peers: Vec<String> = of.map(peer).collect();
                peers.sort_small();
                peers.dedup();
                peers.join(", ")
            };
            turns_text(&turns, peers, (log, args.all), out)
        }
    })
}

fn turn_json(turn: &LoopTurn, log: &DeepLog) -> Value {
    let requests = turn.requests.iter().map(|at| at + 1);
    Value::Object(vec![
        ("from", turn.from.into()),
        ("to", turn.to.into()),
        ("pid", turn.pid.into()),
        ("tid", turn.tid.into()),
        ("epoch", turn.epoch.into()),
        ("start", Value::Time(log.time_of(turn.began))),
        ("end", Value::Time(log.time_of(turn.ended))),
        ("ready", turn.ready.into()),
        ("bytes_in", turn.bytes_in.into()),
        ("bytes_out", turn.bytes_out.into()),
        ("calls", turn.calls.into()),
        ("requests", Value::array(requests)),
        ("files", Value::array(turn.files.iter().map(Vec::as_slice))),
    ])
}

fn turns_text(
    turns: &[LoopTurn],
    peers: impl Fn(&LoopTurn) -> String,
    (log, all): (&DeepLog, bool),
    out: &mut impl Write,
) -> io::Result<()> {
    if turns.is_empty() {
        return writeln!(out, "No client of the run has an event loop.");
    }
    let style = Style::of_stdout();
    let head = format!(
        "{:>8}  {:>8}  {:>7}  {:>9}  {:>9}  {:>9}  {:>5}  peers",
        "from", "to", "pid", "took", "in", "out", "files"
    );
    writeln!(out, "{}", style.paint(Role::Dim, &head))?;
    let shown = if all { turns.len() } else { SCREEN };
    for turn in turns.iter().take(shown) {
        writeln!(
            out,
            "{:>8}  {:>8}  {:>7}  {:>9}  {:>9}  {:>9}  {:>5}  {}",
            turn.from,
            turn.to,
            turn.pid,
            when::duration(log.time_of(turn.ended) - log.time_of(turn.began)),
            when::size(turn.bytes_in),
            when::size(turn.bytes_out),
            turn.files.len(),
            style.paint(Role::Subject, &peers(turn))
        )?;
    }
    let most = turns.len() == MOST_TURNS;
    end_of_list("turn", turns.len().saturating_sub(shown), most, out)
}
