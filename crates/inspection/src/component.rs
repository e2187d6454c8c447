//! Reads the WebAssembly component of a user's inspector.

use std::io::{self, Read};
use std::path::Path;

use crate::{InspectorEntry, LARGEST_COMPONENT, Trouble};

/// The bytes of the component. `None` if the inspector is of another kind.
///
/// # Errors
/// [`Trouble::NoComponent`]
pub fn read(entry: &InspectorEntry) -> Result<Option<Vec<u8>>, Trouble> {
    let Some(path) = &entry.component else {
        return Ok(None);
    };
    read_file(path)
        .map(Some)
        .map_err(|cause| Trouble::NoComponent {
            inspector: entry.name.clone(),
            path: path.clone(),
            cause,
        })
}

/// The bytes of a component's file.
///
/// # Errors
/// The kernel's reason, or that the file is too large.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(LARGEST_COMPONENT + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LARGEST_COMPONENT {
        true => Err(io::Error::other(format!(
            "it has more than {} MiB",
            LARGEST_COMPONENT >> 20
        ))),
        false => Ok(bytes),
    }
}
