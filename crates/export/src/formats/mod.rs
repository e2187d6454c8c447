//! The formats, one file each, and the words and labels that several of them use.

mod acts;
mod cdm;
mod compile_commands;
mod container;
mod cwl;
mod cyclonedx;
mod dot;
mod ecs;
mod graphml;
mod in_toto;
mod in_toto_link;
mod make;
mod mermaid;
mod neo4j;
mod nextflow;
mod ninja;
mod notation;
mod ocsf;
mod openlineage;
mod openlineage_jobs;
mod opm;
mod opm_calls;
mod opm_element;
mod parquet;
mod perfetto;
mod protobuf;
mod prov;
mod reprozip;
mod ro_crate;
mod ro_crate_ids;
mod ro_crate_jobs;
mod ro_crate_run;
mod shell;
mod snakemake;
mod spdx;
mod svg;

pub use cdm::Cdm;
pub use compile_commands::CompileCommands;
pub use container::{DockerArchive, Dockerfile, Oci, OciArchive};
pub use cwl::Cwl;
pub use cyclonedx::CycloneDx;
pub use dot::{Dot, quoted as dot_string};
pub use ecs::Ecs;
pub use graphml::GraphMl;
pub use in_toto::InToto;
pub use in_toto_link::InTotoLink;
pub use make::Make;
pub use mermaid::Mermaid;
pub use neo4j::Neo4j;
pub use nextflow::Nextflow;
pub use ninja::Ninja;
pub use ocsf::Ocsf;
pub use openlineage::OpenLineage;
pub use opm::{Opm, opm_elements};
pub use opm_element::{OpmElement, opm_value};
pub use parquet::Parquet;
pub use perfetto::Perfetto;
pub use prov::{ProvJson, ProvN};
pub use reprozip::ReproZip;
pub use ro_crate::RoCrate;
pub use shell::Shell;
pub use snakemake::Snakemake;
pub use spdx::Spdx;
pub use svg::Svg;

use backstory_graph::model::Informed;
use backstory_query::ByteUse;
use backstory_query::answer::Flow;

use crate::View;
use crate::view::{Level, ViewEntity, ViewLink};

/// The word for a flow.
fn word(flow: Flow) -> &'static str {
    match flow {
        Flow::Used(relation) | Flow::Generated(relation) => relation.words().label,
        Flow::Derived => "derived",
        Flow::Same => "same",
        Flow::Alike => "same content",
        Flow::Informed(why) => why.words().label,
    }
}

/// The label of an arrow: the word for its flow, and whether bytes of an input came any further.
fn arrow_label(link: &ViewLink) -> String {
    match link.bytes {
        Some(ByteUse::Absent) => format!("{}, no byte", word(link.flow)),
        _ => word(link.flow).to_owned(),
    }
}

/// The paths of the inputs of which an entity has no byte.
fn no_byte_of<'v>(view: &'v View, entity: &'v ViewEntity) -> impl Iterator<Item = &'v [u8]> {
    let inputs = entity.no_byte_of.iter();
    inputs.map(|&input| &*view.entities[input].path)
}

/// True for the flow from an activity to one that it started.
fn starts(flow: Flow) -> bool {
    matches!(flow, Flow::Informed(Informed::Fork | Informed::Exec))
}

/// A file's name from the directory of the run, with its version if that is not the first.
fn entity_label(view: &View, entity: &ViewEntity) -> String {
    let path = String::from_utf8_lossy(view.shown(&entity.path)).into_owned();
    match entity.version {
        0 | 1 => path,
        version => format!("{path} (version {version})"),
    }
}

/// A command's label, cut after 80 characters: nobody pastes it from a picture. lint-prose: allow
fn shorten(line: &str) -> String {
    match line.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

/// The links that a picture shows. Waits and signals between processes are shown at [`Level::All`]
/// only.
fn drawn(view: &View) -> impl Iterator<Item = &ViewLink> {
    let all = view.level == Level::All;
    view.links
        .iter()
        .filter(move |link| all || !matches!(link.flow, Flow::Informed(_)) || starts(link.flow))
}

/// Text in XML. Characters that XML forbids become blanks.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
