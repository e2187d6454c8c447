//! The class that Python asks: one method for each question.

use std::path::PathBuf;

use backstory_currency as currency;
use backstory_eventlog::event::Time;
use backstory_query as query;
use backstory_query::answer::Scope;
use backstory_query::subject as versions;
use backstory_query::{Direction, RunFilter, TextPattern};
use backstory_replay::diff::{self, DiffSubject};
use backstory_store::Home;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::columns::Columns;
use crate::difference_table::DiffAnswer;
use crate::failure::Failure;
use crate::lineage_tables::LineageAnswer;
use crate::opened_store::{ContentPlace, FileChoice, OpenedStore};
use crate::run_tables;
use crate::table::Table;

/// A store, for questions.
#[pyclass(frozen, module = "backstory._core")]
pub struct Reader {
    directory: PathBuf,
}

impl Reader {
    /// Asks the store without Python's lock.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&OpenedStore) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        let answer = py.detach(|| question(&OpenedStore::open(&self.directory)?));
        Ok(answer?)
    }
}

#[pymethods]
impl Reader {
    /// The store in a directory; by default where the command line finds it.
    #[new]
    #[pyo3(signature = (directory=None))]
    fn new(directory: Option<PathBuf>) -> PyResult<Reader> {
        let directory = Home::directory(directory.as_deref()).map_err(Failure::from)?;
        Ok(Reader { directory })
    }

    #[getter]
    fn directory(&self) -> PathBuf {
        self.directory.clone()
    }

    /// True if the store lacks runs that have ended. The program `backstory` adds them.
    fn is_behind(&self, py: Python<'_>) -> PyResult<bool> {
        self.ask(py, |opened| {
            let pending = opened.home.pending(&opened.store)?;
            let bad = |run: &String| {
                let mut marked = opened.home.log_path(run).into_os_string();
                marked.push(".bad");
                PathBuf::from(marked).exists()
            };
            Ok(!pending.iter().all(bad) || !opened.home.unfinished()?.is_empty())
        })
    }

    /// The ids of the runs that are being recorded.
    fn recording(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.ask(py, OpenedStore::recording)
    }

    /// The id of the run that the user means; by default the latest.
    #[pyo3(signature = (wanted=None))]
    fn resolve(&self, py: Python<'_>, wanted: Option<&str>) -> PyResult<String> {
        self.ask(py, |opened| opened.run(wanted))
    }

    /// The runs that meet all conditions, newest first. Times are nanoseconds since 1970.
    #[pyo3(signature = (limit=None, name=None, command=None, since=None, until=None, failed=false))]
    #[allow(clippy::too_many_arguments)]
    fn runs(
        &self,
        py: Python<'_>,
        limit: Option<usize>,
        name: Option<&str>,
        command: Option<&str>,
        since: Option<Time>,
        until: Option<Time>,
        failed: bool,
    ) -> PyResult<Table> {
        let pattern = |text: Option<&str>| -> Result<Option<TextPattern>, Failure> {
            Ok(text.map(TextPattern::new).transpose()?)
        };
        self.ask(py, |opened| {
            let filter = RunFilter {
                since,
                until,
                failed,
                name: pattern(name)?,
                command: pattern(command)?,
                most: limit,
                ..RunFilter::default()
            };
            run_tables::runs(&query::runs_where(&opened.store, &filter)?)
        })
    }

    /// One run, as a table of one row.
    fn summary(&self, py: Python<'_>, run: &str) -> PyResult<Table> {
        self.ask(py, |opened| {
            let details = query::details(&opened.store, &opened.run(Some(run))?)?;
            run_tables::runs(&[details.summary])
        })
    }

    fn files(&self, py: Python<'_>, run: &str) -> PyResult<Table> {
        self.ask(py, |opened| {
            run_tables::files(&query::files(&opened.store, run)?)
        })
    }

    fn processes(&self, py: Python<'_>, run: &str) -> PyResult<Table> {
        self.ask(py, |opened| {
            run_tables::processes(&query::processes(&opened.store, run)?)
        })
    }

