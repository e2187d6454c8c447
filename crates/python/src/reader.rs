//! The class that Python asks: one method for each question.

use std::path::PathBuf;

use arrow_array::cast::AsArray;
use backstory_answers::question::{FileChoice, LineageScope, PathWord, RunConditions};
use backstory_answers::{AnswerFacts, StoreQuestion};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::answers::{DiffAnswer, LineageAnswer};
use crate::asked_store::AskedStore;
use crate::failure::unexpected;
use crate::table::Table;

/// A moment, in nanoseconds since 1970.
type Moment = i64;

/// A store, for questions.
#[pyclass(frozen, module = "backstory._core")]
pub struct Reader {
    asked: AskedStore,
}

impl Reader {
    /// Asks a question whose answer is a table.
    fn table(&self, py: Python<'_>, question: &StoreQuestion) -> PyResult<Table> {
        let tables = self.asked.ask(py, question)?.tables;
        let table = tables.into_iter().next();
        table.map(Table::new).ok_or_else(unexpected)
    }

    /// Asks a question whose answer is a list of runs.
    fn names(&self, py: Python<'_>, question: &StoreQuestion) -> PyResult<Vec<String>> {
        match self.asked.ask(py, question)?.facts {
            AnswerFacts::Runs(runs) => Ok(runs),
            _ => Err(unexpected()),
        }
    }
}

#[pymethods]
impl Reader {
    /// The store in a directory; by default where the command line finds it.
    #[new]
    #[pyo3(signature = (directory=None))]
    fn new(py: Python<'_>, directory: Option<PathBuf>) -> PyResult<Reader> {
        let asked = AskedStore::find(py, directory)?;
        Ok(Reader { asked })
    }

    #[getter]
    fn directory(&self) -> PathBuf {
        self.asked.directory.clone()
    }

    /// True if the store lacks runs that have ended. The program `backstory` adds them.
    fn is_behind(&self, py: Python<'_>) -> PyResult<bool> {
        match self.asked.ask(py, &StoreQuestion::IsBehind)?.facts {
            AnswerFacts::Truth(behind) => Ok(behind),
            _ => Err(unexpected()),
        }
    }

    /// The ids of the runs that are being recorded.
    fn recording(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.names(py, &StoreQuestion::Recording)
    }

    /// The id of the run that the user means; by default the latest.
    #[pyo3(signature = (wanted=None))]
    fn resolve(&self, py: Python<'_>, wanted: Option<String>) -> PyResult<String> {
        let runs = self.names(py, &StoreQuestion::Resolve(wanted))?;
        runs.into_iter().next().ok_or_else(unexpected)
    }

    /// The runs that meet all conditions, newest first.
    #[pyo3(signature = (limit=None, name=None, command=None, since=None, until=None, failed=false))]
    #[allow(clippy::too_many_arguments)]
    fn runs(
        &self,
        py: Python<'_>,
        limit: Option<usize>,
        name: Option<String>,
        command: Option<String>,
        since: Option<Moment>,
        until: Option<Moment>,
        failed: bool,
    ) -> PyResult<Table> {
        let conditions = RunConditions {
            limit,
            name,
            command,
            since,
            until,
            failed,
        };
        self.table(py, &StoreQuestion::Runs(conditions))
    }

    /// One run, as a table of one row.
    fn summary(&self, py: Python<'_>, run: String) -> PyResult<Table> {
        self.table(py, &StoreQuestion::Summary(run))
    }

    fn files(&self, py: Python<'_>, run: String) -> PyResult<Table> {
        self.table(py, &StoreQuestion::Files(run))
    }

    fn processes(&self, py: Python<'_>, run: String) -> PyResult<Table> {
        self.table(py, &StoreQuestion::Processes(run))
    }

    fn edges(&self, py: Python<'_>, run: String) -> PyResult<Table> {
        self.table(py, &StoreQuestion::Edges(run))
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
        at: Option<Moment>,
        depth: Option<usize>,
        possible: bool,
        lookups: bool,
        exclude: Vec<String>,
        within: Option<String>,
    ) -> PyResult<LineageAnswer> {
        let path = PathWord(path);
        let scope = LineageScope {
            back,
            depth,
            possible,
            lookups,
            exclude,
            within,
        };
        let question = StoreQuestion::Lineage(FileChoice { path, run, at }, scope.clone());
        let answered = self.asked.ask(py, &question)?;
        LineageAnswer::new(self.asked.clone(), scope, answered)
    }

    /// Compares two runs (ids or names), or two versions (`PATH@RUN`, or a path).
    fn diff(&self, py: Python<'_>, a: PathBuf, b: PathBuf) -> PyResult<DiffAnswer> {
        let question = StoreQuestion::Diff(PathWord(a), PathWord(b));
        DiffAnswer::new(self.asked.ask(py, &question)?)
    }

    /// The content of a version.
    #[pyo3(signature = (path, run=None, at=None))]
    fn contents<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        run: Option<String>,
        at: Option<Moment>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let path = PathWord(path);
        let question = StoreQuestion::Contents(FileChoice { path, run, at });
        let tables = self.asked.ask(py, &question)?.tables;
        let table = tables.first().ok_or_else(unexpected)?;
        let cell = table.batch.column(0).as_binary::<i64>();
        Ok(PyBytes::new(py, cell.value(0)))
    }

    /// Whether files are current, and why not.
    fn status(&self, py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Table> {
        let paths = paths.into_iter().map(PathWord).collect();
        self.table(py, &StoreQuestion::Status(paths))
    }
}
