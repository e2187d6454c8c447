//! The part of a store that measures and shrinks it.
//!
//! Every method has a default. An engine overrides `stats` for its bytes, the others if removed
//! runs leave something behind.

use crate::{GraphStore, Result, StoreStats};

/// Maintenance of a store. Object safe.
pub trait Maintenance: GraphStore {
    /// How big the store is. By default the sums over all runs, with 0 bytes.
    fn stats(&self) -> Result<StoreStats> {
        let mut stats = StoreStats::default();
        for run in self.runs()? {
            stats.runs += 1;
            stats.counts.activities += run.counts.activities;
            stats.counts.entities += run.counts.entities;
            stats.counts.edges += run.counts.edges;
            stats.counts.files_read += run.counts.files_read;
            stats.counts.files_written += run.counts.files_written;
        }
        Ok(stats)
    }

    /// Removes, atomically, what runs shared and no run refers to any more. By default runs share
    /// nothing.
    fn forget_unreferred(&mut self) -> Result<()> {
        Ok(())
    }

    /// Gives the room of removed records back to the file system. May fail for want of room to do
    /// so; then the store is as it was.
    fn compact(&mut self) -> Result<()> {
        Ok(())
    }
}
