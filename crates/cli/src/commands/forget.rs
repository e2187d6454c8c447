//! `forget`: removes runs so that no byte of the store tells of them.
//!
//! In: a time, paths and texts. Out: the runs that any of them means are gone from the database,
//! the logs, the deep logs, the journals and the contents. With a text, stored contents that have
//! it are gone, too.
//!
//! Invariant: without consent nothing is removed. Absent: runs that are still being recorded, which
//! stay, and what other programs have stored.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_contents::Contents;
use backstory_deep::DeepLog;
use backstory_files::Digest;
use backstory_store::{AnnotationKind, GraphStore, Home, RunAnnotations, RunRecord, annotations};
use backstory_workflow::paths::absolute;

use super::store::{migrate, open_contents, reclaim};
use super::{Outcome, answer, here};
use crate::args::runs::ForgetArgs;
use crate::consent;
use crate::contents_writer;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain, complain};
use crate::index::Busy;
use crate::text::progress::{Progress, Unit};
use crate::text::words::counted;
use crate::text::{line, shell, when};

/// Bytes that are read at a time.
const BLOCK: usize = 1 << 20;

/// Runs that are listed before the question.
const LISTED: usize = 20;

/// Removes the runs and contents.
pub fn run(args: ForgetArgs, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    contents_writer::bring_up_to_date(&current.home, &mut current.store, Busy::Wait)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    let runs = meant(&current, &args)?;
    let contents = match args.matching.is_empty() {
        true => HashSet::new(),
        false => contents_with(&current.home, &args.matching)?,
    };
    let left = current.home.unfinished().unwrap_or_default().len();
    if left > 0 {
        let those = counted(left, "run is", "runs are");
        complain(&format!(
            "{those} still being recorded and not looked at; end them, then repeat"
        ));
    }
    if runs.is_empty() && contents.is_empty() {
        return Err(Failure::not_found(
            "no finished run is meant; nothing was removed",
        ));
    }
    if args.dry_run || !agreed(&runs, contents.len(), args.yes)? {
        return match args.dry_run {
            true => answer(|out| list(&runs, contents.len(), out)).map(|_| 0),
            false => Ok(1),
        };
    }
    let ids: Vec<&str> = runs.iter().map(|run| run.header.id.as_str()).collect();
    reclaim::reclaim(&mut current, &runs, &contents, false)?;
    annotations::erase(&current.home, &mut current.store, &ids)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    // A database with files of its own is copied, which leaves its free room behind.
    if current.store.is_shared() {
        current.store.compact()?;
    }
    let home = Home::open_to_read(current.home.dir())?;
    drop(current);
    migrate::renew(&home)?;
    if !ids.is_empty() && home.lakes_dir().is_dir() {
        complain(
            "lakes may still have these runs; erase them there: backstory store ship --forget --to LAKE",
        );
    }
    answer(|out| {
        let runs = counted(runs.len(), "run", "runs");
        let contents = match contents.len() {
            0 => String::new(),
            many => format!(" and {}", counted(many, "content", "contents")),
        };
        writeln!(out, "forgot {runs}{contents}")
    })
}

/// The runs that a condition means, the newest first.
fn meant(current: &CurrentStore, args: &ForgetArgs) -> Result<Vec<RunRecord>, Failure> {
    let mut runs = reclaim::own_runs(current)?;
    let mut meant: HashSet<_> = HashSet::new();
    if let Some(seconds) = args.last {
        let since = when::now().saturating_sub(seconds.saturating_mul(1_000_000_000));
        let recent = runs.iter().filter(|run| run.end.ended >= since);
        meant.extend(recent.map(|run| run.key));
    }
    for path in &args.paths {
        let path = absolute(path.as_os_str().as_bytes(), &here());
        let inside = [&path[..], b"/"].concat();
        let is_meant = |name: &[u8]| name == path || name.starts_with(&inside);
        let found = current.store.below(&path, &is_meant)?;
        // A missing path is no such entity.
        let missing = current.store.at_path(&path)?;
        meant.extend(found.into_iter().chain(missing).map(|key| key.run()));
    }
    if !args.matching.is_empty() {
        let progress = Progress::of("searching runs", runs.len() as u64, Unit::Things);
        for run in &runs {
            progress.done.add(1);
            for text in &args.matching {
                if !meant.contains(&run.key) && says(current, run, text.as_bytes())? {
                    meant.insert(run.key);
                }
            }
        }
    }
    runs.retain(|run| meant.contains(&run.key));
    Ok(runs)
}