    fn edges(&self, py: Python<'_>, run: &str) -> PyResult<Table> {
        self.ask(py, |opened| run_tables::edges(&opened.store, run))
    }

    /// The lineage of a file towards its sources (`back`), or towards its results.
    #[pyo3(signature = (back, path, run=None, at=None, depth=None, possible=true, lookups=false, exclude=Vec::new(), within=None))]
    #[allow(clippy::too_many_arguments)]
    fn lineage(
        &self,
        py: Python<'_>,
        back: bool,
        path: PathBuf,
        run: Option<String>,
        at: Option<Time>,
        depth: Option<usize>,
        possible: bool,
        lookups: bool,
        exclude: Vec<String>,
        within: Option<String>,
    ) -> PyResult<LineageAnswer> {
        let choice = FileChoice { path, run, at };
        self.ask(py, |opened| {
            let within = within
                .as_deref()
                .map(|run| opened.run(Some(run)))
                .transpose()?;
            let scope = Scope {
                possible,
                lookups,
                depth,
                exclude,
                run: within,
                ..Scope::default()
            };
            let found = opened.versions(&choice, !back)?;
            let (lineage, direction) = match back {
                true => (
                    query::ancestry_of(&opened.store, &found, &scope)?,
                    Direction::Back,
                ),
                false => (
                    query::influence_of(&opened.store, &found, &scope)?,
                    Direction::Forth,
                ),
            };
            let directory = self.directory.clone();
            Ok(LineageAnswer::new(lineage, direction, directory))
        })
    }

    /// Compares two runs (ids or names), or two versions (`PATH@RUN`, or a path).
    fn diff(&self, py: Python<'_>, a: PathBuf, b: PathBuf) -> PyResult<DiffAnswer> {
        self.ask(py, |opened| {
            let (a, b) = (side(opened, a)?, side(opened, b)?);
            Ok(DiffAnswer::new(diff::diff(&opened.store, &a, &b)?))
        })
    }

    /// The content of a version.
    #[pyo3(signature = (path, run=None, at=None))]
    fn contents<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        run: Option<String>,
        at: Option<Time>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let choice = FileChoice { path, run, at };
        let bytes = self.ask(py, |opened| match opened.content(&choice)? {
            ContentPlace::Version(version) => opened.read(version),
            ContentPlace::Present(path) => std::fs::read(&path).map_err(|error| {
                Failure::not_found(format!("cannot read {}: {error}", path.display()))
            }),
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Whether files are current, and why not.
    fn status(&self, py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Table> {
        self.ask(py, |opened| {
            let files = currency::status(&opened.store, &paths)?;
            let mut columns = Columns::default();
            let all = || files.iter();
            columns.paths("path", all().map(|file| Some(&file.path)));
            columns.text("run", all().map(|file| file.run.as_ref()));
            columns.labels("state", all().map(|file| Some(file.state.word())));
            let inputs = |file: &currency::FileStatus| -> Vec<_> {
                file.changed_inputs
                    .iter()
                    .map(|(path, _)| path.clone())
                    .collect()
            };
            columns.lists("changed_inputs", all().map(inputs));
            let reasons = |file: &currency::FileStatus| -> Vec<Vec<u8>> {
                let one = |reason: &currency::Reason| {
                    let words = reason.words().as_bytes();
                    [reason.subject().as_ref(), b" ", words].concat()
                };
                file.reasons.iter().map(one).collect()
            };
            columns.lists("reasons", all().map(reasons));
            Ok(columns.table()?)
        })
    }
}

/// A side of a comparison: a run, `PATH@RUN`, or a path.
fn side(opened: &OpenedStore, wanted: PathBuf) -> Result<DiffSubject, Failure> {
    let name = wanted.to_str().filter(|name| !name.contains('/'));
    let not_a_run = match name.map(|name| opened.run(Some(name))) {
        Some(Ok(run)) => return Ok(DiffSubject::Run(run)),
        Some(Err(failure)) => Some(failure),
        None => None,
    };
    let choice = FileChoice {
        path: wanted,
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
