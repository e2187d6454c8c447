//! `pipeline show`: the sources, the filters and the stores on one screen.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use backstory_pipeline::Filter;
use backstory_pipeline::filter::{Action, PluginProgram};
use backstory_store::{Home, StoreEngine, records_newest_first};
use backstory_vocabulary::Word;

use super::{Outcome, answer};
use crate::args::pipeline::PipelineShowArgs;
use crate::current_store::CurrentStore;
use crate::delivery;
use crate::error::{Failure, complain, one_line};
use crate::json::{self, Value};
use crate::pipeline_file::{FurtherStore, PipelineFiles};
use crate::text::style::{Role, Style};
use crate::text::words::counted;

/// The sources of this program: the word of a run's header, and the command that uses it.
const SOURCES: [(&str, &str, &str); 7] = [
    ("record", "commands and shells", "record, shell, init"),
    ("import", "logs of other tools", "import"),
    ("mount", "a directory at a mount point", "mount"),
    ("filesystem", "a whole file system", "watch --filesystem"),
    ("postgres", "a PostgreSQL database", "watch postgres"),
    ("mariadb", "a MariaDB database", "watch mariadb"),
    (
        "marks",
        "statements of programs, in all of the above",
        "emit, libbackstory",
    ),
];

/// A further store and its state.
struct ShownStore<'f> {
    further: &'f FurtherStore,
    engine: Option<&'static str>,
    pending: usize,
    failure: Option<String>,
}

/// Prints the pipeline.
pub fn run(args: &PipelineShowArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let files = PipelineFiles::load(&current.home);
    let mut mistakes = files.warnings.clone();
    if let Some(pipeline) = &files.pipeline {
        mistakes.extend(pipeline.mistakes_in_expressions());
    }
    mistakes.iter().for_each(|mistake| complain(mistake));
    let runs = runs_by_source(&current)?;
    let stores: Vec<ShownStore<'_>> = files
        .stores
        .iter()
        .map(|further| shown(&current, further))
        .collect::<Result<_, _>>()?;
    let engine = StoreEngine::of(&current.home)?.word();
    answer(|out| match args.json {
        true => json::object(out, fields(&current, &files, &runs, &stores, &mistakes)),
        false => text(&current, engine, &files, &runs, &stores, out),
    })?;
    Ok(u8::from(!mistakes.is_empty()))
}

/// The number of runs that each source recorded.
fn runs_by_source(current: &CurrentStore) -> Result<BTreeMap<String, usize>, Failure> {
    let mut runs = BTreeMap::new();
    for record in records_newest_first(&*current.store)? {
        let header = record?.header;
        let source = match (&header.imported, header.source) {
            (Some(_), _) => "import".to_owned(),
            (None, Some(source)) => source,
            (None, None) => "record".to_owned(),
        };
        *runs.entry(source).or_default() += 1;
    }
    Ok(runs)
}

fn shown<'f>(current: &CurrentStore, further: &'f FurtherStore) -> Result<ShownStore<'f>, Failure> {
    let home = Home::open_to_read(&further.directory);
    let engine = home.and_then(|home| StoreEngine::of(&home)).ok();
    Ok(ShownStore {
        further,
        engine: engine.map(StoreEngine::word),
        pending: delivery::pending(&current.home, &*current.store, further)?.len(),
        failure: delivery::last_failure(&current.home, further),
    })
}

/// The condition and the parameters of a filter, as in the configuration.
fn condition(filter: &Filter) -> String {
    let condition = &filter.condition;
    let mut parts = Vec::new();
    match &filter.action {
        Action::Redact(Some(text)) => parts.push(format!("text {text}")),
        Action::Rename(text, to) | Action::Deduplicate(Some((text, to))) => {
            parts.push(format!("text {text} to {}", String::from_utf8_lossy(to)));
        }
        Action::Sample(keep) => parts.push(format!("keep {keep}")),
        Action::Plugin(PluginProgram::Command(command)) => parts.push(command.join(" ")),
        Action::Plugin(PluginProgram::Component(path)) => parts.push(path.display().to_string()),
        _ => {}
    }
    let kinds: Vec<&str> = condition.kinds.iter().map(|kind| kind.word()).collect();
    let relations = condition.relations.iter();
    let relations: Vec<&str> = relations.map(|one| one.words().word).collect();
    let lists = [
        (
            "path",
            condition
                .path
                .as_ref()
                .map(|globs| globs.patterns().join(" ")),
        ),
        ("kind", (!kinds.is_empty()).then(|| kinds.join(" "))),
        (
            "program",
            condition
                .program
                .as_ref()
                .map(|globs| globs.patterns().join(" ")),
        ),
        (
            "relation",
            (!relations.is_empty()).then(|| relations.join(" ")),
        ),
        (
            "when",
            condition.expression.as_ref().map(|one| one.text.clone()),
        ),
    ];
    let given = lists
        .into_iter()
        .filter_map(|(key, value)| Some(format!("{key} {}", value?)));
    parts.extend(given);
    parts.join(", ")
}

