//! The list of all formats that the program was compiled with.

use crate::ImportFormat;

/// All formats, in the order in which they are listed.
pub const FORMATS: &[&dyn ImportFormat] = &[
    #[cfg(feature = "strace")]
    &crate::strace::StraceFormat,
    #[cfg(feature = "auditd")]
    &crate::audit::AuditFormat,
    #[cfg(feature = "bpftrace")]
    &crate::bpftrace::BpftraceFormat,
    #[cfg(feature = "nextflow")]
    &crate::nextflow::NextflowFormat,
    #[cfg(feature = "openlineage")]
    &crate::openlineage::OpenLineageFormat,
    #[cfg(feature = "perf")]
    &crate::perf::PerfFormat,
    #[cfg(feature = "probe")]
    &crate::probe::ProbeFormat,
    #[cfg(feature = "prov-json")]
    &crate::prov_json::ProvJsonFormat,
    #[cfg(feature = "reprozip")]
    &crate::reprozip::ReproZipFormat,
    #[cfg(feature = "ro-crate")]
    &crate::ro_crate::RoCrateFormat,
    #[cfg(feature = "snakemake")]
    &crate::snakemake::SnakemakeFormat,
    #[cfg(feature = "spade")]
    &crate::spade::SpadeFormat,
];

/// The format with this name.
pub fn format(name: &str) -> Option<&'static dyn ImportFormat> {
    FORMATS.iter().copied().find(|format| format.name() == name)
}
