//! The list of all formats.
//!
//! A new format needs:
//!
//! - a file in `formats/` with a type that implements [`Format`], and a line in [`ALL`],
//! - a golden file in `tests/goldens/expected/`,
//! - a test in which the tool named by `proven_by` reads it,
//! - a line in `docs/export.md`.

use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats;

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
    &formats::Cdm,
    &formats::CompileCommands,
    &formats::GraphMl,
    &formats::Neo4j,
    &formats::Opm,
    &formats::Parquet,
    &formats::CycloneDx,
    &formats::Ecs,
    &formats::InToto,
    &formats::InTotoLink,
    &formats::Ocsf,
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
    found.copied().ok_or_else(|| Error::NoFormat {
        name: name.to_owned(),
        known: names().join(", "),
    })
}

/// All names.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|format| format.name()).collect()
}
