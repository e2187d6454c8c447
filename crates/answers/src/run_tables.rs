//! Runs, and the files, processes and edges of one run, as tables. The columns have the names of
//! the fields of `backstory log`, `files` and `processes` with `--json`.

use backstory_query as query;
use backstory_query::answer::{FileUse, ProcessLine, RunSummary};
use backstory_store::{ActivityKey, EntityKey, Store};
use backstory_vocabulary::Word;

use crate::columns::{AnswerTable, Columns};
use crate::failure::Failure;

/// Runs.
pub fn runs(runs: &[RunSummary]) -> Result<AnswerTable, Failure> {
    let mut columns = Columns::default();
    let all = || runs.iter();
    columns.text("run", all().map(|run| Some(&run.id)));
    columns.text("name", all().map(|run| run.name.as_ref()));
    columns.text("note", all().map(|run| run.note.as_ref()));
    columns.text("repeats", all().map(|run| run.repeats.as_ref()));
    columns.lists("command", all().map(|run| &run.command));
    columns.text("cwd", all().map(|run| Some(&run.cwd)));
    columns.times("started", all().map(|run| Some(run.started)));
    columns.times("ended", all().map(|run| run.ended));
    let status = |run: &RunSummary| run.exit.or(run.signal.map(|signal| 128 + signal));
    columns.optional::<i32>("exit", all().map(status));
    columns.optional::<i32>("signal", all().map(|run| run.signal));
    let complete = |run: &RunSummary| (!run.running).then_some(run.complete);
    columns.bools("complete", all().map(complete));
    columns.numbers::<u64>("lost", all().map(|run| run.lost));
    columns.lists(
        "incomplete_because",
        all().map(|run| &run.incomplete_because),
    );
    columns.numbers::<u64>("processes", all().map(|run| run.processes));
    columns.numbers::<u64>("files_read", all().map(|run| run.files_read));
    columns.numbers::<u64>("files_written", all().map(|run| run.files_written));
    columns.labels("host", all().map(|run| Some(&run.host)));
    columns.bools("running", all().map(|run| Some(run.running)));
    let tags = |run: &RunSummary| -> Vec<String> {
        let tags = run.tags.iter();
        tags.map(|(key, value)| format!("{key}={value}")).collect()
    };
    columns.lists("tags", all().map(tags));
    Ok(columns.table())
}

/// The files of a run.
pub fn files(files: &[FileUse]) -> Result<AnswerTable, Failure> {
    let mut columns = Columns::default();
    let all = || files.iter();
    columns.paths("path", all().map(|file| Some(&file.path)));
    let words = |file: &FileUse| file.access.iter().map(|access| access.word()).collect();
    columns.lists(
        "access",
        all().map(words as fn(&FileUse) -> Vec<&'static str>),
    );
    columns.labels("via", all().map(|file| Some(file.via.word())));
    columns.labels("certainty", all().map(|file| Some(file.certainty.word())));
    let size = |file: &FileUse| file.ident.map(|ident| ident.size);
    columns.optional::<i64>("size", all().map(size));
    columns.times("last_used", all().map(|file| Some(file.last)));
    Ok(columns.table())
}

/// The exec epochs of a run.
pub fn processes(lines: &[ProcessLine]) -> Result<AnswerTable, Failure> {
    let mut columns = Columns::default();
    let all = || lines.iter();
    let activities = || lines.iter().map(|line| &line.activity);
    columns.numbers::<u64>("id", all().map(|line| line.id));
    columns.optional::<u64>("parent_id", all().map(|line| line.parent_id));
    columns.numbers::<u32>("pid", activities().map(|one| one.pid));
    columns.numbers::<u32>("epoch", activities().map(|one| one.epoch));
    columns.optional::<u32>("parent", all().map(|line| line.parent_pid));
    columns.text("exec_path", activities().map(|one| one.exec_path.as_ref()));
    columns.lists("argv", activities().map(|one| &one.argv));
    columns.text("cwd", activities().map(|one| Some(&one.cwd)));
    columns.lists("env_set", activities().map(|one| &one.env_set));
    columns.lists("env_unset", activities().map(|one| &one.env_unset));
    columns.optional::<i32>("exit", activities().map(|one| one.exit));
    columns.optional::<i32>("signal", activities().map(|one| one.signal));
    columns.bools("execed", activities().map(|one| Some(one.execed)));
    columns.times("start", activities().map(|one| Some(one.interval.start)));
    columns.times("end", activities().map(|one| Some(one.interval.end)));
    columns.labels("via", activities().map(|one| Some(one.via.word())));
    columns.bools("marked", all().map(|line| Some(line.marked)));
    columns.bools(
        "lookups_known",
        activities().map(|one| Some(one.lookups_known)),
    );
    Ok(columns.table())
}

/// An edge of a run, with the path of its entity.
struct RunEdge<'e> {
    process: u64,
    entity: u64,
    path: &'e [u8],
    version: u32,
    edge: backstory_graph::model::Edge,
}

/// The edges between the processes of a run and the versions of its files.
pub fn edges(store: &dyn Store, run: &str) -> Result<AnswerTable, Failure> {
    let _one_state = store.reading()?;
    let record = store
        .run(run)?
        .ok_or_else(|| query::Error::NoRun(run.to_owned()))?;
    let (key, header) = (record.key, record.header);
    let entities = store.entities(key)?;
    let mut found = Vec::new();
    for activity in store.activities(key)? {
        let process = ActivityKey::new(key, activity.id);
        for mut edge in store.stream(process)?.edges {
            edge.via = header.observer(edge.via);
            let Some(entity) = entities.get(edge.entity.0 as usize) else {
                continue;
            };
            found.push(RunEdge {
                process: process.0,
                entity: EntityKey::new(key, edge.entity).0,
                path: &entity.path,
                version: entity.version,
                edge,
            });
        }
    }
    let mut columns = Columns::default();
    let all = || found.iter();
    columns.numbers::<u64>("process", all().map(|one| one.process));
    columns.numbers::<u64>("entity", all().map(|one| one.entity));
    columns.paths("path", all().map(|one| Some(one.path)));
    columns.numbers::<u32>("version", all().map(|one| one.version));
    columns.labels("how", all().map(|one| Some(one.edge.relation.words().word)));
    columns.labels(
        "certainty",
        all().map(|one| Some(one.edge.certainty.word())),
    );
    columns.labels("via", all().map(|one| Some(one.edge.via.word())));
    columns.times("start", all().map(|one| Some(one.edge.interval.start)));
    columns.times("end", all().map(|one| Some(one.edge.interval.end)));
    Ok(columns.table())
}
