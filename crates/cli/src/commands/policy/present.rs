//! Compares the file on the disk with the version that a policy judges.
//!
//! In: the view of a file, and its inventory. Out: nothing, or why the file is not the judged one.
//!
//! Invariant: a file whose bytes could not be compared is refused. A run has no present file: its
//! recorded versions are judged.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_contents::digest_of;
use backstory_export::View;
use backstory_export::inventory::{Inventory, InventoryFile};
use backstory_files::regular;

use crate::error::{Failure, one_line};

/// The BLAKE3 digest of a recorded version, in hexadecimal.
pub fn recorded_digest(view: &View, item: &InventoryFile) -> Option<String> {
    // The content of a file that was not stored is read from the file itself.
    let content = view.contents.of(item.run, &item.path, item.version);
    let recorded = content.and_then(|content| content.digest);
    let sums = || item.sums.as_ref().map(|sums| sums.blake3.clone());
    recorded.map(|digest| digest.to_string()).or_else(sums)
}

/// Refuses a file whose present bytes are not those of its newest recorded version.
pub fn compare(view: &View, inventory: &Inventory) -> Result<(), Failure> {
    let Some(path) = &view.requested else {
        return Ok(());
    };
    let Some(item) = inventory.items.iter().rfind(|item| item.result) else {
        return Ok(());
    };
    let run = &view.runs[item.run].summary.id;
    let name = one_line(&String::from_utf8_lossy(path));
    let remedy = format!(
        "`backstory policy verify {run}` judges the files as the run left them, without the \
         present ones"
    );
    let refused = |why: String| Failure::not_found(format!("{name} {why}; {remedy}"));
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let present = match regular::open(path).and_then(|mut file| digest_of(&mut file)) {
        Ok((digest, _)) => digest.to_string(),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(refused(format!(
                "is gone since run {run} left it: there is nothing to accept"
            )));
        }
        Err(error) => return Err(refused(format!("cannot be read: {error}"))),
    };
    match recorded_digest(view, item) {
        Some(recorded) if recorded == present => Ok(()),
        Some(recorded) => Err(refused(format!(
            "is not the file that run {run} left: its BLAKE3 digest is {present}, and {recorded} \
             was recorded"
        ))),
        None => Err(refused(format!(
            "cannot be compared with the file that run {run} left: no digest of it was recorded, \
             and the file changed since (now BLAKE3 {present})"
        ))),
    }
}
