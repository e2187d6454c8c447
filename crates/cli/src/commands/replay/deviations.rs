//! The changes that the user wants in a replay.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use backstory_eventlog::event::Bytes;
use backstory_replay::plan::Deviations;

use crate::args::replay::ReplayArgs;
use crate::error::Failure;

/// The changes that the user wants.
pub fn of(args: &ReplayArgs) -> Result<Deviations, Failure> {
    let mut wanted = Deviations {
        allow_host: args.allow_host,
        network: args.network,
        env: variables(&args.env)?,
        command: args
            .command
            .iter()
            .map(|arg| arg.as_bytes().into())
            .collect(),
        ..Deviations::default()
    };
    for arg in &args.arg {
        let (number, value) = split(arg, "N=VALUE, as in --arg 2=-v")?;
        let number = number.to_str().and_then(|number| number.parse().ok());
        let number = number.ok_or_else(|| {
            Failure::misuse("--arg needs the number of an argument, as in --arg 2=-v")
        })?;
        wanted.args.push((number, value.as_bytes().into()));
    }
    for input in &args.input {
        let (old, new) = split(input, "OLD=NEW, as in --input data.csv=other.csv")?;
        wanted.inputs.push((old.into(), new.into()));
    }
    Ok(wanted)
}

/// Splits at the first equals sign. The part before it must not be empty.
pub fn split(text: &OsStr, what: &str) -> Result<(OsString, OsString), Failure> {
    let bytes = text.as_bytes();
    let at = bytes
        .iter()
        .position(|&byte| byte == b'=')
        .filter(|&at| at > 0);
    let at = at.ok_or_else(|| Failure::misuse(format!("{} is not {what}", text.display())))?;
    Ok((
        OsStr::from_bytes(&bytes[..at]).to_owned(),
        OsStr::from_bytes(&bytes[at + 1..]).to_owned(),
    ))
}

/// Reads `NAME=VALUE`, or `NAME` with the value of this environment.
pub fn variables(given: &[OsString]) -> Result<Vec<(Bytes, Bytes)>, Failure> {
    let one = |env: &OsString| {
        let (name, value) = match env.as_bytes().contains(&b'=') {
            true => split(env, "NAME=VALUE")?,
            false => {
                let missing = || {
                    Failure::misuse(format!(
                        "the variable {} is not set here: give --env NAME=VALUE",
                        env.display()
                    ))
                };
                (env.clone(), std::env::var_os(env).ok_or_else(missing)?)
            }
        };
        Ok((name.as_bytes().into(), value.as_bytes().into()))
    };
    given.iter().map(one).collect()
}
