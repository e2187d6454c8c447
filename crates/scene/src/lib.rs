//! Tells of an incident which request of which peer did what, and what it left.
//!
//! In: a store, the deep logs beside it, and a [`Question`]: a file, an address or a moment. Out: a
//! [`Scene`]: plain data with one [`Incident`] for each request or process that is meant.
//! [`page()`] arranges it for people, and [`markdown`] and [`html`] write that page.
//!
//! Invariants:
//! - An incident says how it was found ([`Precision`]), and which parts are not known.
//! - Bytes of a connection leave this crate as an [`Excerpt`]: bounded, with secrets replaced.
//!
//! Absent: the reconstruction itself, which belongs to `reconstruct`. This crate names the command.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod asking;
mod deeds;
mod deep_files;
mod deep_incidents;
mod deep_limits;
mod deep_run;
mod deep_search;
mod error;
mod excerpt;
mod html;
mod left;
mod markdown;
mod meaning;
mod model;
mod page;
mod question;
mod read_together;
mod recorded_incidents;
mod secrets;
mod words;

pub use asking::{Asked, scene};
pub use error::{Error, Result};
pub use excerpt::{Excerpt, escaped};
pub use html::html;
pub use markdown::markdown;
pub use model::{
    FileAct, Incident, LeftState, Precision, Scene, SceneConnection, SceneFile, SceneProcess,
    SceneRequest, SceneRun,
};
pub use page::{Layout, Page, PageLine, Section, page, process_line};
pub use question::{PeerPattern, Question};
pub use secrets::redacted;
