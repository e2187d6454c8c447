//! The answer of `status`: whether files are current, and why not.

use std::path::PathBuf;

use backstory_currency::{self as currency, FileStatus, Reason};
use backstory_store::Store;

use crate::columns::{AnswerTable, Columns};
use crate::failure::Failure;

/// One row for each of the files.
pub fn table(store: &dyn Store, paths: &[PathBuf]) -> Result<AnswerTable, Failure> {
    let files = currency::status(store, paths)?;
    let mut columns = Columns::default();
    let all = || files.iter();
    columns.paths("path", all().map(|file| Some(&file.path)));
    columns.text("run", all().map(|file| file.run.as_ref()));
    columns.labels("state", all().map(|file| Some(file.state.word())));
    let inputs = |file: &FileStatus| -> Vec<_> {
        let inputs = file.changed_inputs.iter();
        inputs.map(|(path, _)| path.clone()).collect()
    };
    columns.lists("changed_inputs", all().map(inputs));
    let reasons = |file: &FileStatus| -> Vec<Vec<u8>> {
        let one = |reason: &Reason| {
            let words = reason.words().as_bytes();
            [reason.subject().as_ref(), b" ", words].concat()
        };
        file.reasons.iter().map(one).collect()
    };
    columns.lists("reasons", all().map(reasons));
    Ok(columns.table())
}
