//! In: a store. Out: answers to questions about provenance, as plain data. Reads only; never prints.
//!
//! Questions (each `fn(&dyn Store, ...) -> Result<_, Error>`): `runs`, `details(run)`, `files(run)`, `processes(run)`,
//! `ancestry(path, scope)` for `of`, `influence(path, scope)` for `uses`, `status(paths)`; and `resolve(run_or_name)`.
//! `index(home, store)` brings the store up to date with the sealed logs first.
pub mod answer;
