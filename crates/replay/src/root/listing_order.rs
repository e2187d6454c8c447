//! Puts directory entries into the recorded order: the results of `tar`, `find` or `os.listdir`
//! depend on it.
//!
//! A tmpfs lists its entries by age, the oldest or the newest first, depending on the kernel. An
//! entry that is renamed away and back is the newest.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_workflow::paths::to_path;

use crate::plan::Plan;
use crate::{Error, Result};

/// A name that no run uses.
const ASIDE: &str = ".backstory-order";

/// Orders the entries of all directories whose order the plan has.
pub fn put(plan: &Plan) -> Result<()> {
    if plan.orders.is_empty() {
        return Ok(());
    }
    let newest_first = is_newest_first()?;
    for (directory, names) in &plan.orders {
        let directory = to_path(directory);
        arrange(directory, names, newest_first).map_err(Error::io("put in order", directory))?;
    }
    Ok(())
}

fn arrange(directory: &Path, names: &[Vec<u8>], newest_first: bool) -> io::Result<()> {
    let now = listing(directory)?;
    let here: HashSet<&[u8]> = now.iter().map(|name| name.as_bytes()).collect();
    let mut wanted: Vec<&[u8]> = names
        .iter()
        .map(|name| &**name)
        .filter(|name| here.contains(name))
        .collect();
    let known: HashSet<&[u8]> = wanted.iter().copied().collect();
    let is: Vec<&[u8]> = now
        .iter()
        .map(|name| name.as_bytes())
        .filter(|name| known.contains(name))
        .collect();
    if is == wanted {
        return Ok(());
    }
    if newest_first {
        wanted.reverse();
    }
    wanted
        .into_iter()
        .try_for_each(|name| renew(directory, name))
}

/// Makes an entry the newest. A mount point stays in its place.
fn renew(directory: &Path, name: &[u8]) -> io::Result<()> {
    let (own, aside) = (directory.join(to_path(name)), directory.join(ASIDE));
    match fs::rename(&own, &aside) {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(()),
        moved => moved.and_then(|()| fs::rename(&aside, &own)),
    }
}

fn listing(directory: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(directory)?
        .map(|entry| Ok(entry?.file_name()))
        .collect()
}

/// True if this kernel lists the newest entry first.
pub fn is_newest_first() -> Result<bool> {
    probe().map_err(Error::io("try the order of", "/"))
}

fn probe() -> io::Result<bool> {
    let probe = Path::new("/").join(ASIDE);
    fs::create_dir(&probe)?;
    for name in ["a", "b"] {
        fs::write(probe.join(name), "")?;
    }
    renew(&probe, b"a")?;
    let first = listing(&probe)?.into_iter().next();
    fs::remove_dir_all(&probe)?;
    Ok(first.is_some_and(|first| first == "a"))
}
