//! The extension module `backstory._core`: questions about a store, answered as Arrow tables.
//!
//! In: the directory of a store, and questions. Out: [`table::Table`]s, which Python's libraries
//! for data take without a copy, and exceptions with the command line's wording.
//!
//! | module | what it does |
//! | --- | --- |
//! | `reader` | the class that Python calls: one method for each question |
//! | `opened_store` | opens a store for one question, and finds the version that is meant |
//! | `run_tables`, `lineage_tables`, `step_tables`, `difference_table` | answers as columns |
//! | `columns`, `table`, `buffer`, `text` | columns, and their ways into Python |
//! | `failure` | errors as exceptions |
//!
//! Invariant: a question only reads, and it holds Python's lock only while it makes Python objects.
//! The program `backstory`, which the wheel has too, records and indexes.
//!
//! Absent on purpose: the texts and pictures of the package, which are Python (`python/backstory`).

mod buffer;
mod columns;
mod difference_table;
mod failure;
mod lineage_tables;
mod opened_store;
mod reader;
mod run_tables;
mod step_tables;
mod table;
mod text;

use pyo3::prelude::*;

/// The classes of the module.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<reader::Reader>()?;
    module.add_class::<lineage_tables::LineageAnswer>()?;
    module.add_class::<difference_table::DiffAnswer>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<buffer::ColumnBuffer>()
}
