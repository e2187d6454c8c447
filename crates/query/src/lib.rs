//! Answers questions about provenance. In: a store. Out: plain data. Only reads; never prints.
//!
//! - [`ancestry`] (`of`) and [`influence`] (`uses`) follow time-respecting paths in either
//!   direction, over all runs.
//! - [`files`], [`processes`], [`runs`], [`details`] and [`contents`] describe runs.
//! - [`subject`] finds the version of a file that a question means; [`history`] says what happened
//!   to a path.
//! - [`checkouts`] are the git work trees of a run, [`results`] the files that it left.
//! - [`RunFilter`] selects runs, by time, command, file and more.
//! - [`RefinedRuns`] follows bytes, and [`ByteMarks`] refines the links of a graph by them.
//! - [`Globs`], [`FilePattern`] and [`TextPattern`] are patterns of paths and of texts.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod answer;

mod alike;
mod byte_origins;
mod checkouts;
mod connections;
mod content_states;
mod contents;
mod copied_files;
mod database_states;
mod error;
mod file_filter;
mod file_pattern;
mod files;
mod globs;
mod heirs;
mod history;
mod job_ranks;
mod joined_lines;
mod lineage;
mod neighbours;
mod newest_runs;
mod now;
mod peer_names;
mod peers;
mod printed_files;
mod recorded_database;
mod remote_runs;
mod replaced;
mod replay_verdicts;
mod resources;
mod results;
mod root;
mod row_history;
mod run_filter;
mod runs;
mod session_clients;
pub mod subject;
mod table_history;
mod text_pattern;
mod touches;
mod undone;
mod version_facts;
mod watch_gaps;
mod watched_ends;
mod why_unknown;

pub use byte_origins::{
    ByteLink, ByteMarks, ByteNode, ByteSources, ByteUse, FoundBytes, FoundSource, LinkKind,
    RefinedRuns,
};
pub use checkouts::{Checkout, checkouts, runs_at_commit};
pub use connections::{AddressScope, ConnectionEnd, connection_ends};
pub use content_states::{
    ContentState, ContentStates, content_states, former_content, former_state,
};
pub use contents::{
    Content, ContentRole, RunContents, born, contents, is_source, kind, known, stayed,
};
pub use copied_files::keep_copies_apart;
pub use database_states::{
    DatabaseState, FileThen, StateContents, database_states, logged_states, sqlite_databases,
};
pub use error::{Error, Result};
pub use file_filter::FileFilter;
pub use file_pattern::FilePattern;
pub use files::{
    OwnTest, UseTest, files, files_by_process, files_where, process_files, written_since,
};
pub use globs::Globs;
pub use heirs::heirs;
pub use history::{PathChange, PathEvent, at_moment, history};
pub use job_ranks::rank_of;
pub use joined_lines::JoinedLines;
pub use lineage::{ancestry, ancestry_of, hop, influence, influence_of, influence_while};
pub use neighbours::{Direction, Key as LineageKey};
pub use newest_runs::{NewestRuns, newest_runs};
pub use now::{ident as present_identity, look as try_present_identity, open_version};
pub use peers::{
    MeantEnd, REPLY, address_of, is_name_server, is_network_peer, localhost_addresses, meant_ends,
    peers,
};
pub use printed_files::{emptied_files, printed_files};
pub use recorded_database::RecordedDatabase;
pub use remote_runs::{RemoteEnd, RemoteRun, starter};
pub use replaced::replaced;
pub use replay_verdicts::ReplayVerdict;
pub use resources::{SqliteTable, is_of_database, is_of_server, is_transaction, qualified_table};
pub use results::{RunResult, callers_files, results};
pub use root::{Asked, RealDirectories};
pub use row_history::{RowEvent, row_history};
pub use run_filter::{RunFilter, TagPattern};
pub use runs::{details, facts, processes, projects, resolve, running, runs, runs_where, summary};
pub use table_history::{TableEvent, TableHistory, TableQuestion, table_history};
pub use text_pattern::TextPattern;
pub use touches::{TouchSearch, Touches, version_touches};
pub use undone::{ended_from_outside, is_undone};
pub use watch_gaps::{
    TableGaps, WatchGap, WatchGapReason, gap_lines, gap_summary, table_versions, watch_gaps,
    watch_gaps_of,
};
pub use watched_ends::{WatchedEnd, watched_ends};
pub use why_unknown::why_unknown;