/// True if the record of a run has the text anywhere.
fn says(current: &CurrentStore, run: &RunRecord, text: &[u8]) -> Result<bool, Failure> {
    let finder = memchr::memmem::Finder::new(text);
    let has = |bytes: &[u8]| finder.find(bytes).is_some();
    let labels = [&run.name, &run.note];
    if labels
        .into_iter()
        .flatten()
        .any(|label| has(label.as_bytes()))
    {
        return Ok(true);
    }
    if let Ok(log) = File::open(current.home.log_path(&run.header.id))
        && stream_has(log, text)?
    {
        return Ok(true);
    }
    if deep_log_says(current, &run.header.id, text) {
        return Ok(true);
    }
    for one in current.store.annotations(&run.header.id)? {
        let value = one.value.as_deref().unwrap_or_default();
        let plain = one.kind != AnnotationKind::Replay;
        if plain && (has(one.key.as_bytes()) || has(value.as_bytes())) {
            return Ok(true);
        }
    }
    for activity in current.store.activities(run.key)? {
        let words = activity.argv.iter().chain(&activity.env_set);
        let places = activity.exec_path.iter().chain([&activity.cwd]);
        if words.chain(places).any(|word| has(word)) {
            return Ok(true);
        }
    }
    for entity in current.store.entities(run.key)? {
        let mut names = std::iter::once(&entity.path).chain(&entity.aliases);
        if names.any(|name| has(name)) {
            return Ok(true);
        }
    }
    let told = current.store.extended(run.key)?;
    Ok(told.iter().any(|(.., payload)| has(payload)))
}

/// True if the deep log of a run has the text. Of a file that is no deep log, the bytes count.
fn deep_log_says(current: &CurrentStore, run: &str, text: &[u8]) -> bool {
    let path = current.home.deep_log_path(run);
    if !path.exists() {
        return false;
    }
    match DeepLog::open(&path) {
        Ok(log) => log.has_text(text),
        Err(_) => File::open(&path).is_ok_and(|file| stream_has(file, text).unwrap_or(false)),
    }
}

/// The stored contents that have one of the texts.
fn contents_with(home: &Home, texts: &[String]) -> Result<HashSet<Digest>, Failure> {
    let mut found = HashSet::new();
    let Some(contents) = open_contents(home)? else {
        return Ok(found);
    };
    let digests = contents.digests()?;
    let progress = Progress::of("searching contents", digests.len() as u64, Unit::Things);
    for digest in digests {
        progress.done.add(1);
        for text in texts {
            if content_has(&contents, &digest, text.as_bytes())? {
                found.insert(digest);
            }
        }
    }
    Ok(found)
}

/// A content that cannot be read counts as one without the text: `store verify` reports it.
fn content_has(contents: &Contents, digest: &Digest, text: &[u8]) -> Result<bool, Failure> {
    match contents.read(digest) {
        Ok(object) => Ok(stream_has(object, text).unwrap_or(false)),
        Err(_) => Ok(false),
    }
}

/// True if the stream has the text, which may lie across blocks.
fn stream_has(mut stream: impl Read, text: &[u8]) -> io::Result<bool> {
    let finder = memchr::memmem::Finder::new(text);
    let mut block = Vec::new();
    loop {
        let kept = block.len().min(text.len().saturating_sub(1));
        block.drain(..block.len() - kept);
        let read = (&mut stream).take(BLOCK as u64).read_to_end(&mut block)?;
        if finder.find(&block).is_some() {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
    }
}

/// Lists the runs.
fn list(runs: &[RunRecord], contents: usize, out: &mut impl Write) -> io::Result<()> {
    for run in runs.iter().take(LISTED) {
        let words = run.header.command.iter().map(|word| &word[..]);
        let command = line::excerpt(&shell::words(words), 60);
        let began = when::moment(run.header.started);
        writeln!(out, "{}  {began}  {command}", run.header.id)?;
    }
    if runs.len() > LISTED {
        writeln!(out, "and {} more", runs.len() - LISTED)?;
    }
    if contents > 0 {
        writeln!(
            out,
            "{} with the text",
            counted(contents, "content", "contents")
        )?;
    }
    Ok(())
}

/// True if the user agrees, or need not be asked.
fn agreed(runs: &[RunRecord], contents: usize, yes: bool) -> Result<bool, Failure> {
    if yes {
        return Ok(true);
    }
    if !consent::can_ask() {
        let runs = counted(runs.len(), "run", "runs");
        return Err(Failure::misuse(format!(
            "nothing was removed: give --yes to remove {runs}, or --dry-run to list them"
        )));
    }
    list(runs, contents, &mut io::stderr())?;
    Ok(consent::ask("Remove them for ever?")?)
}
