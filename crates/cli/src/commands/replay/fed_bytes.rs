//! The option `--feed`: other bytes in the place of recorded input.

use std::ffi::OsStr;
use std::fs;

use super::deviations::split;
use crate::args::replay::ReconstructionArgs;
use crate::error::Failure;

/// Bytes for descriptors, and those for the chosen request.
pub type FedBytes = (Vec<(i32, Vec<u8>)>, Option<Vec<u8>>);

/// Reads the files of `--feed`.
pub fn fed_bytes(given: &ReconstructionArgs) -> Result<FedBytes, Failure> {
    let (mut inputs, mut of_request) = (Vec::new(), None);
    let is_one = matches!(given.request[..], [(first, last)] if first == last);
    for feed in &given.feed {
        let (target, file) = split(feed, "FD=FILE, as in --feed 0=other.txt")?;
        let fd = target.to_str().and_then(|fd| fd.parse().ok());
        match fd {
            Some(fd) => inputs.push((fd, read(&file)?)),
            None if target == "request" && is_one => of_request = Some(read(&file)?),
            None if target == "request" => {
                return Err(Failure::misuse(
                    "--feed request=FILE needs one request, as in --request 7",
                ));
            }
            None => {
                return Err(Failure::misuse(
                    "--feed needs a descriptor and a file, as in --feed 0=other.txt",
                ));
            }
        }
    }
    Ok((inputs, of_request))
}

fn read(file: &OsStr) -> Result<Vec<u8>, Failure> {
    fs::read(file).map_err(|error| {
        Failure::not_found(format!("--feed cannot read {}: {error}", file.display()))
    })
}
