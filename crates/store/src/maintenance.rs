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
            stats.counts += run.counts;
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
