//! The extension module `backstory._core`: questions about a store, answered as Arrow tables.
//!
//! In: the directory of a store, and questions. Out: [`table::Table`]s, which Python's libraries
//! for data take without a copy, and exceptions with the command line's wording.
//!
//! | module | what it does |
//! | --- | --- |
//! | `reader` | the class that Python calls: one method for each question |
//! | `asked_store`, `asking`, `reply` | ask the program `backstory`, which the wheel has too |
//! | `answers` | answers that are more than one table |
//! | `table`, `buffer`, `text` | columns, and how Python sees them |
//! | `failure` | failures as exceptions |
//!
//! The program answers by the queries of the command line (crate `answers`). So the wheel has the
//! database and the queries once, and a failure of them does not end the interpreter.
//!
//! Invariant: a question only reads, and it holds Python's lock only while it makes Python objects.
//!
//! Absent on purpose: the texts and pictures of the package, which are Python (`python/backstory`).

mod answers;
mod asked_store;
mod asking;
mod buffer;
mod failure;
mod reader;
mod reply;
mod table;
mod text;

use pyo3::prelude::*;

/// The classes of the module.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<reader::Reader>()?;
    module.add_class::<answers::LineageAnswer>()?;
    module.add_class::<answers::DiffAnswer>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<buffer::ColumnBuffer>()
}
