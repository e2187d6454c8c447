//! Runs a user's filter of graphs that is a WebAssembly component.
//!
//! In: a component of the world `filter` (`wit/filter.wit`), and lines about nodes. Out: the lines
//! that it returned. The limits are those of an inspector.

use backstory_inspect::{Read, UnreadableContent};
use wasmtime::component::{Component, Linker};
use wasmtime::{Store, StoreLimits, StoreLimitsBuilder};

use crate::component_engine::{FUEL, MEMORY, because, engine, stopped, whole_chain};

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
    let engine = engine().map_err(whole_chain)?;
    let component = Component::new(&engine, component)
        .map_err(|error| because("it is not a WebAssembly component", &error))?;
    let mut linker = Linker::new(&engine);
    linker
        .define_unknown_imports_as_traps(&component)
        .map_err(whole_chain)?;
    let limits = StoreLimitsBuilder::new().memory_size(MEMORY).build();
    let mut store = Store::new(&engine, limits);
    store.limiter(|limits: &mut StoreLimits| limits);
    store.set_fuel(FUEL).map_err(whole_chain)?;
    let filter = world::Filter::instantiate(&mut store, &component, &linker).map_err(|error| {
        because(
            "it does not fit the world backstory:inspect/filter@1.0.0",
            &error,
        )
    })?;
    let judged = filter.call_judge(&mut store, lines);
    judged.map_err(stopped)?.map_err(UnreadableContent)
}
