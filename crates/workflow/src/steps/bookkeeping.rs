//! Files in which builders keep track of their own work, or plan it.
//!
//! In: an activity and the path of a file that it read. Out: whether the content of that file can
//! be in what the activity, or a command that it started, made.
//!
//! A builder reads such a file to find out which commands are out of date. That decides whether a
//! command runs, and never what the command makes. So the file ties no steps together: the
//! compiler of `check.c` wrote `check.o.d`, and ninja read it, but ninja's other commands made
//! nothing from `check.c`.

use backstory_graph::model::EntityId;

use super::programs::is_builder;
use crate::paths::{is_dependency_file, is_in_temporary_directory, is_record};
use crate::recording::Recording;

/// True if an activity read the file at `path` only to find out which commands must run. Such a
/// file is a builder's record of its own work, or a dependency file that a builder read. For a
/// compiler that reads it, a dependency file is a file like others.
pub fn is_bookkeeping(recording: &Recording, at: usize, path: &[u8]) -> bool {
    is_record(path) || is_read_by_builder(recording, at, path)
}

/// True if the file at `path` is a dependency file, and a builder read it.
pub fn is_read_by_builder(recording: &Recording, at: usize, path: &[u8]) -> bool {
    is_dependency_file(path) && is_builder(recording, at)
}

/// True if a builder read a temporary file only to plan its work. The run made the file in a
/// directory of temporary files, and removed it. Snakemake asks a solver in this way for the next
/// job.
pub fn is_plan(recording: &Recording, at: usize, file: EntityId) -> bool {
    let file = recording.entity(file);
    file.version > 0
        && !file.last
        && is_in_temporary_directory(&file.path)
        && is_builder(recording, at)
}
