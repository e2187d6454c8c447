//! The trait of formats, and the list of all formats.
//!
//! A new format needs:
//!
//! - a file in `formats/` with a type that implements [`Format`], and a line in [`ALL`],
//! - a golden file in `tests/goldens/expected/`,
//! - a test in which the tool named by `proven_by` reads it,
//! - a line in `docs/export.md`.

use std::io::Write;
use std::path::Path;

use crate::formats;
use crate::{Error, Result, View};

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

/// The purpose of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Runs the steps again.
    Workflow,
    /// Shows the graph.
    Picture,
    /// The graph for other programs.
    Data,
    /// A standard's document.
    Standard,
    /// A file system to run it in.
    Container,
}

/// A way to write a [`View`] down.
pub trait Format: Sync {
    /// The name on the command line.
    fn name(&self) -> &'static str;
    /// The description in the list of formats.
    fn about(&self) -> &'static str;
    /// Its purpose.
    fn family(&self) -> Family;
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

/// All formats, by family and name.
pub const ALL: &[&dyn Format] = &[
    &formats::Cwl,
    &formats::Make,
    &formats::Nextflow,
    &formats::Ninja,
    &formats::Shell,
    &formats::Snakemake,
    &formats::Dot,
    &formats::Mermaid,
    &formats::Perfetto,
    &formats::Svg,
    &formats::CompileCommands,
    &formats::GraphMl,
    &formats::Parquet,
    &formats::CycloneDx,
    &formats::InToto,
    &formats::OpenLineage,
    &formats::ProvJson,
    &formats::ProvN,
    &formats::RoCrate,
    &formats::Spdx,
    &formats::DockerArchive,
    &formats::Dockerfile,
    &formats::Oci,
    &formats::OciArchive,
    &formats::ReproZip,
];

/// The format of this name.
pub fn find(name: &str) -> Result<&'static dyn Format> {
    let found = ALL.iter().find(|format| format.name() == name);
    found
        .copied()
        .ok_or_else(|| Error::NoFormat(name.to_owned()))
}

/// All names.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|format| format.name()).collect()
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
