//! Seals runs, and finds every later change of what was sealed.
//!
//! In: a run in a store. Out: a seal, which has a digest of each part of the run, and of the seal
//! before it. Later, in: the store and its seals. Out: findings, each about one run and one part.
//!
//! ```text
//!   log, deep log, bytes ─┐
//!   rows, canonical form ─┼─ parts ─ Statement ─ ssh-keygen, openssl ts ─ Chain (DIR/evidence)
//!   facts, annotations ───┘                                                  │
//!                                           findings ── examine ─────────────┘
//! ```
//!
//! - [`statement`] is the text of a seal, [`canonical`] the form of the rows behind it.
//! - [`seal`] reads the files of one seal. [`chain`] finds and adds seals.
//! - [`proof`] takes seals along in an exported document, and verifies them there. [`bundle`] signs
//!   such a document.
//! - `docs/formats/seal.md` describes the files.
//!
//! Invariants:
//!
//! - A part that a seal names is unchanged, or a finding names the run and the part.
//! - A seal that is removed, exchanged or changed is a finding about the chain.
//! - Verification changes nothing, and trusts nothing in the store.
//!
//! Absent: proof against a person who has both the store and the key, and against the recorded
//! program while it runs (`docs/security.md`).

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod bundle;
pub mod canonical;
pub mod chain;
mod error;
pub mod examine;
mod graph_indexes;
pub mod items;
mod parts;
pub mod proof;
pub mod seal;
mod sealing;
pub mod statement;
pub mod time_stamp;
mod tools;

pub use chain::{Chain, Head};
pub use error::{Error, Result};
pub use examine::{Examination, Finding, Trust, examine};
pub use items::Journals;
pub use sealing::{Notes, Sealer, Signing};
