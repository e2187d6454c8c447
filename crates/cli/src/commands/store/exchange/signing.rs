//! Signs the runs that are sent.

use std::path::Path;

use backstory_exchange::{Peer, StorePeer, signature};

use super::failure;
use crate::error::Failure;
use crate::text::progress::{Progress, Unit};

/// Signs each selected run that this key has not signed yet.
pub fn sign(local: &mut StorePeer<'_>, select: &[String], key: &Path) -> Result<(), Failure> {
    local.select(select).map_err(failure)?;
    let progress = Progress::of("signing runs", 0, Unit::Things);
    // The public key of the first signature tells which runs the key has signed.
    let mut public: Option<Vec<u8>> = None;
    let mut after: Option<String> = None;
    loop {
        let page = local.runs(after.as_deref()).map_err(failure)?;
        let Some(last) = page.last() else { break };
        after = Some(last.run.clone());
        for entry in &page {
            progress.done.add(1);
            let present = signature::of_run(local.home(), &entry.run);
            let mut keys = present.iter().filter_map(|one| signature::public_key(one));
            if public.is_some() && keys.any(|one| Some(one) == public) {
                continue;
            }
            let statement = local.statement(&entry.run).map_err(failure)?;
            let signed = signature::sign(key, &statement).map_err(failure)?;
            public = signature::public_key(&signed);
            signature::add(local.home(), &entry.run, vec![signed]).map_err(failure)?;
        }
    }
    Ok(())
}
