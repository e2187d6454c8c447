//! One operation of a call on a file, in the words of `files --json`.

use serde::Deserialize;

/// A kind of access, as `files --json` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Word {
    Read,
    Write,
    Delete,
    Rename,
    Exec,
    Stat,
    Dir,
    Missing,
    Link,
    Meta,
}

/// One operation on one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Words, any of which reports the fact. A permitted fact permits all of them.
    pub words: Vec<Word>,
    /// The file's absolute path as the program named it, and as the kernel resolved it where strace
    /// prints that.
    pub names: Vec<Vec<u8>>,
    /// An answer must contain it.
    pub required: bool,
    /// The call was about the target of a symbolic link, not the link itself.
    pub follows: bool,
    /// The call, for messages.
    pub call: String,
}
