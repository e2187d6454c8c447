//! `GET /lineage`, `/lineage/hop` and `/lineage/fold`: the graph around a file.
//!
//! | module | what it does |
//! | --- | --- |
//! | `graph_rows` | the nodes and links of answers |
//! | `draft` | a graph in the making: noise and large groups of files become counted nodes |
//! | `process_graph` | the graph of processes and versions, from `query` |
//! | `command_graph` | the graph of commands and files, from `account` |
//! | `byte_marks` | which inputs gave the results no byte, where a run was refined |
//! | `question` | what a request asks |
//! | `routes` | the routes |

mod byte_marks;
mod command_graph;
mod draft;
mod graph_rows;
mod process_graph;
mod question;
mod routes;

pub use routes::*;
