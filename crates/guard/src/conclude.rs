//! Concludes what will come of a call, from the file system, before the call happens.
//!
//! In: a decoded call and the file system as its caller sees it. Out: a [`Conclusion`]. The guard
//! sees an attempt, never its result. A conclusion is drawn only where the file system leaves no
//! doubt. Elsewhere the outcome stays unknown, which later makes a `possible` edge.
//!
//! Calls that open or execute a file are in `conclude_open`, calls that change one in
//! `conclude_change`.

use crate::caller_files::{CallerFiles, Concluded, OK, fails};
use crate::conclude_change::{link, meta, rename, truncate, unlink};
use crate::conclude_open::{chdir, connect, create, exec, open};
use crate::conclusion::Conclusion;
use crate::decoded_call::DecodedCall;
use crate::path_resolver::Resolved;
use crate::record_fields::record_fields;
use crate::record_writer::RecordFields;
use backstory_abi::F_CUT;

/// Concludes what comes of a call.
///
/// `NotCached` is returned only for opens and look-ups: they can be concluded after the call. For a
/// call that changes something a later look would see the change, so its outcome is unknown
/// instead.
pub fn conclude(decoded: &DecodedCall, files: &mut CallerFiles<'_>) -> Concluded<Conclusion> {
    let mut fields = record_fields(decoded);
    let end = |fields, directory| {
        Ok(Conclusion {
            fields,
            directory,
            removed_link: None,
            may_wait: decoded.may_wait(),
        })
    };
    let mut names = decoded.names().into_iter().flatten();
    if let Some(name) = names.find(|name| name.cut) {
        fields.flags |= F_CUT;
        fields.fd = name.dir;
        fields.result = fails(libc::ENAMETOOLONG);
        return end(fields, None);
    }
    match decoded {
        DecodedCall::Open { name, flags, .. } => return open(files, fields, name, *flags),
        DecodedCall::Look { name, link, .. } => {
            fields.result = match files.look(name, !link)? {
                Resolved::File(_) => OK,
                Resolved::Error(e) => fails(e),
            };
            return end(fields, None);
        }
        DecodedCall::Chdir { name } => {
            let directory = chdir(files, &mut fields, name).ok().flatten();
            return end(fields, directory);
        }
        _ => {}
    }
    if !files.resolver.waits() {
        // Where a path is not cached the outcome stays unknown.
        let _ = conclude_change(decoded, files, &mut fields);
    }
    let removed_link = files.removed_link.take();
    end(fields, None).map(|concluded| Conclusion {
        removed_link,
        ..concluded
    })
}

fn conclude_change(
    decoded: &DecodedCall,
    files: &mut CallerFiles<'_>,
    fields: &mut RecordFields,
) -> Concluded<()> {
    match decoded {
        DecodedCall::Exec { name, .. } => fields.result = exec(files, name)?,
        DecodedCall::Rename { from, to, flags } => rename(files, fields, from, to, *flags)?,
        DecodedCall::Link { from, to, flags } => link(files, fields, from, to, *flags)?,
        DecodedCall::Symlink { name, .. }
        | DecodedCall::Mkdir { name, .. }
        | DecodedCall::Mknod { name, .. } => fields.result = create(files, name)?,
        DecodedCall::Unlink { name, directory } => unlink(files, fields, name, *directory)?,
        DecodedCall::Truncate { name } => truncate(files, fields, name)?,
        DecodedCall::Meta { what, name, link } => meta(files, fields, *what, name, !link)?,
        DecodedCall::Address {
            name: Some(name), ..
        } => fields.result = connect(files, name)?,
        _ => {}
    }
    Ok(())
}
