//! The logs of whole runs: files that the shell opened for the output of `backstory record`.
//!
//! In: a run. Out: the files that belong to its caller, like a terminal or a pipe, although the run
//! wrote to them. Such a file is no result to make again: the log of `backstory record make > log`
//! tells about the results. A file of the standard output is a result if the run left no other file
//! of the user's own, as in `backstory record sort in > out`.

use std::cell::RefCell;
use std::path::Path;

use backstory_query as query;
use backstory_store::Store;

use crate::Result;
use crate::ownership::Ownership;

/// The absolute paths of the files of a run's standard output and errors that are no results.
///
/// # Errors
///
/// If the store fails, or does not have the run.
pub fn callers_files(store: &dyn Store, run: &str) -> Result<Vec<Vec<u8>>> {
    let directory = query::facts(store, run)?.summary.cwd;
    let ownership = RefCell::new(Ownership::new(Path::new("/"), [&*directory]));
    let own = |path: &[u8]| ownership.borrow_mut().is_own_result(path);
    Ok(query::callers_files(store, run, &own)?)
}
