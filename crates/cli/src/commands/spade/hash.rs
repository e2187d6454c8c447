//! The hashes by which SPADE names vertices and edges of a graph that its reporter `DSL` has read.
//!
//! A vertex has the MD5 digest of its id. An edge has that of the hashes of its ends with its
//! annotations in between, as Java prints a map.

use backstory_export::{OpmElement, opm_value};
use md5::{Digest, Md5};

use super::graph::{BaseGraph, value};

/// The hash of a vertex.
pub(super) fn of_vertex(vertex: &OpmElement) -> String {
    let id = opm_value(value(vertex, "id").unwrap_or_default());
    let is_hash = id.len() == 32 && id.iter().all(u8::is_ascii_hexdigit);
    match is_hash {
        true => String::from_utf8_lossy(&id).into_owned(),
        false => digest(&id),
    }
}

/// The hash of an edge, by its position.
pub(super) fn of_edge(base: &BaseGraph, edge: usize) -> String {
    let ends = base.ends[edge];
    let annotations = base.edges[edge].annotations.iter();
    let mut annotations: Vec<(&str, Vec<u8>)> = annotations
        .filter(|(key, _)| !matches!(key.as_ref(), "from" | "to"))
        .map(|(key, value)| (key.as_ref(), opm_value(value)))
        .collect();
    annotations.sort_unstable();
    let annotations: Vec<String> = annotations
        .iter()
        .map(|(key, value)| format!("{key}={}", String::from_utf8_lossy(value)))
        .collect();
    let [effect, cause] = [ends.effect, ends.cause].map(|end| of_vertex(&base.vertices[end]));
    digest(format!("{effect},{{{}}},{cause}", annotations.join(", ")).as_bytes())
}

fn digest(text: &[u8]) -> String {
    let bytes = Md5::digest(text);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
