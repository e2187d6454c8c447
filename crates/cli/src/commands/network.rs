//! `origin` and `exfil`: the network addresses that content of a file came from, or can have gone
//! to.
//!
//! A connection is an end of a file's account. The way to it is that of `of --why` and
//! `uses --why`.

use backstory_ordering::SmallCollect;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use backstory_account::{Account, Command, WayStep};
use backstory_eventlog::event::{Bytes, Time};
use backstory_query as query;
use backstory_query::answer::{PeerContact, Scope};
use backstory_store::Store;
use backstory_workflow::shell;

use super::account::account_of;
use super::lineage::{reach, search};
use super::{Outcome, answer, here, lake};
use crate::args::lineage::NetworkArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, complain, one_line};
use crate::json::{self, Value};
use crate::subject;
use crate::text::account::{self as text, Sheet};
use crate::text::line::excerpt;
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::{Direction, counted};

/// Columns of a program.
const COLUMNS: usize = 60;

/// An address, and how the content came from it or went to it.
struct NetworkEnd {
    address: Vec<u8>,
    /// Names that the address can have had.
    names: BTreeSet<String>,
    /// The command that received or sent.
    command: usize,
    /// When it used the address last.
    time: Time,
    /// The bytes that it sent and received there. `None` if unknown.
    bytes: Option<(u64, u64)>,
    /// The program that used the address, if another one than that of the command.
    program: Option<Vec<Bytes>>,
    way: Vec<WayStep>,
}

/// Prints the addresses.
pub fn run(args: &NetworkArgs, direction: Direction, store: Option<&Path>) -> Outcome {
    if let Some(lake) = &args.lake {
        return lake::network(args, direction, lake);
    }
    let current = CurrentStore::open(store)?;
    current.tell_left_running();
    let run = match &args.run {
        Some(run) => Some(current.run(Some(run))?),
        None => None,
    };
    let reach = reach(direction);
    let found = subject::find(&current, args.path.as_os_str(), run.as_deref(), reach)?;
    found.notes.iter().for_each(|note| complain(note));
    let scope = Scope {
        possible: true,
        run,
        ..Scope::default()
    };
    let lineage = search(&current.store, &found.versions, direction, &scope)?;
    let (account, _) = account_of(&current, &lineage, direction, args.possible)?;
    let ends = ends(&current.store, &account)?;
    answer(|out| match args.json {
        true => json::lines(out, ends.iter().map(|end| object(&account, end))),
        false => write(&account, &ends, direction, out),
    })?;
    Ok(u8::from(ends.is_empty()))
}

/// The ends of an account in the network, the last used first. An address is there once for each
/// command.
fn ends(store: &dyn Store, account: &Account) -> Result<Vec<NetworkEnd>, Failure> {
    let mut contacts: HashMap<usize, Vec<PeerContact>> = HashMap::new();
    let mut ends: Vec<NetworkEnd> = Vec::new();
    for &command in &account.chain {
        let flow = &account.commands[command];
        let files = match account.direction {
            query::Direction::Back => &flow.reads,
            query::Direction::Forth => &flow.writes,
        };
        // A build can have very many.
        let programs: HashSet<u64> = flow.programs.iter().copied().collect();
        for &file in files.iter().filter(|&&file| account.files[file].is_peer()) {
            let path = &account.files[file].path;
            let address = query::address_of(path).unwrap_or(path).to_vec();
            let Some(way) = account.way(&[file]) else {
                continue;
            };
            let known = |end: &NetworkEnd| end.command == command && end.address == address;
            if ends.iter().any(known) {
                continue;
            }
            let of_run = match contacts.get(&flow.run) {
                Some(known) => known,
                None => {
                    let run = &account.runs[flow.run].details.summary.id;
                    contacts
                        .entry(flow.run)
                        .or_insert(query::peers(store, run)?)
                }
            };
            let here: Vec<&PeerContact> = of_run
                .iter()
                .filter(|one| *one.address == *address)
                .collect();
            let names = here.iter().flat_map(|one| &one.names);
            let inside = here.iter().filter(|one| programs.contains(&one.id));
            let inside: Vec<&PeerContact> = inside.copied().collect();
            ends.push(NetworkEnd {
                names: names.map(|name| name.name.clone()).collect(),
                bytes: bytes(&here, &inside, flow.activity),
                time: last_use(&here, &inside, flow),
                program: other_program(&inside, flow),
                address,
                command,
                way,
            });
        }
    }
    ends.sort_by_key(|end| std::cmp::Reverse(end.time));
    Ok(ends)
}

/// The bytes of the command's program, else those of other programs of the command, else those of
/// its run. `inside`: the uses by programs of the command.
fn bytes(contacts: &[&PeerContact], inside: &[&PeerContact], program: u64) -> Option<(u64, u64)> {
    let own = inside.iter().find(|one| one.id == program);
    let sum = |uses: &[&PeerContact]| {
        let all = uses.iter().filter_map(|one| one.bytes);
        all.reduce(|(sent, received), (more, others)| (sent + more, received + others))
    };
    own.and_then(|one| one.bytes)
        .or_else(|| sum(inside))
        .or_else(|| sum(contacts))
}

