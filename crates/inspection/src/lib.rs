//! Asks inspectors what a file contains, and what changed between two contents of it.
//!
//! In: a file's name, and one or two contents in memory. Out: an [`Answer`]: facts of one content,
//! or changes between two as plain sentences and as JSON.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`catalogue`] | lists the inspectors, and chooses one by a file's name and bytes |
//! | `media_types` | the MIME types of a file |
//! | [`question`] | what a worker is asked, and the bytes that it reads |
//! | [`answer`], [`format_answer`] | what it answers, and the checks of that |
//! | [`format_reader`] | compares and shows contents by their formats, for all commands |
//! | [`file_parts`] | where a cell or a member is: question and answer |
//! | [`row_changes`] | rows of a database of SQLite that changed: question and answer |
//! | [`worker`] | asks the worker about a file, and names both in its errors |
//! | [`table_keys`] | the columns that the user chose as the key of a table |
//! | [`judging`] | asks a user's filter about the nodes of a graph |
//! | `asking` | the one path from this program to a worker |
//! | `worker_process` | starts a worker, limits its time and output, and ends it |
//! | `component` | reads a user's inspector in WebAssembly |
//! | [`answer_cache`] | keeps answers by digest, inspector and version |
//!
//! File formats are hostile input. Their readers run in another process, the worker
//! `backstory-inspect`, which may call the kernel for nothing but memory. Its answer is data of
//! hostile origin, too.
//!
//! Invariant: a worker that crashes, hangs or lies costs the caller a [`Trouble`] and a limited
//! time.
//! Absent: readers of formats (crate `inspect`), and stores.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod answer;
pub mod answer_cache;
mod asking;
pub mod catalogue;
mod component;
pub mod file_parts;
pub mod format_answer;
pub mod format_reader;
pub mod judging;
mod media_types;
mod name_pattern;
pub mod question;
pub mod row_changes;
pub mod table_keys;
mod trouble;
pub mod worker;
mod worker_process;

pub use answer::{Answer, one_line};
pub use answer_cache::AnswerCache;
pub use catalogue::{Catalogue, InspectorEntry};
pub use format_reader::{ComparedContents, FormatReader};
pub use question::Question;
pub use table_keys::TableKeys;
pub use trouble::Trouble;
pub use worker::InspectionWorker;
pub use worker_process::end_workers;

/// The name of the worker's executable.
pub const WORKER: &str = "backstory-inspect";

/// The most bytes of a WebAssembly component.
pub const LARGEST_COMPONENT: u64 = 8 << 20;

/// The most bytes of a content that is inspected. Two of them fit into the worker's memory.
pub const LARGEST_CONTENT: usize = 64 << 20;

/// The most bytes of a content that is inspected for the line about a version.
pub const LARGEST_INSPECTED: u64 = 8 << 20;
