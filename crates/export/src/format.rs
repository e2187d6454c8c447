//! The trait of formats, and the targets that they write to.

use std::io::Write;
use std::path::Path;

use crate::error::Result;
use crate::family::Family;
use crate::view::{Level, View};

/// The target of a format. It is kept only if the format succeeds.
pub enum Target<'t> {
    /// One file, or stdout.
    Stream(&'t mut dyn Write),
    /// An empty directory.
    Directory(&'t Path),
}

/// The shape of a format's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One file.
    Stream,
    /// A directory of files.
    Directory,
}

/// A way to write a [`View`] down.
pub trait Format: Sync {
    /// The name on the command line.
    fn name(&self) -> &'static str;
    /// The description in the list of formats.
    fn about(&self) -> &'static str;
    /// Its purpose.
    fn family(&self) -> Family;
    /// The level of detail that its readers expect.
    fn default_level(&self) -> Level {
        Level::Command
    }
    /// True if the result is to be executed. Such a result holds the steps that `rerun` would run,
    /// and no step of a run that only made an equal content.
    fn is_executed(&self) -> bool {
        matches!(self.family(), Family::Workflow | Family::Container)
    }
    /// The tool that reads it in the end-to-end tests.
    fn proven_by(&self) -> &'static str;
    /// One file, or a directory.
    fn shape(&self) -> Shape {
        Shape::Stream
    }
    /// True if it holds contents of files, and so needs a run with contents.
    fn needs_contents(&self) -> bool {
        false
    }
    /// True if it has a place for the seals of the runs.
    fn carries_evidence(&self) -> bool {
        false
    }
    /// True for an in-toto statement, which a signature can cover.
    fn is_attestation(&self) -> bool {
        false
    }
    /// True if it has a place for the marks of bytes on links.
    fn marks_bytes(&self) -> bool {
        matches!(self.family(), Family::Data | Family::Picture)
    }
    /// True if it can write the calls of functions that a run recorded.
    fn writes_calls(&self) -> bool {
        false
    }
    /// True if it says what the result depends on beside its inputs.
    fn judges_hermeticity(&self) -> bool {
        false
    }
    /// Warnings about this result, one a line, beside those of [`View::warnings_for`].
    fn warnings(&self, _view: &View) -> Vec<String> {
        Vec::new()
    }
    /// The next command of the user, if there is one: OUT stands for the target.
    fn hint(&self) -> Option<&'static str> {
        None
    }
    /// Writes the view. `target` is as [`Format::shape`] says.
    fn write(&self, view: &View, target: Target<'_>) -> Result<()>;
}

/// Writes what the reader of a file that is executed must know, as comments that begin with `#`.
///
/// # Errors
///
/// If `out` cannot be written.
pub fn write_head(view: &View, out: &mut dyn Write) -> Result<()> {
    for sentence in &view.head {
        writeln!(out, "# {}", sentence.replace('\n', " "))?;
    }
    Ok(())
}

impl<'t> Target<'t> {
    /// The stream of a format of [`Shape::Stream`].
    pub fn stream(self) -> &'t mut dyn Write {
        match self {
            Target::Stream(out) => out,
            // `export` passes the target that the format's shape requires.
            Target::Directory(_) => unreachable!("a stream was asked for"),
        }
    }

    /// The directory of a format of [`Shape::Directory`].
    pub fn directory(self) -> &'t Path {
        match self {
            Target::Directory(path) => path,
            // As above.
            Target::Stream(_) => unreachable!("a directory was asked for"),
        }
    }
}
