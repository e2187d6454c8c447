//! `serve` of a program that was built without it.

use std::path::Path;

use super::Outcome;
use crate::args::serve::ServeArgs;
use crate::error::Failure;

/// Says how to get it.
pub fn run(_: ServeArgs, _: Option<&Path>) -> Outcome {
    Err(Failure::misuse(
        "this program was built without `serve` (cargo's --no-default-features); build it with the \
         default features, or install a package of backstory",
    ))
}
