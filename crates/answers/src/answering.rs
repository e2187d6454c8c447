//! Answers one question.

use std::path::{Path, PathBuf};

use backstory_query as query;
use backstory_query::answer::{Lineage, Scope};
use backstory_query::subject as versions;
use backstory_query::{Direction, RunFilter, TextPattern};
use backstory_replay::diff::{self, DiffSubject};
use backstory_store::EntityKey;

use crate::columns::{AnswerTable, Columns};
use crate::failure::Failure;
use crate::opened_store::{ContentPlace, OpenedStore};
use crate::question::{FileChoice, LineageScope, PathWord, RunConditions, StoreQuestion};
use crate::reply::{AnswerFacts, Answered};
use crate::{difference_table, lineage_tables, run_tables, status_table, step_tables};

/// Answers a question about the store in this directory.
///
/// # Errors
///
/// The subject does not exist, the question is wrong, or the store cannot be read. The line is that
/// of the command line.
pub fn answer(directory: &Path, question: &StoreQuestion) -> Result<Answered, Failure> {
    let open = || OpenedStore::open(directory);
    match question {
        StoreQuestion::Directory => {
            let directory = PathWord(directory.to_owned());
            Ok(Answered::facts(AnswerFacts::Directory(directory)))
        }
        StoreQuestion::Recording => {
            let recording = open()?.recording()?;
            Ok(Answered::facts(AnswerFacts::Runs(recording)))
        }
        StoreQuestion::IsBehind => Ok(Answered::facts(AnswerFacts::Truth(is_behind(&open()?)?))),
        StoreQuestion::Resolve(wanted) => {
            let run = open()?.run(wanted.as_deref())?;
            Ok(Answered::facts(AnswerFacts::Runs(vec![run])))
        }
        StoreQuestion::Runs(conditions) => {
            let runs = query::runs_where(&open()?.store, &filter(conditions)?)?;
            Ok(Answered::table(run_tables::runs(&runs)?))
        }
        StoreQuestion::Summary(run) => {
            let opened = open()?;
            let details = query::details(&opened.store, &opened.run(Some(run))?)?;
            Ok(Answered::table(run_tables::runs(&[details.summary])?))
        }
        StoreQuestion::Files(run) => {
            let files = query::files(&open()?.store, run)?;
            Ok(Answered::table(run_tables::files(&files)?))
        }
        StoreQuestion::Processes(run) => {
            let lines = query::processes(&open()?.store, run)?;
            Ok(Answered::table(run_tables::processes(&lines)?))
        }
        StoreQuestion::Edges(run) => Ok(Answered::table(run_tables::edges(&open()?.store, run)?)),
        StoreQuestion::Lineage(choice, scope) => versions_behind(&open()?, choice, scope),
        StoreQuestion::Steps(found, scope) => {
            let opened = open()?;
            let found: Vec<EntityKey> = found.iter().map(|&version| EntityKey(version)).collect();
            let (lineage, direction) = lineage(&opened, &found, scope)?;
            step_tables::steps(&opened, &lineage, direction)
        }
        StoreQuestion::Diff(a, b) => {
            let opened = open()?;
            let (a, b) = (side(&opened, &a.0)?, side(&opened, &b.0)?);
            difference_table::answer(&opened, &diff::diff(&opened.store, &a, &b)?)
        }
        StoreQuestion::Contents(choice) => Ok(Answered::table(content(&open()?, choice)?)),
        StoreQuestion::Status(paths) => {
            let paths: Vec<PathBuf> = paths.iter().map(|path| path.0.clone()).collect();
            Ok(Answered::table(status_table::table(
                &open()?.store,
                &paths,
            )?))
        }
    }
}

/// The lineage of a file, as tables of versions, processes and links.
fn versions_behind(
    opened: &OpenedStore,
    choice: &FileChoice,
    scope: &LineageScope,
) -> Result<Answered, Failure> {
    let found = opened.versions(choice, !scope.back)?;
    let (lineage, _) = lineage(opened, &found, scope)?;
    let facts = AnswerFacts::Lineage {
        roots: lineage.roots,
        cut: lineage.cut,
        versions: found.iter().map(|version| version.0).collect(),
    };
    let tables = vec![
        lineage_tables::nodes(&lineage.nodes)?,
        lineage_tables::links(&lineage.links)?,
    ];
    Ok(Answered { facts, tables })
}

fn is_behind(opened: &OpenedStore) -> Result<bool, Failure> {
    let pending = opened.home.pending(&opened.store)?;
    let bad = |run: &String| {
        let mut marked = opened.home.log_path(run).into_os_string();
        marked.push(".bad");
        PathBuf::from(marked).exists()
    };
    Ok(!pending.iter().all(bad) || !opened.home.unfinished()?.is_empty())
}

fn filter(conditions: &RunConditions) -> Result<RunFilter, Failure> {
    let pattern = |text: &Option<String>| -> Result<Option<TextPattern>, Failure> {
        Ok(text.as_deref().map(TextPattern::new).transpose()?)
    };
    Ok(RunFilter {
        since: conditions.since,
        until: conditions.until,
        failed: conditions.failed,
        name: pattern(&conditions.name)?,
        command: pattern(&conditions.command)?,
        most: conditions.limit,
        ..RunFilter::default()
    })
}

fn lineage(
    opened: &OpenedStore,
    found: &[EntityKey],
    wanted: &LineageScope,
) -> Result<(Lineage, Direction), Failure> {
    let within = wanted.within.as_deref();
    let scope = Scope {
        possible: wanted.possible,
        lookups: wanted.lookups,
        depth: wanted.depth,
        exclude: wanted.exclude.clone(),
        run: within.map(|run| opened.run(Some(run))).transpose()?,
        ..Scope::default()
    };
    let (lineage, direction) = match wanted.back {
        true => (
            query::ancestry_of(&opened.store, found, &scope)?,
            Direction::Back,
        ),
        false => (
            query::influence_of(&opened.store, found, &scope)?,
            Direction::Forth,
        ),
    };
    let lineage = query::keep_copies_apart(&opened.store, lineage, direction)?;
    Ok((lineage, direction))
}

/// The content of a version: a table of one cell.
fn content(opened: &OpenedStore, choice: &FileChoice) -> Result<AnswerTable, Failure> {
    let bytes = match opened.content(choice)? {
        ContentPlace::Version(version) => opened.read(version)?,
        ContentPlace::Present(path) => std::fs::read(&path).map_err(|error| {
            Failure::not_found(format!("cannot read {}: {error}", path.display()))
        })?,
    };
    let mut columns = Columns::default();
    columns.cell("content", &bytes);
    Ok(columns.table())
}

/// A side of a comparison: a run, `PATH@RUN`, or a path.
fn side(opened: &OpenedStore, wanted: &Path) -> Result<DiffSubject, Failure> {
    let name = wanted.to_str().filter(|name| !name.contains('/'));
    let not_a_run = match name.map(|name| opened.run(Some(name))) {
        Some(Ok(run)) => return Ok(DiffSubject::Run(run)),
        Some(Err(failure)) => Some(failure),
        None => None,
    };
    let choice = FileChoice {
        path: PathWord(wanted.to_owned()),
        run: None,
        at: None,
    };
    let (path, run) = opened.notation(&choice)?;
    match (
        versions::newest(&opened.store, &path, run.as_deref()),
        not_a_run,
    ) {
        (Ok(version), _) => Ok(DiffSubject::Version(version)),
        (Err(_), Some(failure)) if run.is_none() && !path.exists() => Err(failure),
        (Err(error), _) => Err(error.into()),
    }
}
