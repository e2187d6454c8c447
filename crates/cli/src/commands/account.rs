//! `of` and `uses` at the level of steps: as a screen, as a list, as a script or as JSON.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use backstory_account::{Account, Narrowing, packages};
use backstory_packages::PackageTally;
use backstory_query as query;
use backstory_query::answer::Lineage;
use backstory_query::{Checkout, Globs};
use backstory_store::{EntityKey, Store};
use backstory_workflow::ownership::Ownership;
use backstory_workflow::paths::absolute;
use backstory_workflow::steps::Word;

use super::byte_origins::{FileBytes, UsedBytes};
use super::deciding_files::DecidingFiles;
use super::judged_records::record_fields;
use super::{Outcome, answer, here};
use crate::args::lineage::{LineageArgs, SourceList};
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::json::{self, Fields, Value};
use crate::present_file::ChangedFile;
use crate::text::account::{self as text, AccountTail, RemoteStart, Sheet};
use crate::text::style::Style;
use crate::text::words::Direction;
use crate::version_change::VersionChange;

/// The parts of an answer beside the steps.
pub struct AskedAccount<'a> {
    /// A list of sources instead of the steps.
    pub list: Option<SourceList>,
    /// The number of runs that touched the file, if the lineage has only the newest of them.
    pub all_runs: Option<usize>,
    /// The change inside of the file.
    pub change: Option<&'a VersionChange>,
    /// The inputs whose bytes came into the file.
    pub bytes: Option<&'a FileBytes>,
    /// True if the results that got bytes of the file are of interest.
    pub tells_used_bytes: bool,
    /// The versions that the question means.
    pub versions: &'a [EntityKey],
    /// The change of the file since, if there is one.
    pub changed: Option<&'a ChangedFile>,
}

/// The facts of the byte engine: a line, and the same for programs.
type ByteFacts = (String, Value);

/// Prints the steps of a lineage.
pub fn print(
    current: &CurrentStore,
    lineage: &Lineage,
    args: &LineageArgs,
    asked: AskedAccount<'_>,
    direction: Direction,
) -> Outcome {
    let AskedAccount {
        list,
        all_runs,
        change,
        bytes,
        tells_used_bytes,
        versions,
        changed,
    } = asked;
    let here = here();
    let store = &current.store;
    let (mut account, mut ownership) = account_of(current, lineage, direction, args.possible)?;
    account.narrow(&Narrowing {
        depth: args.depth,
        only: globs(&args.only, &here)?,
        through: globs(&args.through, &here)?,
    });
    let (width, height) = text::screen();
    let sheet = Sheet {
        here: &here,
        style: Style::of_stdout(),
        width,
        height,
        all_runs,
    };
    if let Some(other) = &args.why {
        let other = other.as_os_str().as_bytes();
        return match query::address_of(other) {
            Some(_) => why(&account, other, sheet),
            None => why(&account, &absolute(other, &here), sheet),
        };
    }
    if args.commands {
        return answer(|out| text::script(&account, sheet, out));
    }
    let bytes: Option<ByteFacts> = match bytes {
        Some(bytes) => Some((bytes.line(&account), bytes.json(&account))),
        None => tells_used_bytes
            .then(|| UsedBytes::of_results(current, &account))
            .flatten()
            .map(|bytes| (bytes.line(), bytes.json())),
    };
    let (bytes, byte_value) = bytes.unzip();
    let tally = packages(store, &account, &mut ownership)?;
    let path = args.path.as_deref().filter(|_| args.table.is_none());
    let whose = (&account, &mut ownership);
    let deciding = DecidingFiles::of(store, whose, versions, path, direction)?;
    let git = work_trees(store, &account)?;
    let starts = remote_starts(store, &account)?;
    answer(|out| match list {
        _ if args.json => {
            let beside = (change, byte_value.as_ref(), changed);
            object(&account, &tally, (&git, &deciding), beside, out)
        }
        Some(SourceList::Inputs { files }) => {
            let decided = deciding.listed(sheet);
            text::inputs(&account, (&tally, &decided), files, sheet, out)
        }
        Some(SourceList::Packages) => text::package_list(&tally, sheet, out),
        None => {
            let tail = AccountTail {
                changed: changed.map(|changed| changed.line(args.path_text())),
                change: change.map(VersionChange::line),
                bytes: bytes.clone(),
                deciding: deciding.lines(sheet),
                git: &git,
                starts: &starts,
            };
            text::write(&account, &tally, tail, sheet, out)
        }
    })
}

