//! How an engine uses the machine: the same choice for every engine, so that they can be compared.

/// How an engine uses the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOptions {
    /// Bytes of memory for pages that were read, and for rows that are not in their place yet.
    pub memory: usize,
    /// Whether each commit waits for the disk. If not, a power cut may remove the newest runs from
    /// the database, but not their logs. A commit of redb always waits.
    pub synced: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            memory: 32 << 20,
            synced: false,
        }
    }
}
