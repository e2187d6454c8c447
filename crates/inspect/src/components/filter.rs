//! Runs a user's filter of graphs that is a WebAssembly component.
//!
//! In: a component of the world `filter` (`wit/filter.wit`), and lines about nodes. Out: the lines
//! that it returned. The limits are those of an inspector.

use super::engine::{PreparedComponent, because, stopped};
use crate::{Read, UnreadableContent};

mod world {
    // The macro writes the functions, which have the documentation of the file.
    #![allow(missing_docs, clippy::all, clippy::pedantic)]
    wasmtime::component::bindgen!({ path: "wit", world: "filter" });
}

/// The verdicts of a component about nodes.
///
/// # Errors
/// The bytes are no such component, or it stopped, or it refused.
pub fn judge(component: &[u8], lines: &str) -> Read<String> {
    let PreparedComponent {
        component,
        linker,
        mut store,
    } = PreparedComponent::of(component)?;
    let filter = world::Filter::instantiate(&mut store, &component, &linker).map_err(|error| {
        because(
            "it does not fit the world backstory:inspect/filter@1.0.0",
            &error,
        )
    })?;
    let judged = filter.call_judge(&mut store, lines);
    judged.map_err(stopped)?.map_err(UnreadableContent)
}
