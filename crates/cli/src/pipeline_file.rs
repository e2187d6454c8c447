//! The filters and further stores of `config.toml`: the user's file, and the one in the store.
//!
//! In: `[[filter]]` and `[[store]]` of both files, the user's first. Out: the pipeline, and one
//! warning for each mistake, with line and column. A missing file is no error.
//!
//! A store may come from elsewhere. So its file starts no program, and delivers nowhere.
//!
//! Invariant: a mistake never makes a filter that redacts pass a text. If such a filter cannot be
//! read, it redacts all texts.

use backstory_ordering::SmallSort;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use backstory_files::regular;
use backstory_pipeline::configuration::{self, Mistake, Owner, position};
use backstory_pipeline::filter::{Action, Condition, FailureMode, Filter, Subject};
use backstory_pipeline::{Pipeline, PipelineReport};
use backstory_store::Home;
use toml::de::{DeTable, DeValue};

use crate::tool_file::in_configuration;

/// The name of both files.
pub const FILE: &str = "config.toml";

/// A store that gets every run, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FurtherStore {
    /// Its name in messages.
    pub name: String,
    /// Its directory, which names its engine.
    pub directory: PathBuf,
    /// File and line of its definition.
    pub defined: String,
}

/// Both files together.
#[derive(Debug, Default)]
pub struct PipelineFiles {
    /// The files that exist.
    pub files: Vec<PathBuf>,
    /// The filters. `None` without filters.
    pub pipeline: Option<Pipeline>,
    /// The further stores.
    pub stores: Vec<FurtherStore>,
    /// The mistakes, each one line that begins with `PATH:LINE:COLUMN:`.
    pub warnings: Vec<String>,
}

/// The files in which filters can be, the user's first.
pub fn paths(home: &Home) -> Vec<(PathBuf, Owner)> {
    let user = in_configuration(FILE).map(|path| (path, Owner::User));
    let store = (home.dir().join(FILE), Owner::Store);
    user.into_iter().chain([store]).collect()
}

impl PipelineFiles {
    /// Reads both files.
    pub fn load(home: &Home) -> PipelineFiles {
        let mut all = PipelineFiles::default();
        let mut filters = Vec::new();
        for (path, owner) in paths(home) {
            let mut text = String::new();
            match regular::open(&path).and_then(|mut file| file.read_to_string(&mut text)) {
                Ok(_) => {
                    filters.extend(all.add(&text, &path, owner));
                    all.files.push(path);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    // The file can have had a filter that redacts.
                    let why = format!("{}: {error}", path.display());
                    filters.push(unreadable(&path, &why));
                    all.warnings.push(why);
                    all.files.push(path);
                }
            }
        }
        all.pipeline = Pipeline::new(filters);
        all
    }

    /// Reads the text of one file.
    pub fn parse(text: &str, path: &Path, owner: Owner) -> PipelineFiles {
        let mut all = PipelineFiles::default();
        let filters = all.add(text, path, owner);
        all.pipeline = Pipeline::new(filters);
        all
    }

