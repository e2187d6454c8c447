//! The list of all formats.

use crate::ImportFormat;

/// All formats, in the order in which they are listed.
pub const FORMATS: &[&dyn ImportFormat] = &[
    &crate::strace::StraceFormat,
    &crate::audit::AuditFormat,
    &crate::bpftrace::BpftraceFormat,
    &crate::nextflow::NextflowFormat,
    &crate::openlineage::OpenLineageFormat,
    &crate::probe::ProbeFormat,
    &crate::prov_json::ProvJsonFormat,
    &crate::reprozip::ReproZipFormat,
    &crate::ro_crate::RoCrateFormat,
    &crate::snakemake::SnakemakeFormat,
    &crate::spade::SpadeFormat,
];

/// The format with this name.
pub fn format(name: &str) -> Option<&'static dyn ImportFormat> {
    FORMATS.iter().copied().find(|format| format.name() == name)
}