fn text(
    current: &CurrentStore,
    engine: &str,
    files: &PipelineFiles,
    runs: &BTreeMap<String, usize>,
    stores: &[ShownStore<'_>],
    out: &mut impl Write,
) -> io::Result<()> {
    let style = Style::of_stdout();
    let title = |text: &str| style.paint(Role::Dim, text);
    writeln!(out, "{}", title("sources"))?;
    for (word, what, commands) in SOURCES {
        let recorded = runs
            .get(word)
            .map_or_else(String::new, |runs| counted(*runs, "run", "runs"));
        writeln!(out, "  {word:<11} {what:<44} {recorded:>9}  {commands}")?;
    }
    writeln!(out, "{}", title("filters, when a run enters the store"))?;
    if files.filters().is_empty() {
        writeln!(out, "  no filter; `backstory pipeline add` adds one")?;
    }
    for (number, filter) in (1..).zip(files.filters()) {
        let state = if filter.mistake.is_some() {
            "  has a mistake"
        } else {
            ""
        };
        let (name, action) = (one_line(&filter.name), filter.action.word());
        let condition = one_line(&condition(filter));
        writeln!(
            out,
            "  {number} {name:<16} {action:<11} on {} {condition}{state}",
            filter.subject
        )?;
        let failure = filter.failure.word();
        writeln!(
            out,
            "    {}",
            title(&format!("{}, fails {failure}", filter.defined))
        )?;
    }
    writeln!(out, "{}", title("stores"))?;
    let all = runs.values().sum::<usize>();
    let directory = current.home.dir().display();
    writeln!(
        out,
        "  {:<11} {directory}, {}",
        engine,
        counted(all, "run", "runs")
    )?;
    for store in stores {
        let directory = store.further.directory.display();
        let pending = match store.pending {
            0 => "all runs delivered".to_owned(),
            runs => format!("{} to deliver", counted(runs, "run", "runs")),
        };
        writeln!(
            out,
            "  {:<11} {directory}, {pending}",
            store.engine.unwrap_or("?")
        )?;
        if let Some(failure) = &store.failure {
            writeln!(out, "    {}", one_line(failure))?;
        }
    }
    Ok(())
}

fn fields(
    current: &CurrentStore,
    files: &PipelineFiles,
    runs: &BTreeMap<String, usize>,
    stores: &[ShownStore<'_>],
    mistakes: &[String],
) -> Vec<(&'static str, Value)> {
    let sources = SOURCES.iter().map(|(word, _, _)| {
        Value::Object(vec![
            ("name", (*word).into()),
            ("runs", runs.get(*word).copied().unwrap_or(0).into()),
        ])
    });
    let filters = files.filters().iter().map(|filter| {
        Value::Object(vec![
            ("name", (&filter.name).into()),
            ("action", filter.action.word().into()),
            ("on", filter.subject.word().into()),
            ("condition", condition(filter).as_str().into()),
            ("failure", filter.failure.word().into()),
            ("defined", (&filter.defined).into()),
            ("mistake", filter.mistake.as_ref().into()),
        ])
    });
    let further = stores.iter().map(|store| {
        Value::Object(vec![
            ("name", (&store.further.name).into()),
            (
                "directory",
                store
                    .further
                    .directory
                    .display()
                    .to_string()
                    .as_str()
                    .into(),
            ),
            ("engine", store.engine.into()),
            ("pending", store.pending.into()),
            ("failure", store.failure.as_ref().into()),
        ])
    });
    let paths = files.files.iter().map(|path| path.display().to_string());
    vec![
        (
            "files",
            Value::Array(paths.map(|path| path.as_str().into()).collect()),
        ),
        ("sources", Value::Array(sources.collect())),
        ("filters", Value::Array(filters.collect())),
        (
            "store",
            current.home.dir().display().to_string().as_str().into(),
        ),
        ("stores", Value::Array(further.collect())),
        ("mistakes", Value::array(mistakes)),
    ]
}
