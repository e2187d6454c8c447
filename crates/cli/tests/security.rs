//! Nobody gets in: the claims of `docs/security.md`, each with a test that is named after it.

// A test stops where something is not as it must be; the lint's own exception covers only functions marked as tests.
#![allow(clippy::unwrap_used)]

#[path = "oracle/common.rs"]
mod common;
#[path = "security/hostile.rs"]
mod hostile;
#[path = "security/imports.rs"]
mod imports;
#[path = "security/others.rs"]
mod others;
#[path = "security/page.rs"]
mod page;
#[path = "security/terminal.rs"]
mod terminal;
