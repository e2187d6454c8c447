//! A member of an archive as the subject of a question: the digest of its content.
//!
//! No record has the members of an archive. The digest joins a member with recorded files: with the
//! one that was packed, and with those that were unpacked.
//!
//! In: `ARCHIVE/MEMBER`, where ARCHIVE is a recorded file, or one that is there. Out: the version
//! of the archive, and the digest. The worker reads the archive when the question is asked.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_files::{Digest, regular};
use backstory_graph::model::EntityKind;
use backstory_inspection::file_parts::{NoPart, PartName};
use backstory_inspection::{FormatReader, LARGEST_CONTENT};
use backstory_query as query;
use backstory_query::subject as versions;
use backstory_store::{EntityKey, GraphStore};

use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::text::paths::shown;
use crate::version_contents::VersionContents;

/// The inspectors of archives.
const ARCHIVES: [&str; 2] = ["tar", "zip"];

/// A member of an archive.
#[derive(Debug)]
pub struct ArchiveMember {
    /// The member and its archive, in words.
    pub name: String,
    /// The version of the archive. `None` if no run has seen it.
    pub archive: Option<EntityKey>,
    /// The digest of the member's content.
    pub content: Digest,
}

/// The member that a path names. `None` if no file above the path is an archive.
///
/// # Errors
///
/// The archive has no such member, or its content is not available, or cannot be read.
pub fn find(
    current: &CurrentStore,
    path: &Path,
    run: Option<&str>,
) -> Result<Option<ArchiveMember>, Failure> {
    let Some((archive, version)) = archive_above(current, path, run)? else {
        return Ok(None);
    };
    let Ok(member) = path.strip_prefix(archive) else {
        return Ok(None);
    };
    let content = match version {
        Some(version) => VersionContents::new(current).read(version)?,
        None => present(archive),
    };
    let archive_name = archive.as_os_str().as_bytes();
    let Some(content) = content else {
        let most = LARGEST_CONTENT >> 20;
        let why = match version {
            Some(_) => format!(
                "is not available, or has more than {most} MiB: record with --contents=lazy"
            ),
            None => format!("cannot be read, or has more than {most} MiB"),
        };
        return Err(Failure::not_found(format!(
            "no run has seen {}, and the content of {} {why}",
            shown(path.as_os_str().as_bytes()),
            shown(archive_name)
        )));
    };
    let reader = FormatReader::new();
    let format = reader.format_of(archive_name, &content);
    let Some(format) = format.filter(|format| ARCHIVES.contains(&&*format.name)) else {
        return Ok(None);
    };
    let member = member.to_string_lossy().into_owned();
    let name = format!("{} in {}", shown(member.as_bytes()), shown(archive_name));
    let wanted = PartName::Member(member);
    let place = match reader.part(format, archive_name, &content, &wanted) {
        Ok(Ok(place)) => place,
        Ok(Err(NoPart::OtherKind)) => return Ok(None),
        Ok(Err(NoPart::Absent(why) | NoPart::Misnamed(why) | NoPart::Unreadable(why))) => {
            return Err(Failure::not_found(format!(
                "{}: {why}",
                shown(archive_name)
            )));
        }
        Err(trouble) => return Err(Failure::not_found(trouble)),
    };
    let Some(digest) = place.content else {
        return Err(Failure::not_found(format!(
            "the content of {name} is not known: it is encrypted, damaged or too large; ask \
             about {}",
            shown(archive_name)
        )));
    };
    Ok(Some(ArchiveMember {
        name,
        archive: version,
        content: Digest(digest),
    }))
}

/// The nearest file above a path, with its newest version. Directories can only have directories
/// above them.
fn archive_above<'p>(
    current: &CurrentStore,
    path: &'p Path,
    run: Option<&str>,
) -> Result<Option<(&'p Path, Option<EntityKey>)>, Failure> {
    for above in path.ancestors().skip(1) {
        if above.as_os_str().is_empty() || above.is_dir() {
            break;
        }
        match versions::newest(&current.store, above, run) {
            Ok(version) => {
                let is_file = current.store.entity(version)?.kind == EntityKind::File;
                return Ok(is_file.then_some((above, Some(version))));
            }
            Err(query::Error::NotFound(_) | query::Error::OnlyMissing(_)) => {}
            Err(error) => return Err(error.into()),
        }
        if run.is_none() && above.is_file() {
            return Ok(Some((above, None)));
        }
    }
    Ok(None)
}

/// The content of a file as it is now, unless it is too large.
fn present(path: &Path) -> Option<Vec<u8>> {
    let length = path.metadata().ok()?.len();
    (length <= LARGEST_CONTENT as u64)
        .then(|| regular::read(path).ok())
        .flatten()
}
