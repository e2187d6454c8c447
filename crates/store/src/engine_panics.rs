//! Tells a panic of an engine on a damaged file from a fault of this program.
//!
//! In: the database that the engine of this thread reads. Out: that database, for the hook of a
//! panic. A program that unwinds gets [`Error::Corrupt`] as from any other damage. A program that
//! aborts on a panic can print the same error in its hook, and exit.

use std::any::Any;
use std::cell::RefCell;
use std::panic::PanicHookInfo;
#[cfg(feature = "rust-engine")]
use std::path::Path;
use std::path::PathBuf;

use crate::Error;

/// The database that the engine of a thread reads or writes.
struct EngineWork {
    /// How many calls of the engine are open. 0: the engine does not work.
    depth: u32,
    /// The database of the last call.
    path: Option<PathBuf>,
}

thread_local! {
    static WORK: RefCell<EngineWork> = const {
        RefCell::new(EngineWork { depth: 0, path: None })
    };
}

/// The engine of this thread works until this is dropped.
#[cfg(feature = "rust-engine")]
pub struct EngineAtWork(());

/// Says that the engine of this thread works on a database from now on. Called for each row, so
/// that it allocates nothing for a database that it knows.
#[cfg(feature = "rust-engine")]
pub fn working_on(path: &Path) -> EngineAtWork {
    WORK.with_borrow_mut(|work| {
        work.depth += 1;
        if work.path.as_deref() != Some(path) {
            work.path = Some(path.to_owned());
        }
    });
    EngineAtWork(())
}

#[cfg(feature = "rust-engine")]
impl Drop for EngineAtWork {
    fn drop(&mut self) {
        WORK.with_borrow_mut(|work| work.depth -= 1);
    }
}

/// The error that a panic on this thread stands for, if an engine has panicked on a file. For the
/// hook of a panic, in a program that aborts.
pub fn damaged_by_panic(panic: &PanicHookInfo<'_>) -> Option<Error> {
    let path = WORK.with(|work| {
        let work = work.try_borrow().ok()?;
        work.path.clone().filter(|_| work.depth > 0)
    })?;
    Some(Error::Corrupt {
        path,
        detail: message(panic.payload()).to_owned(),
    })
}

/// The message of a panic.
pub fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it cannot be decoded")
}
