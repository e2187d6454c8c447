//! `backstory watch` of databases, with real servers of the tests' own.

#![allow(clippy::unwrap_used)]

mod accuracy;
mod busy;
mod change_statements;
mod clients;
mod column_truths;
mod columns;
mod functions;
mod gaps;
mod late_lines;
mod lineage;
mod mariadb;
mod mariadb_accuracy;
mod mariadb_gaps;
mod mariadb_resolution;
mod place;
mod resolution;
mod row_images;
mod server_settings;
mod statements_alone;
