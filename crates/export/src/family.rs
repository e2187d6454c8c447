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