/// The arguments of the program in the command that used the address last. `None` if the command's
/// own program used it. `inside`: the uses by programs of the command.
fn other_program(inside: &[&PeerContact], command: &Command) -> Option<Vec<Bytes>> {
    if inside.iter().any(|one| one.id == command.activity) {
        return None;
    }
    let last = inside.iter().max_by_key(|one| one.interval.end)?;
    Some(last.activity.argv.to_vec())
}

/// When the command's program used the address last, else another program of the command, else one
/// of its run. `inside`: the uses by programs of the command.
fn last_use(contacts: &[&PeerContact], inside: &[&PeerContact], command: &Command) -> Time {
    let own = inside.iter().find(|contact| contact.id == command.activity);
    let end = |contact: &&PeerContact| contact.interval.end;
    let last = |uses: &[&PeerContact]| uses.iter().map(end).max();
    own.map(end)
        .or_else(|| last(inside))
        .or_else(|| last(contacts))
        .unwrap_or(command.start)
}

fn object(account: &Account, end: &NetworkEnd) -> Value {
    let command = &account.commands[end.command];
    let way = end.way.iter().map(|step| {
        let command = &account.commands[step.command];
        Value::Object(vec![
            ("from", (&account.files[step.near].path).into()),
            ("command", command.line.command().as_str().into()),
            (
                "run",
                (&account.runs[command.run].details.summary.id).into(),
            ),
            ("to", (&account.files[step.far].path).into()),
        ])
    });
    Value::Object(vec![
        ("address", end.address.as_slice().into()),
        ("names", Value::array(&end.names)),
        (
            "run",
            (&account.runs[command.run].details.summary.id).into(),
        ),
        ("command", command.line.command().as_str().into()),
        ("cwd", (&command.line.cwd).into()),
        ("start", Value::Time(command.start)),
        ("end", Value::Time(command.end)),
        ("time", Value::Time(end.time)),
        ("sent", end.bytes.map(|(sent, _)| sent).into()),
        ("received", end.bytes.map(|(_, received)| received).into()),
        ("way", Value::Array(way.collect())),
    ])
}

fn write(
    account: &Account,
    ends: &[NetworkEnd],
    direction: Direction,
    out: &mut impl Write,
) -> io::Result<()> {
    let (here, style) = (here(), Style::of_stdout());
    let (width, height) = text::screen();
    let sheet = Sheet {
        here: &here,
        style,
        width,
        height,
        all_runs: None,
    };
    let subject = text::name(&account.files[account.roots[0]].path, sheet);
    let addresses: BTreeSet<&[u8]> = ends.iter().map(|end| &*end.address).into_tree();
    let many = counted(addresses.len(), "address", "addresses");
    let painted = style.paint(Role::Subject, &subject);
    match (direction, ends.is_empty()) {
        (Direction::Of, true) => writeln!(
            out,
            "{painted}: no recorded command received its content from the network"
        )?,
        (Direction::Uses, true) => writeln!(
            out,
            "{painted}: no recorded command with its content sent to the network"
        )?,
        (Direction::Of, false) => writeln!(out, "{painted}: content came from {many}")?,
        (Direction::Uses, false) => {
            writeln!(out, "{painted}: commands with its content sent to {many}")?
        }
    }
    for end in ends {
        writeln!(out, "{}", heading(account, end, style))?;
        let mut way = Vec::new();
        text::way(account, &end.way, sheet, &mut way)?;
        // The first line is the subject, which stands above.
        for line in way.split_inclusive(|byte| *byte == b'\n').skip(1) {
            out.write_all(line)?;
        }
    }
    match text::doubts(account, sheet) {
        Some(line) => writeln!(out, "{}", style.paint(Role::Dim, &line)),
        None => Ok(()),
    }
}

/// An address with its names, time, run and bytes.
fn heading(account: &Account, end: &NetworkEnd, style: Style) -> String {
    let command = &account.commands[end.command];
    let address = one_line(&String::from_utf8_lossy(&end.address));
    let names: Vec<&str> = end.names.iter().map(String::as_str).collect();
    let mut text = style.paint(Role::Subject, &address);
    if !names.is_empty() {
        text.push_str(&one_line(&format!(" ({})", names.join(", "))));
    }
    let run = &account.runs[command.run].details.summary.id;
    text.push_str(&format!("  {}, run {run}", when::moment(end.time)));
    if let Some((sent, received)) = end.bytes {
        let (sent, received) = (when::size(sent), when::size(received));
        text.push_str(&format!(", sent {sent}, received {received}"));
    }
    if let Some(program) = &end.program {
        let program = excerpt(&shell::line(program), COLUMNS);
        text.push_str(&format!(", by {}", one_line(&program)));
    }
    text
}
