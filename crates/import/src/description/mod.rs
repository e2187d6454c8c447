//! Descriptions: documents that name activities and entities, instead of system calls.
//!
//! In: the statements of a document, in any order. Out: the records of a run, with the same
//! activities, entities and relations.
//!
//! | module | what it does |
//! | --- | --- |
//! | `statements` | collects what a document states |
//! | `states` | finds the states that readings mean, where a document has names only |
//! | `locations` | makes paths and names of what it calls its things |
//! | `moments` | bounds the times that it does not give |
//! | `versions` | orders the states of each thing |
//! | `ordering` | orders activities: those that start others come first |
//! | `derivations` | finds the activity behind a derivation that names none |
//! | `emission` | writes the records |
//! | `findings` | tells the facts about the run, and the gaps |
//!
//! Invariant: nothing is stated that the document does not state. A node that stands for something
//! that the document leaves open says so in its name.
//!
//! Memory grows with the activities, entities and relations of the document, not with its text. A
//! document with more than [`MOST`] of them is refused.

mod derivations;
mod emission;
mod findings;
mod locations;
mod moments;
mod ordering;
mod statements;
mod states;
mod versions;

pub(crate) use findings::{DescribedRun, DescriptionGaps, run};
pub(crate) use locations::{Locations, file_path, unescaped};
pub(crate) use statements::{
    ActivityNumber, DescribedActivity, Description, EntityNumber, Flow, Span,
};
pub(crate) use states::NamedStates;

/// The most activities, entities and relations together.
pub(crate) const MOST: usize = 8_000_000;
