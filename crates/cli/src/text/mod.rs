//! Answers as text for people: shell lines, trees, tables, graphs in Graphviz's language.
//!
//! Invariant: these modules are pure. Plain data goes in, text comes out.
pub mod account;
pub mod branches;
mod change_statements;
pub mod command;
pub mod conversations;
pub mod csv;
pub mod dot;
pub mod line;
pub mod outline;
pub mod paths;
pub mod plan;
pub mod progress;
pub mod row_history;
pub mod shell;
pub mod similar;
pub mod statement_columns;
pub mod style;
pub mod table_history;
pub mod tree;
pub mod when;
pub mod words;
