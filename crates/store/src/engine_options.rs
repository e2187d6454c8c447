//! How an engine uses the machine: the same choice for every engine, so that they can be compared.

/// How an engine uses the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineOptions {
    /// Bytes of memory for pages that were read, and for rows that are not in their place yet.
    /// `None`: as much as the engine usually takes.
    pub memory: Option<usize>,
    /// Whether each commit waits for the disk. If not, a power cut may remove the newest runs from
    /// the database, but not their logs. A commit of redb always waits.
    pub synced: bool,
    /// Whether the whole database is read and checked before anything in it is believed. Damage is
    /// an error then, on every engine that can check itself.
    pub examined: bool,
}