/// The account of a lineage, and whose its files are.
pub fn account_of(
    current: &CurrentStore,
    lineage: &Lineage,
    direction: Direction,
    possible: bool,
) -> Result<(Account, Ownership), Failure> {
    let toward = match direction {
        Direction::Of => query::Direction::Back,
        Direction::Uses => query::Direction::Forth,
    };
    let store = &current.store;
    let _one_state = store.reading()?;
    let directories = query::projects(store, lineage)?;
    let projects = directories.iter().map(|directory| &**directory);
    let mut ownership = Ownership::indexed(&current.home.packages_path(), projects);
    let account = Account::new(store, lineage, toward, possible, &mut ownership)?;
    Ok((account, ownership))
}

/// The git work trees with sources of an account, or with its subject, as the runs used them. One
/// state is there once.
fn work_trees(store: &dyn Store, account: &Account) -> Result<Vec<Checkout>, Failure> {
    let steps = account.chain.iter().chain(&account.drivers);
    let files: Vec<usize> = steps
        .flat_map(|&at| account.sources(at))
        .chain(account.roots.iter().copied())
        .collect();
    let concerns = |checkout: &Checkout| {
        let has = |file: &usize| {
            let rest = account.files[*file]
                .path
                .strip_prefix(checkout.root.as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b"/"))
        };
        files.iter().any(has)
    };
    let mut found: Vec<Checkout> = Vec::new();
    for run in &account.runs {
        let used = query::checkouts(store, &run.details.summary.id)?;
        for checkout in used.into_iter().filter(concerns) {
            if !found.contains(&checkout) {
                found.push(checkout);
            }
        }
    }
    Ok(found)
}

/// The runs of an account that ssh started on other machines.
fn remote_starts(store: &dyn Store, account: &Account) -> Result<Vec<RemoteStart>, Failure> {
    let mut found = Vec::new();
    for run in &account.runs {
        let summary = &run.details.summary;
        let Some(connection) = &summary.ssh_connection else {
            continue;
        };
        let starter = match query::starter(store, connection)? {
            Some(id) => Some((id.clone(), query::facts(store, &id)?.summary.command)),
            None => None,
        };
        let machine = connection
            .rsplit_once('/')
            .map_or("", |(machine, _)| machine);
        found.push(RemoteStart {
            run: summary.id.clone(),
            machine: machine.to_owned(),
            starter,
        });
    }
    Ok(found)
}

/// Prints the shortest way to a file.
fn why(account: &Account, path: &[u8], sheet: Sheet<'_>) -> Outcome {
    let files = match query::address_of(path) {
        Some(address) => account.connections_with(address),
        None => account.files_at(path),
    };
    match account.way(&files) {
        Some(way) => answer(|out| text::way(account, &way, sheet, out)),
        None => {
            let (from, to) = match account.direction {
                query::Direction::Back => ("is no input of", "of"),
                query::Direction::Forth => ("is no result of", "uses"),
            };
            let root = &account.files[account.roots[0]].path;
            let (subject, other) = (text::name(root, sheet), text::name(path, sheet));
            Err(Failure::not_found(format!(
                "{other} {from} {subject} as far as is recorded; `backstory {to} {subject}` shows what is"
            )))
        }
    }
}

/// Patterns as the user wrote them: a path is meant from the current directory.
fn globs(patterns: &[String], here: &[u8]) -> Result<Option<Globs>, Failure> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let here = String::from_utf8_lossy(here);
    let whole = patterns.iter().map(|pattern| {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        match pattern.contains('/') && !pattern.starts_with('/') && !pattern.starts_with("**") {
            true => format!("{here}/{pattern}"),
            false => pattern.to_owned(),
        }
    });
    Ok(Some(Globs::new(&whole.collect::<Vec<_>>())?))
}

