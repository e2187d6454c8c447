//! Fuzz targets. In: hostile bytes. Out: nothing, or a panic that says which promise was broken.
//!
//! There is one module for each target. `fuzz_targets/` runs them on nightly.
//! `crates/cli/tests/corpora.rs` replays `corpus/` through the same modules on stable. Every target
//! accepts any bytes, and must end soon.
//!
//! The modules of other targets are not listed here, because the tests of `cli` do without these
//! readers. The tests of the readers' own crates replay their corpora: `inspect` (`inspect`,
//! `sqlite`, `parts`), `postgres` and `mariadb`.

#[path = "arena.rs"]
pub mod arena;
#[path = "call.rs"]
pub mod call;
#[path = "database.rs"]
pub mod database;
#[path = "deep.rs"]
pub mod deep;
#[path = "fold.rs"]
pub mod fold;
#[path = "foreign.rs"]
pub mod foreign;
#[path = "framed.rs"]
mod framed;
#[path = "import.rs"]
pub mod import;
#[path = "log.rs"]
pub mod log;
#[path = "place.rs"]
mod place;
#[path = "text.rs"]
pub mod text;
