//! The engine that runs components, its limits, and its errors.

use backstory_inspect::UnreadableContent;
use wasmtime::{Config, Engine, Trap};

/// Instructions that a component may execute.
pub const FUEL: u64 = 400_000_000;

/// Bytes of a component's memory. Two contents and what it makes of them must fit.
pub const MEMORY: usize = 128 << 20;

/// Bytes of a component's stack.
const STACK: usize = 512 << 10;

/// An engine that reserves hardly any address space, which the sandbox limits.
pub(crate) fn engine() -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config
        .target("pulley64")?
        .consume_fuel(true)
        .max_wasm_stack(STACK)
        .memory_reservation(0)
        .memory_reservation_for_growth(1 << 20)
        .memory_guard_size(0)
        .memory_init_cow(false)
        .signals_based_traps(false);
    Engine::new(&config)
}

/// Why a call did not return.
pub(crate) fn stopped(error: wasmtime::Error) -> UnreadableContent {
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => UnreadableContent(format!(
            "the inspector was ended after {} million instructions",
            FUEL / 1_000_000
        )),
        Some(trap) => UnreadableContent(format!("the inspector failed: {trap}")),
        None => because("the inspector failed", &error),
    }
}

/// An error with its first cause, which names the function or import.
pub(crate) fn because(what: &str, error: &wasmtime::Error) -> UnreadableContent {
    UnreadableContent(format!("{what}: {}", error.root_cause()))
}

pub(crate) fn whole_chain(error: wasmtime::Error) -> UnreadableContent {
    UnreadableContent(format!("{error:#}"))
}
