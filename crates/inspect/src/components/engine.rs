//! The engine that runs components, its limits, and its errors.

use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, Store, StoreLimits, StoreLimitsBuilder, Trap};

use crate::{Read, UnreadableContent};

/// Instructions that a component may execute.
pub const FUEL: u64 = 400_000_000;

/// Bytes of a component's memory. Two contents and what it makes of them must fit.
pub const MEMORY: usize = 128 << 20;

/// Bytes of a component's stack.
const STACK: usize = 512 << 10;

/// A component that can be instantiated once, within its limits.
pub(crate) struct PreparedComponent {
    pub(crate) component: Component,
    pub(crate) linker: Linker<StoreLimits>,
    pub(crate) store: Store<StoreLimits>,
}

impl PreparedComponent {
    /// Compiles a component.
    ///
    /// # Errors
    /// The bytes are no component.
    pub(crate) fn of(bytes: &[u8]) -> Read<PreparedComponent> {
        let engine = engine().map_err(whole_chain)?;
        let component = Component::new(&engine, bytes)
            .map_err(|error| because("it is not a WebAssembly component", &error))?;
        let mut linker = Linker::new(&engine);
        // Languages bring imports that a function of bytes never calls, as the arguments of a
        // program.
        linker
            .define_unknown_imports_as_traps(&component)
            .map_err(whole_chain)?;
        let limits = StoreLimitsBuilder::new().memory_size(MEMORY).build();
        let mut store = Store::new(&engine, limits);
        store.limiter(|limits: &mut StoreLimits| limits);
        store.set_fuel(FUEL).map_err(whole_chain)?;
        Ok(PreparedComponent {
            component,
            linker,
            store,
        })
    }
}

/// An engine that reserves hardly any address space, which the sandbox limits.
fn engine() -> wasmtime::Result<Engine> {
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
    one_line(&format!("{what}: {}", error.root_cause()))
}

pub(crate) fn whole_chain(error: wasmtime::Error) -> UnreadableContent {
    one_line(&format!("{error:#}"))
}

/// Wasmtime writes bytes one a line. The caller of the worker reads the last line.
fn one_line(text: &str) -> UnreadableContent {
    let words: Vec<&str> = text.split_whitespace().collect();
    UnreadableContent(words.join(" "))
}
