//! Answers that are more than one table.

use backstory_answers::question::LineageScope;
use backstory_answers::{AnswerFacts, StoreQuestion};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::asked_store::AskedStore;
use crate::failure::unexpected;
use crate::reply::Reply;
use crate::table::Table;
use crate::text::os_text;

/// A lineage.
#[pyclass(frozen, module = "backstory._core")]
pub struct LineageAnswer {
    asked: AskedStore,
    scope: LineageScope,
    roots: usize,
    cut: bool,
    versions: Vec<u64>,
    nodes: Table,
    links: Table,
}

impl LineageAnswer {
    /// The answer to a question about this store.
    pub fn new(asked: AskedStore, scope: LineageScope, answered: Reply) -> PyResult<Self> {
        let mut tables = answered.tables.into_iter().map(Table::new);
        match (answered.facts, tables.next(), tables.next()) {
            (
                AnswerFacts::Lineage {
                    roots,
                    cut,
                    versions,
                },
                Some(nodes),
                Some(links),
            ) => Ok(LineageAnswer {
                asked,
                scope,
                roots,
                cut,
                versions,
                nodes,
                links,
            }),
            _ => Err(unexpected()),
        }
    }
}

#[pymethods]
impl LineageAnswer {
    /// The number of nodes that are the subject of the question: the first ones.
    #[getter]
    fn roots(&self) -> usize {
        self.roots
    }

    /// True if the answer was cut at the requested depth.
    #[getter]
    fn cut(&self) -> bool {
        self.cut
    }

    fn nodes(&self) -> Table {
        self.nodes.clone()
    }

    fn links(&self) -> Table {
        self.links.clone()
    }

    /// The lineage in the commands that a person would have written. In this order: the files, the
    /// commands between them, the commands that started these, and the subject's files by index.
    fn steps(&self, py: Python<'_>) -> PyResult<(Table, Table, Table, Vec<u32>)> {
        let question = StoreQuestion::Steps(self.versions.clone(), self.scope.clone());
        let answered = self.asked.ask(py, &question)?;
        let mut tables = answered.tables.into_iter().map(Table::new);
        match (answered.facts, tables.next(), tables.next(), tables.next()) {
            (AnswerFacts::Steps(roots), Some(files), Some(steps), Some(drivers)) => {
                Ok((files, steps, drivers, roots))
            }
            _ => Err(unexpected()),
        }
    }
}

/// A comparison of two runs, or of how two versions of a file were made.
#[pyclass(frozen, module = "backstory._core")]
pub struct DiffAnswer {
    a: Vec<String>,
    b: Vec<String>,
    same_outputs: Vec<Vec<u8>>,
    unknown: Vec<Vec<u8>>,
    differences: Table,
}

impl DiffAnswer {
    /// The answer.
    pub fn new(answered: Reply) -> PyResult<DiffAnswer> {
        match (answered.facts, answered.tables.into_iter().next()) {
            (
                AnswerFacts::Diff {
                    a,
                    b,
                    same_outputs,
                    unknown,
                },
                Some(table),
            ) => Ok(DiffAnswer {
                a,
                b,
                same_outputs,
                unknown,
                differences: Table::new(table),
            }),
            _ => Err(unexpected()),
        }
    }
}

#[pymethods]
impl DiffAnswer {
    /// The runs of the first side.
    #[getter]
    fn a(&self) -> Vec<&str> {
        self.a.iter().map(String::as_str).collect()
    }

    /// The runs of the second side.
    #[getter]
    fn b(&self) -> Vec<&str> {
        self.b.iter().map(String::as_str).collect()
    }

    fn differences(&self) -> Table {
        self.differences.clone()
    }

    /// Outputs with the same content on both sides.
    fn same_outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        names(py, &self.same_outputs)
    }

    /// Files that cannot be compared, because a content is not known.
    fn unknown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        names(py, &self.unknown)
    }
}

fn names<'py>(py: Python<'py>, names: &[Vec<u8>]) -> PyResult<Bound<'py, PyList>> {
    let texts: PyResult<Vec<_>> = names.iter().map(|name| os_text(py, name)).collect();
    PyList::new(py, texts?)
}
