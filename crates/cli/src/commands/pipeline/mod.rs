//! `pipeline`: shows, changes and tests the filters between recorded runs and the store.

mod edit;
mod show;
mod test;

use std::path::Path;

use super::{Outcome, answer};
use crate::args::pipeline::PipelineCommand;

/// Does what the command says.
pub fn run(command: PipelineCommand, store: Option<&Path>) -> Outcome {
    match command {
        PipelineCommand::Show(args) => show::run(&args, store),
        PipelineCommand::Add(args) => edit::add(*args, store),
        PipelineCommand::Remove(args) => edit::remove(&args, store),
        PipelineCommand::Test(args) => test::run(&args, store),
    }
}
