//! The four tables of a view.

use backstory_query::answer::Flow;
use backstory_vocabulary::Word;
use backstory_workflow::shell;

use super::column::{Column, Columns};
use crate::View;
use crate::formats::{notation, word};
use crate::view::Endpoint;

/// A column of names, and a column with the bytes of the names that are not UTF-8.
fn names<'p>(
    name: &'static str,
    bytes: &'static str,
    values: impl Iterator<Item = &'p [u8]>,
) -> Columns {
    let (mut text, mut odd) = (Vec::new(), Vec::new());
    for value in values {
        text.push(Some(notation::text(value)));
        odd.push(std::str::from_utf8(value).is_err().then(|| value.to_vec()));
    }
    vec![(name, Column::Text(text)), (bytes, Column::Bytes(odd))]
}

/// The runs of a view.
pub fn runs(view: &View) -> Columns {
    let all = || view.runs.iter().map(|run| &run.summary);
    let mut columns = vec![
        ("run", Column::of_text(all().map(|run| Some(&run.id)))),
        ("name", Column::of_text(all().map(|run| run.name.as_ref()))),
        (
            "command",
            Column::of_text(all().map(|run| Some(shell::line(&run.command)))),
        ),
    ];
    columns.extend(names("cwd", "cwd_bytes", all().map(|run| &*run.cwd)));
    columns.extend([
        (
            "started",
            Column::Moment(all().map(|run| Some(run.started)).collect()),
        ),
        (
            "ended",
            Column::Moment(all().map(|run| run.ended).collect()),
        ),
        ("exit", Column::of_numbers(all().map(|run| run.exit))),
        ("signal", Column::of_numbers(all().map(|run| run.signal))),
        (
            "complete",
            Column::Truth(all().map(|run| Some(run.complete)).collect()),
        ),
    ]);
    columns
}

/// The activities of a view.
pub fn activities(view: &View) -> Columns {
    let all = || view.activities.iter();
    let run = |at: usize| view.runs[at].summary.id.clone();
    let mut columns = vec![
        (
            "activity",
            Column::of_text(all().map(|activity| Some(&activity.id))),
        ),
        (
            "run",
            Column::of_text(all().map(|activity| Some(run(activity.run)))),
        ),
        (
            "parent",
            Column::of_text(
                all().map(|activity| activity.parent.map(|parent| &view.activities[parent].id)),
            ),
        ),
        (
            "command",
            Column::of_text(all().map(|activity| Some(&activity.label))),
        ),
    ];
    columns.extend(names(
        "cwd",
        "cwd_bytes",
        all().map(|activity| &*activity.cwd),
    ));
    columns.extend([
        (
            "pid",
            Column::of_numbers(all().map(|activity| Some(activity.pid))),
        ),
        (
            "epoch",
            Column::of_numbers(all().map(|activity| Some(activity.epoch))),
        ),
        (
            "exit",
            Column::of_numbers(all().map(|activity| activity.exit)),
        ),
        (
            "signal",
            Column::of_numbers(all().map(|activity| activity.signal)),
        ),
        (
            "started",
            Column::Moment(
                all()
                    .map(|activity| Some(activity.interval.start))
                    .collect(),
            ),
        ),
        (
            "ended",
            Column::Moment(all().map(|activity| Some(activity.interval.end)).collect()),
        ),
    ]);
    columns
}

/// The entities of a view.
pub fn entities(view: &View) -> Columns {
    let all = || view.entities.iter();
    let digest = |entity: &crate::view::ViewEntity| {
        view.contents
            .of(entity.run, &entity.path, entity.version)?
            .digest
    };
    let mut columns = vec![
        (
            "entity",
            Column::of_text(all().map(|entity| Some(&entity.id))),
        ),
        (
            "run",
            Column::of_text(all().map(|entity| Some(&view.runs[entity.run].summary.id))),
        ),
        (
            "kind",
            Column::of_text(all().map(|entity| Some(entity.kind.word()))),
        ),
    ];
    columns.extend(names(
        "path",
        "path_bytes",
        all().map(|entity| &*entity.path),
    ));
    columns.extend([
        (
            "version",
            Column::of_numbers(all().map(|entity| Some(entity.version))),
        ),
        (
            "last",
            Column::Truth(all().map(|entity| Some(entity.last)).collect()),
        ),
        (
            "size",
            Column::of_numbers(all().map(|entity| entity.ident.map(|ident| ident.size))),
        ),
        (
            "modified",
            Column::Moment(
                all()
                    .map(|entity| entity.ident.map(|ident| ident.mtime))
                    .collect(),
            ),
        ),
        ("blake3", Column::of_text(all().map(digest))),
    ]);
    columns
}

/// The links of a view.
pub fn edges(view: &View) -> Columns {
    let all = || view.links.iter();
    let id = |end: Endpoint| match end {
        Endpoint::Activity(at) => view.activities[at].id.clone(),
        Endpoint::Entity(at) => view.entities[at].id.clone(),
    };
    let sort = |flow: Flow| match flow {
        Flow::Used(_) => "used",
        Flow::Generated(_) => "generated",
        Flow::Derived => "derived",
        Flow::Same | Flow::Alike => "same",
        Flow::Informed(_) => "informed",
    };
    vec![
        (
            "source",
            Column::of_text(all().map(|link| Some(id(link.from)))),
        ),
        (
            "target",
            Column::of_text(all().map(|link| Some(id(link.to)))),
        ),
        (
            "edge",
            Column::of_text(all().map(|link| Some(sort(link.flow)))),
        ),
        (
            "how",
            Column::of_text(all().map(|link| Some(word(link.flow)))),
        ),
        (
            "certainty",
            Column::of_text(all().map(|link| Some(link.certainty.word()))),
        ),
        (
            "bytes",
            Column::of_text(all().map(|link| link.bytes.map(|bytes| bytes.word()))),
        ),
        (
            "began",
            Column::Moment(all().map(|link| Some(link.interval.start)).collect()),
        ),
        (
            "ended",
            Column::Moment(all().map(|link| Some(link.interval.end)).collect()),
        ),
    ]
}
