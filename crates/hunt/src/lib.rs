//! Finds known attacks in recorded runs, by rules.
//!
//! In: the graph of a run, and rules in the form of Sigma. Out: findings, each with its operations,
//! the programs that led to it, the first cause and the extent.
//!
//! | module | what it does |
//! | --- | --- |
//! | `yaml` | reads YAML with the place of each value |
//! | `library`, `rule`, `selection`, `condition`, `correlation` | compile rules |
//! | `pattern`, `glob` | the values of rules, and texts with wildcards |
//! | `run_graph`, `fact`, `unexplained` | a run's graph as facts with fields |
//! | `content` | what inspectors say of contents, for rules that ask for it |
//! | `run_in_progress`, `growing_graph` | the graph of a run that goes on, and what is new in it |
//! | `stream_matching`, `chains`, `bursts` | match rules against what is new |
//! | `run_filter`, `text_condition` | the runs of a lake in which rules can match, in SQL |
//! | `matching`, `flow` | match rules against facts; follow information forward in time |
//! | `deadline` | the end of the time for one rule |
//! | `match_key` | tells matches apart |
//! | `finding`, `cause`, `extent` | tell what was found, what caused it, and what came of it |
//! | `interpreter` | where an interpreter gets its commands from |
//!
//! Invariant: a rule finds the same in a stored run, by [`find`], and in a run that goes on, by
//! [`RunInProgress`]. Both look at a [`RunGraph`]. The exceptions are fields that compare a run with
//! others of its store, or ask inspectors, and those that `stream_matching` names.
//!
//! Absent on purpose: the form of the answer, which belongs to `cli`.

mod bursts;
mod cause;
mod chains;
mod condition;
mod content;
mod correlation;
mod deadline;
mod extent;
mod fact;
mod finding;
mod flow;
mod glob;
mod growing_graph;
mod interpreter;
mod library;
mod match_key;
mod matching;
mod pattern;
mod rule;
mod run_filter;
mod run_graph;
mod run_in_progress;
mod selection;
mod stream_matching;
mod text_condition;
mod unexplained;
mod yaml;

pub use content::contents_asked;
pub use correlation::GROUPS;
pub use extent::Extent;
pub use fact::{FIELDS, Fact, Field, Operation};
pub use finding::{FoundProgram, FoundStep, MatchDescriber, RuleMatch, step};
pub use library::{BUILT_IN, Library};
pub use match_key::MatchKey;
pub use matching::{Found, Limits, RuleFindings, find};
pub use rule::{CATEGORIES, Level, Rule};
pub use run_filter::RunFilter;
pub use run_graph::{ContentAnswers, RunGraph};
pub use run_in_progress::RunInProgress;
pub use selection::MODIFIERS;
pub use unexplained::RunOutputs;
