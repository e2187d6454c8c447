//! The page in the browser: a local web application over one store.
//!
//! In: a store, and a port of the loopback interface. Out: the built page, and a JSON interface
//! under `/api/v1` that [`api::document`] describes as OpenAPI.
//!
//! ```text
//! browser ── gate ── page        the built page, from this program
//!              └──── api ── readers ── store      questions, each on a thread with a connection
//!                     └──── live                  the logs of runs in progress
//! ```
//!
//! - [`serve`] binds the port and answers until the process ends. [`router`] is the
//!   application without a port.
//! - `gate` refuses every request without the token, from another host name, or from another site.
//! - `readers` runs questions on a few threads. A question ends when its time is over, or when the
//!   client has left.
//! - `reply` and `path_text` write answers: bytes that are not UTF-8 become lone surrogates.
//!
//! Invariants:
//!
//! - Only the loopback interface is listened on, and no request leaves the machine.
//! - The store is only read. One exception is a `rerun` that the user allowed on the command line:
//!   this program starts itself for it.
//! - A content of the user's is never served in a way that lets a browser execute it.
//! - This process reads no file format but lines of text. A worker does, in its sandbox (crate
//!   `inspection`).
//!
//! Absent on purpose: users, TLS, and any address but the loopback interface's.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod api;
mod channel_body;
mod database_rows;
mod gate;
mod live_runs;
mod live_tail;
mod media_type;
mod page;
mod params;
mod path_text;
mod preview;
mod problem;
mod process_tree;
mod readers;
mod refresher;
mod reply;
mod run_list;
mod server;
mod setup;
mod site;
mod version_bytes;
mod web_app;

pub use gate::AccessToken;
pub use page::is_built as has_page;
pub use server::{ServeError, serve};
pub use setup::{
    ByteOrigins, ByteSource, ByteWriter, Hooks, InsideChange, Setup, Start, WritingFunction,
};
pub use site::Site;
pub use web_app::router;
