//! Decides whether a run with `--guard=auto` starts without a filter.
//!
//! In: the options, the program and the environment of the command. Out: what is known about its
//! programs, the command's verdict among it. `None`: the run is recorded as with `--guard=on`.

use crate::Options;
use crate::inherited_state::InheritedState;
use crate::plain_programs::KnownPrograms;
use backstory_plain::Classifier;
use backstory_sys as sys;
use backstory_vocabulary::{ContentsMode, DurabilityMode, GuardMode, LookupsMode};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Descriptors that a process of the run can have at least.
const DESCRIPTORS: u64 = 64;
/// Variables that change what the loader and libc load.
const LOADER_VARIABLES: [&[u8]; 3] = [b"LD_", b"GLIBC_TUNABLES=", b"GCONV_PATH="];

/// The programs of a run that can start without a filter.
pub(crate) fn programs(
    options: &Options,
    program: &CStr,
    environment: &[Vec<u8>],
    state: &InheritedState,
) -> Option<KnownPrograms> {
    let wanted = options.guard == GuardMode::Auto && needs_no_requests(options);
    let suits = wanted && has_room(state) && !is_recorded();
    if !suits || environment.iter().any(|variable| is_loaders(variable)) {
        return None;
    }
    let mut classifier = Classifier::of_machine()?;
    if let Some(kept) = &options.verdicts {
        // Without it, the programs are classified anew.
        let _ = classifier.recall(kept);
    }
    let path = Path::new(OsStr::from_bytes(program.to_bytes()));
    Some(KnownPrograms::begin(classifier, path))
}

/// True if this process has the filter of another recording, which answers its requests.
fn is_recorded() -> bool {
    sys::answers_request(backstory_abi::MAGIC_WHICH, backstory_abi::MAGIC_FILTERED)
}

fn is_loaders(variable: &[u8]) -> bool {
    LOADER_VARIABLES
        .iter()
        .any(|name| variable.starts_with(name))
}

/// True if recorders send no requests that need the filter from the beginning.
fn needs_no_requests(options: &Options) -> bool {
    options.contents != ContentsMode::All
        && options.lookups == LookupsMode::Library
        && options.durability == DurabilityMode::After
        && options.lines.is_none()
        && options.deep.is_none()
        && options.functions.is_none()
        && !options.broker
}

/// True if the limits of the command leave a process room for the filter and the arena.
fn has_room(state: &InheritedState) -> bool {
    let [descriptors, _, memory] = &state.limits;
    descriptors.rlim_cur >= DESCRIPTORS && memory.rlim_cur == libc::RLIM_INFINITY
}
