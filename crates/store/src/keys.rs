//! Numbers by which a store names runs, activities and entities.

use backstory_graph::model::{ActivityId, EntityId};

/// A run's number in one store. A run appended later has a greater number. No number is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey(pub u32);

/// An activity of the whole store: its run's number << 32 | its id in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActivityKey(pub u64);

/// An entity of the whole store: its run's number << 32 | its id in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityKey(pub u64);

macro_rules! key {
    ($key:ident, $local:ident) => {
        impl $key {
            /// The key of `local` in `run`.
            pub fn new(run: RunKey, local: $local) -> Self {
                $key(u64::from(run.0) << 32 | u64::from(local.0))
            }
            /// Its run.
            pub fn run(self) -> RunKey {
                RunKey((self.0 >> 32) as u32)
            }
            /// Its id in the run.
            pub fn local(self) -> $local {
                $local(self.0 as u32)
            }
        }
    };
}
key!(ActivityKey, ActivityId);
key!(EntityKey, EntityId);
