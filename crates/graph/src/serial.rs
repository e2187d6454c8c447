//! Numbers of epochs within the fold.

/// The number of an epoch within the fold. An epoch has it before the fold knows whether the epoch
/// becomes a node. A [`crate::model::ActivityId`] exists only for nodes.
pub type Serial = u32;
