//! The answer of `diff`: the differences as a table, with the fields of `--json`.

use arrow_array::types::Int64Type;
use backstory_replay::diff::{Diff, Difference};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::columns::Columns;
use crate::failure::Failure;
use crate::table::Table;
use crate::text::os_text;

/// A comparison of two runs, or of how two versions of a file were made.
#[pyclass(frozen, module = "backstory._core")]
pub struct DiffAnswer {
    diff: Diff,
}

impl DiffAnswer {
    /// The answer.
    pub fn new(diff: Diff) -> DiffAnswer {
        DiffAnswer { diff }
    }
}

#[pymethods]
impl DiffAnswer {
    /// The runs of the first side.
    #[getter]
    fn a(&self) -> Vec<&str> {
        self.diff
            .a
            .iter()
            .map(|run| run.summary.id.as_str())
            .collect()
    }

    /// The runs of the second side.
    #[getter]
    fn b(&self) -> Vec<&str> {
        self.diff
            .b
            .iter()
            .map(|run| run.summary.id.as_str())
            .collect()
    }

    fn differences(&self, py: Python<'_>) -> PyResult<Table> {
        Ok(py.detach(|| table(&self.diff.differences))?)
    }

    /// Outputs with the same content on both sides.
    fn same_outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        names(py, &self.diff.same_outputs)
    }

    /// Files that cannot be compared, because a content is not known.
    fn unknown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        names(py, &self.diff.unknown)
    }
}

fn names<'py>(py: Python<'py>, names: &[Vec<u8>]) -> PyResult<Bound<'py, PyList>> {
    let texts: PyResult<Vec<_>> = names.iter().map(|name| os_text(py, name)).collect();
    PyList::new(py, texts?)
}

fn table(differences: &[Difference]) -> Result<Table, Failure> {
    let mut columns = Columns::default();
    let all = || differences.iter();
    columns.labels("kind", all().map(|one| Some(one.kind.word())));
    columns.text("of", all().map(|one| Some(&one.of)));
    columns.text("a", all().map(|one| one.a.as_ref()));
    columns.text("b", all().map(|one| one.b.as_ref()));
    columns.numbers::<Int64Type>("after_ns", all().map(|one| one.at));
    let fed_by = |one: &Difference| one.fed_by.iter().map(|&at| at as u32).collect();
    columns.indexes("fed_by", all().map(fed_by));
    columns.labels("weight", all().map(|one| Some(one.weight.word())));
    columns.bools("intermediate", all().map(|one| Some(one.is_intermediate)));
    Ok(columns.table()?)
}
