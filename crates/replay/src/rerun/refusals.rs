//! Finds what a stale step would destroy or cannot reproduce. Such a step does not run.
//!
//! In: the steps of a plan, and what each did to files. Out: [`Refusal`]s, each about one file of
//! one step. `--yes` does not answer them. `--overwrite` answers those about a person's work.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use backstory_contents::{Contents, digest_of};
use backstory_currency::PlannedStep;
use backstory_eventlog::event::Bytes;
use backstory_files::{CLOCK_GRANULARITY, Digest, regular};
use backstory_graph::model::EntityKind;
use backstory_query::present_identity;
use backstory_store::same_version;
use backstory_workflow::paths::to_path;

use super::restored_files;
use super::unit_files::{ChangedFile, EditedVersion, FileOrigin, OuterInput, UnitFiles};

/// Why a step does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It would overwrite this file, which was changed since this run left it.
    Changed(Bytes, String),
    /// It would overwrite this file, which the command of another run changed since.
    OtherCommand(Bytes, String),
    /// It edits this file, and the version with which it began is not kept.
    EditLost(Bytes),
    /// Its commands are of several runs, and one of them edits this file. An earlier command may
    /// have read the file before.
    SeveralRuns(Bytes),
    /// Its standard input is gone.
    InputGone(&'static str),
    /// Its standard input is this file, of which other commands of the run read a part.
    InputShared(Bytes),
    /// Its standard input was this file, which does not exist any more.
    InputMissing(Bytes),
}

impl Refusal {
    /// True if the user can answer it with `--overwrite`.
    pub fn is_about_work(&self) -> bool {
        matches!(self, Refusal::Changed(..) | Refusal::OtherCommand(..))
    }
}

/// The place of a former content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormerContent {
    /// In the store of contents.
    Stored(Digest),
    /// It is the begin of the present file, of this length.
    Prefix(u64),
}

/// The permissions of the user, and the place of the store.
#[derive(Debug, Clone, Copy)]
pub struct Allowed<'a> {
    /// A person's work may be overwritten.
    pub overwrite: bool,
    /// The user gives a standard input.
    pub has_input: bool,
    /// The store's directory.
    pub store: &'a Path,
}

/// The refusals of the step at an index, the first file first. `is_moving`: true for the steps that
/// run or may run.
pub fn refusals(
    at: usize,
    steps: &[PlannedStep],
    units: &[UnitFiles],
    is_moving: &dyn Fn(usize) -> bool,
    allowed: Allowed<'_>,
) -> Vec<Refusal> {
    let unit = &units[at];
    let mut all = Vec::new();
    let others = || (0..steps.len()).filter(|&other| other != at && is_moving(other));
    for file in &unit.changed {
        let is_made = |other: usize| {
            steps[other]
                .outputs
                .iter()
                .any(|(path, _)| *path == file.path)
        };
        if let Some(last) = file.last.as_ref().filter(|_| file.exists()) {
            let (path, run) = (file.path.clone(), last.run.clone());
            if !file.is_as_left(allowed.store) {
                all.push(Refusal::Changed(path, run));
            } else if !last.is_own && !unit.is_driven && !others().any(is_made) {
                all.push(Refusal::OtherCommand(path, run));
            }
        }
        let is_edited = matches!(file.origin, FileOrigin::Edited(_));
        if is_edited && unit.runs > 1 {
            all.push(Refusal::SeveralRuns(file.path.clone()));
        }
        if let FileOrigin::Edited(version) = &file.origin
            && !others().any(|other| other < at && is_made(other))
            && former_content(&file.path, version, None).is_none()
        {
            all.push(Refusal::EditLost(file.path.clone()));
        }
    }
    all.extend(
        unit.input
            .as_ref()
            .and_then(lost_input)
            .filter(|_| !allowed.has_input),
    );
    all.retain(|refusal| !(allowed.overwrite && refusal.is_about_work()));
    all
}

fn lost_input(input: &OuterInput) -> Option<Refusal> {
    match input {
        OuterInput::Gone(what) => Some(Refusal::InputGone(what)),
        OuterInput::Shared(path) => Some(Refusal::InputShared(path.clone())),
        OuterInput::File(path) if to_path(path).exists() => None,
        OuterInput::File(path) => Some(Refusal::InputMissing(path.clone())),
    }
}

/// The place of the content with which an edit of a file began. `contents`: looks whether the
/// content is there, too.
pub fn former_content(
    path: &[u8],
    version: &EditedVersion,
    contents: Option<&Contents>,
) -> Option<FormerContent> {
    let digest = version.digest?;
    let is_there = |contents: &Contents| contents.has(&digest).unwrap_or(false);
    if version.is_stored && contents.is_none_or(is_there) {
        return Some(FormerContent::Stored(digest));
    }
    let size = u64::try_from(version.ident?.size).ok()?;
    let file = regular::open(to_path(path)).ok()?;
    let is_prefix = |file: File| {
        let (found, read) = digest_of(&mut file.take(size)).ok()?;
        (found == digest && read == size).then_some(())
    };
    is_prefix(file).map(|()| FormerContent::Prefix(size))
}

impl ChangedFile {
    /// True if something is at the path.
    pub fn exists(&self) -> bool {
        to_path(&self.path).symlink_metadata().is_ok()
    }

    /// True if the file is as a recorded command left it last, or is not there. `store`: the
    /// store's directory. A file that the last command removed belongs to no person.
    pub fn is_as_left(&self, store: &Path) -> bool {
        let Some(last) = &self.last else {
            return true;
        };
        let path = to_path(&self.path);
        let Some(now) = present_identity(path, last.kind != EntityKind::Symlink) else {
            return true;
        };
        let has_digest = |digest: Digest| backstory_currency::held(&self.path) == Some(digest);
        let is_same = match (&last.ident, last.digest) {
            (Some(then), _) if same_version(&now, then) && now.ctime == then.ctime => true,
            (Some(then), Some(digest)) if now.size == then.size => has_digest(digest),
            (Some(then), None) => same_version(&now, then),
            (Some(_), Some(_)) => false,
            (None, Some(digest)) => has_digest(digest),
            // The file system's clock may lag behind the end of the run.
            (None, None) => now.mtime.max(now.ctime) <= last.ended + 2 * CLOCK_GRANULARITY,
        };
        is_same || restored_files::is_as_put_back(store, &self.path)
    }
}
