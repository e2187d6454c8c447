//! The user's filters between the graph of a run and the store.
//!
//! In: the graph that the fold made of a run's log, and the filters of `config.toml`. Out: the
//! graph that the store gets, and a report of what each filter took.
//!
//! Invariants:
//!
//! - The log is never changed. A run that is indexed again without filters is whole again.
//! - A node that a filter takes out leaves the lineage between all other nodes as it was
//!   ([`contract`]; `docs/design/pipeline.md` has the proof).
//! - The same graph and the same filters give the same result.
//!
//! Absent: the recorded process, in which no filter runs; the redaction of secrets while a run is
//! recorded (crate `session`).

pub mod configuration;
mod contraction;
pub mod expression;
pub mod fields;
pub mod filter;
mod filtering;
mod flows;
pub mod judge;
mod matching;
mod node_facts;
mod parallel_flows;
mod renumbering;
pub mod report;
pub mod run_graph;
mod step_merging;
mod substitution;
mod taken_nodes;
pub mod text_position;

pub use contraction::{ANONYMOUS, Contraction, contract};
pub use filter::Filter;
pub use filtering::{FilteredRun, Pipeline};
pub use judge::BATCH;
pub use report::{FilterReport, PipelineReport};
pub use taken_nodes::TakenNodes;
