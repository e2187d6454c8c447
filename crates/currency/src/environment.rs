//! The environment in which a step runs again.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use backstory_eventlog::event::Bytes;
use backstory_query::answer::RunDetails;
use backstory_redaction as redaction;
use backstory_workflow::recording::split;

/// The environment of a run's steps, with the changed variables. If an imported log does not have
/// it, it is the caller's own.
pub fn environment_of(details: &RunDetails, different: &[(Bytes, Bytes)]) -> Vec<(Bytes, Bytes)> {
    if details.imported.is_none() || !details.environment.is_empty() {
        return environment(&details.environment, different);
    }
    let pair = |(name, value): (OsString, OsString)| {
        let pair = [name.as_bytes(), b"=", value.as_bytes()].concat();
        Bytes::from(pair)
    };
    let own: Vec<Bytes> = std::env::vars_os().map(pair).collect();
    environment(&own, different)
}

/// The recorded environment with the changed variables. A redacted value is replaced by the
/// caller's own.
pub fn environment(recorded: &[Bytes], different: &[(Bytes, Bytes)]) -> Vec<(Bytes, Bytes)> {
    let mut all: Vec<(Bytes, Bytes)> = Vec::new();
    for (name, value) in recorded.iter().filter_map(|pair| split(pair)) {
        if different.iter().any(|(given, _)| **given == *name) {
            continue;
        }
        let value = match redaction::is_value_mark(value) {
            true => std::env::var_os(std::ffi::OsStr::from_bytes(name))
                .map(|value| value.into_vec().into()),
            false => Some(value.into()),
        };
        all.extend(value.map(|value| (name.into(), value)));
    }
    all.extend(different.iter().cloned());
    all
}