    fn add(&mut self, text: &str, path: &Path, owner: Owner) -> Vec<Filter> {
        let mut mistakes = Vec::new();
        let mut filters = Vec::new();
        match DeTable::parse(text) {
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                let what = format!("{}; the file is ignored", error.message());
                mistakes.push(Mistake { at, what });
            }
            Ok(file) => {
                if let Some(value) = file.get_ref().get("filter") {
                    let (found, wrong) = configuration::filters(value, text, path, owner);
                    filters = found;
                    mistakes.extend(wrong);
                }
                let store = file.get_ref().get("store");
                if let Some(value) = store.filter(|_| owner == Owner::Store) {
                    let what = "further stores stand in the user's own config.toml, not in that of a store";
                    let (at, what) = (value.span().start, what.to_owned());
                    mistakes.push(Mistake { at, what });
                } else if let Some(value) = store {
                    self.add_stores(
                        value.get_ref(),
                        value.span().start,
                        text,
                        path,
                        &mut mistakes,
                    );
                }
            }
        }
        mistakes.sort_small_by_key(|mistake| mistake.at);
        let line = |mistake: &Mistake| {
            let (line, column) = position(text, mistake.at);
            format!("{}:{line}:{column}: {}", path.display(), mistake.what)
        };
        let lines: Vec<String> = mistakes.iter().map(line).collect();
        let is_lost = filters.is_empty() && text.contains("[[filter]]") && text.contains("redact");
        if let Some(why) = lines.first().filter(|_| is_lost) {
            filters.push(unreadable(path, why));
        }
        self.warnings.extend(lines);
        filters
    }

    fn add_stores(
        &mut self,
        value: &DeValue<'_>,
        at: usize,
        text: &str,
        path: &Path,
        mistakes: &mut Vec<Mistake>,
    ) {
        let DeValue::Array(tables) = value else {
            let what = "store is not a list of tables: write [[store]]".to_owned();
            return mistakes.push(Mistake { at, what });
        };
        for table in tables.iter() {
            let at = table.span().start;
            let mut wrong = |at: usize, what: String| mistakes.push(Mistake { at, what });
            let DeValue::Table(keys) = table.get_ref() else {
                wrong(at, "a store is not a table: it is ignored".to_owned());
                continue;
            };
            let mut words = [None, None];
            for (key, value) in keys {
                let slot = match &**key.get_ref() {
                    "name" => &mut words[0],
                    "directory" => &mut words[1],
                    other => {
                        let what = format!("unknown key {other} of a store: it is ignored");
                        wrong(key.span().start, what);
                        continue;
                    }
                };
                match value.get_ref() {
                    DeValue::String(text) if !text.is_empty() => *slot = Some(text.to_string()),
                    _ => {
                        let what = format!("{} is not a string", key.get_ref());
                        wrong(value.span().start, what);
                    }
                }
            }
            let [name, directory] = words;
            match directory.map(|directory| expanded(&directory)) {
                Some(directory) if directory.is_absolute() => {
                    let (line, _) = position(text, at);
                    self.stores.push(FurtherStore {
                        name: name.unwrap_or_else(|| directory.display().to_string()),
                        directory,
                        defined: format!("{}:{line}", path.display()),
                    });
                }
                _ => wrong(at, "a store needs directory, an absolute path".to_owned()),
            }
        }
    }

    /// The filters.
    pub fn filters(&self) -> &[Filter] {
        self.pipeline.as_ref().map_or(&[], Pipeline::filters)
    }
}

/// A path in which `~/` stands for the home directory.
pub fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(below), Some(home)) => Path::new(&home).join(below),
        _ => path.into(),
    }
}

/// Stands for the filters of a file that cannot be read.
fn unreadable(path: &Path, why: &str) -> Filter {
    Filter {
        name: "of the file".to_owned(),
        defined: path.display().to_string(),
        subject: Subject::Text,
        condition: Condition::default(),
        action: Action::Redact(None),
        failure: FailureMode::Closed,
        mistake: Some(why.to_owned()),
    }
}

/// The effect of a filter in a few words: `12 files`, `3 processes, 1 file`.
pub fn effect(report: &backstory_pipeline::FilterReport) -> String {
    use crate::text::words::counted;
    let mut parts = Vec::new();
    if report.files > 0 {
        parts.push(counted(report.files, "file", "files"));
    }
    if report.processes > 0 {
        parts.push(counted(report.processes, "process", "processes"));
    }
    if report.header {
        parts.push("the command of the run".to_owned());
    }
    match parts.is_empty() {
        true => "nothing".to_owned(),
        false => parts.join(", "),
    }
}

/// The report as JSON.
pub fn report_fields(report: &PipelineReport) -> crate::json::Value {
    use crate::json::Value;
    let filters = report.filters.iter().map(|filter| {
        Value::Object(vec![
            ("name", filter.name.as_str().into()),
            ("action", filter.action.as_str().into()),
            ("files", filter.files.into()),
            ("processes", filter.processes.into()),
            ("run", filter.header.into()),
            ("warning", filter.warning.as_deref().into()),
        ])
    });
    Value::Object(vec![
        ("filters", Value::Array(filters.collect())),
        ("files_removed", report.removed.files.into()),
        ("processes_removed", report.removed.processes.into()),
        ("files_anonymous", report.anonymous.files.into()),
        ("processes_anonymous", report.anonymous.processes.into()),
    ])
}
