//! Questions of the Python package about a store, and their answers as tables.
//!
//! In: the directory of a store, and a [`StoreQuestion`]. Out: an [`Answered`] with tables, which
//! [`reply::write`] writes into a file. The Python package reads the file from memory without a copy,
//! as Arrow tables.
//!
//! | module | what it does |
//! | --- | --- |
//! | `question` | the questions, as the extension module sends them to the program |
//! | `answering` | answers one question |
//! | `opened_store` | opens a store for one question, and finds the version that is meant |
//! | `run_tables`, `lineage_tables`, `step_tables`, `difference_table`, `status_table` | answers as columns |
//! | `columns` | builds a table column by column |
//! | `reply`, `layout` | an answer as a file: a header, and the buffers of the columns |
//! | `failure` | failures with the wording of the command line |
//!
//! The program `backstory` answers (its hidden command `answer`), and the extension module of the
//! Python package asks. So the module has no database and no query code of its own, and the wheel
//! has these once.
//!
//! Invariant: a question only reads. Absent on purpose: Python.

mod answering;
mod columns;
mod difference_table;
mod failure;
pub mod layout;
mod lineage_tables;
mod opened_store;
pub mod question;
pub mod reply;
mod run_tables;
mod status_table;
mod step_tables;

pub use answering::answer;
pub use columns::{AnswerTable, ArrayKind, ExactValues};
pub use failure::Failure;
pub use question::StoreQuestion;
pub use reply::{AnswerFacts, Answered};
