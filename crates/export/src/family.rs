//! The purposes of formats.

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

impl Family {
    /// True if its formats hold contents of files, or their digests.
    pub fn holds_contents(self) -> bool {
        match self {
            Family::Data | Family::Standard | Family::Container => true,
            Family::Workflow | Family::Picture => false,
        }
    }
}
