//! What a format is, and which there are.
//!
//! To add one: a file in `formats/` with a type that implements [`Format`], a line in [`ALL`], a line in `docs/export.md`, and a test
//! in which the tool named by `proven_by` reads it.

use std::io::Write;
use std::path::Path;

use crate::formats;
use crate::{Error, Result, View};

/// Where a format writes to. What it writes is kept only if it succeeds.
pub enum Target<'t> {
    /// One file, or stdout.
    Stream(&'t mut dyn Write),
    /// An empty directory.
    Directory(&'t Path),
}

/// What a format makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One file.
    Stream,
    /// A directory of files.
    Directory,
}

/// What the caller should use it for.
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
    /// What the user types.
    fn name(&self) -> &'static str;
    /// What it is, in a few words.
    fn about(&self) -> &'static str;
    /// What it is for.
    fn family(&self) -> Family;
    /// The tool that reads it in our tests.
    fn proven_by(&self) -> &'static str;
    /// One file or many.
    fn shape(&self) -> Shape {
        Shape::Stream
    }
    /// True if it holds files' contents, and so needs a run that kept them.
    fn needs_contents(&self) -> bool {
        false
    }
    /// What the user should know of this result beside what [`View::warnings_for`] says, a line each.
    fn warnings(&self, _view: &View) -> Vec<String> {
        Vec::new()
    }
    /// What the user does with the result, in one line, if there is something to say: OUT stands for the target.
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
            // `export` gives each format what its shape asks for.
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
