//! The files that the words of commands name, once they were looked for.
//!
//! Each word is compared with all files of its command, and an answer joins its commands several
//! times. So an account keeps what was found. The module `siblings` looks for the files.

use std::sync::OnceLock;

/// A file in a word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedFile {
    /// Where in the word its name begins.
    pub(crate) start: usize,
    /// The command made it.
    pub(crate) made: bool,
}

/// The file that each word of a command names.
pub(crate) type NamedFiles = OnceLock<Vec<Option<NamedFile>>>;