/// Writes the account as one object: the files, the steps between them by index, the packages.
fn object(
    account: &Account,
    tally: &PackageTally,
    (git, deciding): (&[Checkout], &DecidingFiles),
    (change, bytes, changed): (Option<&VersionChange>, Option<&Value>, Option<&ChangedFile>),
    out: &mut impl Write,
) -> io::Result<()> {
    let chain = account.chain.iter().chain(&account.drivers);
    let files: BTreeSet<usize> = chain
        .flat_map(|&at| {
            let command = &account.commands[at];
            command.reads.iter().chain(&command.writes).copied()
        })
        .chain(account.roots.iter().copied())
        .collect();
    let files: Vec<usize> = files.into_iter().collect();
    let index = |file: &usize| files.binary_search(file).unwrap_or_default();
    let roots: Vec<String> = account
        .roots
        .iter()
        .map(|root| index(root).to_string())
        .collect();
    write!(
        out,
        "{{\n\"roots\": [{}],\n\"cut\": {},\n",
        roots.join(", "),
        account.cut
    )?;
    write!(out, "\"files\": ")?;
    json::objects(out, &files, |&file, fields| {
        let node = &account.files[file];
        fields.bytes("path", Some(&node.path));
        fields.number("id", node.entity);
        fields.bool("source", account.is_source(file));
        fields.bool("own", node.own);
        fields.bool("by_content", node.by_content);
    })?;
    write!(out, ",\n\"steps\": ")?;
    json::objects(out, &account.chain, |&at, fields| {
        step(account, at, &index, fields);
        fields.bool("own", account.concerns(at));
    })?;
    write!(out, ",\n\"started_by\": ")?;
    json::objects(out, &account.drivers, |&at, fields| {
        step(account, at, &index, fields)
    })?;
    write!(out, ",\n\"packages\": ")?;
    json::objects(out, &tally.packages, |count, fields| {
        fields.bytes("provider", Some(&count.package.provider));
        fields.bytes("name", Some(&count.package.name));
        fields.bytes("version", Some(&count.package.version));
        fields.number("files", count.files);
    })?;
    write!(out, ",\n\"runs\": ")?;
    json::objects(out, &account.runs, |run, fields| {
        let summary = &run.details.summary;
        fields.bytes("run", Some(&summary.id));
        fields.bytes("host", Some(&summary.host));
        fields.bytes("ssh_connection", summary.ssh_connection.as_ref());
        fields.list("command", &summary.command);
        fields.bool("complete", summary.complete);
        fields.list("incomplete_because", &summary.incomplete_because);
    })?;
    write!(out, ",\n\"git\": ")?;
    json::objects(out, git, |checkout, fields| {
        fields.bytes("root", Some(&checkout.root));
        fields.bytes("commit", checkout.commit.as_ref());
        fields.bytes("unread", checkout.unread.as_ref());
        fields.bytes("branch", checkout.branch.as_ref());
        match &checkout.changed {
            Some(changed) => fields.list("changed", changed),
            None => fields.null("changed"),
        }
    })?;
    write!(out, ",\n\"influence\": ")?;
    deciding.json().write(out)?;
    if let Some(change) = change {
        write!(out, ",\n\"inside\": ")?;
        change.json().write(out)?;
    }
    if let Some(bytes) = bytes {
        write!(out, ",\n\"bytes\": ")?;
        bytes.write(out)?;
    }
    if let Some(changed) = changed {
        write!(out, ",\n\"changed_since\": ")?;
        changed.json().write(out)?;
    }
    writeln!(out, ",\n\"uncounted\": {}\n}}", account.uncounted)
}

fn step(account: &Account, at: usize, index: &dyn Fn(&usize) -> usize, fields: &mut Fields<'_>) {
    let command = &account.commands[at];
    fields.bytes("run", Some(&account.runs[command.run].details.summary.id));
    fields.bytes("command", Some(command.line.command()));
    let program = command.line.words.iter().find_map(|word| match word {
        Word::Program(name) => Some(name),
        _ => None,
    });
    fields.bytes("program", program);
    fields.bytes("cwd", Some(&command.line.cwd));
    fields.time("start", command.start);
    fields.time("end", command.end);
    fields.number("processes", command.programs.len());
    fields.bool("part", command.is_part);
    let attributes = command.attributes.iter();
    fields.map(
        "attributes",
        attributes.map(|(name, value)| (&**name, &**value)),
    );
    let records = command.records.iter().map(record_fields).collect();
    fields.value("records", &Value::Array(records));
    fields.numbers("inputs", command.reads.iter().map(index));
    fields.numbers("outputs", command.writes.iter().map(index));
}
