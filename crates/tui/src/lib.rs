//! Views of a store in the terminal: runs, files and their lineage.
//!
//! In: an open store and the first view. Out: a screen, until the user quits. The store is only
//! read.
//!
//! ```text
//! store ── pages ── Page ── browser ── drawing ── terminal
//!                             ▲ keys                │
//!                             └──────── screen ◄────┘
//! ```
//!
//! - [`Destination`] names a view. `pages` makes its [`Page`] from the store: facts, columns, rows,
//!   and where each row leads.
//! - [`Browser`] holds the history of views, the selection and the search. It takes keys.
//! - [`draw`] draws a browser into any backend of ratatui.
//! - [`run`] joins them at the real terminal, and restores the terminal however the program ends.
//!
//! The words and colours are those of the page in the browser: [`backstory_vocabulary::Tone`].
//!
//! Invariant: no text of a recorded file name reaches the terminal as a control character.
//! Absent: changes of the store, and runs that are not indexed yet.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod browser;
mod destination;
mod drawing;
mod error;
mod moments;
mod page;
mod pages;
mod screen;
mod viewed_store;

pub use browser::{Browser, Reaction};
pub use destination::Destination;
pub use drawing::draw;
pub use error::{Error, Result};
pub use page::Page;
pub use screen::run;
pub use viewed_store::ViewedStore;
