//! Has the content preserved that a call is about to change.
//!
//! In: a call that waits, and what it changes: the guard has decoded that itself, or a recorder
//! asks. Out: what the preserver (`hooks`) did, as a record.

use crate::arguments::Arguments;
use crate::call_records::caller_ids;
use crate::caller::Caller;
use crate::guard_state::GuardState;
use crate::hooks::{
    ChangeKind, ContentChange, ContentPreserver, Effort, EffortExceeded, FoundFile,
    PreservedContent,
};
use crate::memory::ProcessMemory;
use crate::notification_buffers::Notification;
use crate::path_resolver::{PathResolver, Resolved};
use crate::pending_effect::{ChangeTarget, PendingChange, TargetFile};
use crate::record_writer::{RecordFields, RecordResult, RecordWriter};
use crate::resolved_file::ResolvedFile;
use backstory_abi::{
    CHANGE_ITSELF, CHANGE_KIND, CHANGE_PART, CHANGE_REMOVE, CHANGE_UPDATE, CHANGE_WRITE, op,
};
use backstory_arena::RecordSink;
use backstory_files::Ident;
use std::cell::OnceCell;

/// A call that is about to change a file.
pub(crate) struct ChangingCall<'a> {
    pub(crate) notification: &'a Notification,
    pub(crate) time: u64,
    pub(crate) source: &'a ChangeSource,
}

/// Where it is known from what the call changes.
pub(crate) enum ChangeSource {
    /// A recorder asks. The arguments of its request say what changes.
    Recorder,
    /// The guard has decoded the call itself, or the calls that a ring was given.
    Guard(Vec<PendingChange>),
}

/// The caller, the path and what was preserved of it.
type Preserved = (Caller, Vec<u8>, PreservedContent);

/// Preserves what a call is about to change.
///
/// # Errors
/// `effort` does not suffice. Nothing has been done.
pub(crate) fn preserve<S: RecordSink>(
    state: &GuardState,
    preserver: &dyn ContentPreserver,
    effort: Effort,
    at: &ChangingCall<'_>,
    resolver: &mut PathResolver,
    out: &mut RecordWriter<S>,
) -> Result<(), EffortExceeded> {
    match at.source {
        ChangeSource::Guard(changes) => {
            for change in changes {
                let done = preserve_observed(state, preserver, effort, at.time, change, resolver)?;
                log_preserved(out, at, done);
            }
        }
        ChangeSource::Recorder => {
            let done = preserve_requested(state, preserver, effort, at, resolver)?;
            log_preserved(out, at, done);
        }
    }
    Ok(())
}

/// Preserves what a call changes that the guard has decoded. The file is opened only if its content
/// matters.
fn preserve_observed(
    state: &GuardState,
    preserver: &dyn ContentPreserver,
    effort: Effort,
    time: u64,
    change: &PendingChange,
    resolver: &mut PathResolver,
) -> Result<Option<Preserved>, EffortExceeded> {
    let mut open = || {
        let found = find(resolver, &change.caller, &change.target, time)?;
        Ok(found.inspect(|(ident, _)| {
            preserver.note_change(ident.dev as u32, ident.ino);
        }))
    };
    let mut opened = None;
    // A thread that may have waited looks again: the name may lead to another file by now.
    let file = match change.file.filter(|_| effort == Effort::Little) {
        Some(file) => file,
        None => match open()? {
            Some((ident, found)) => {
                opened = Some(found);
                TargetFile::of(&ident)
            }
            None => return Ok(None),
        },
    };
    if file.link {
        preserver.names_will_change();
    }
    let mut path = Vec::new();
    let content = content_change(state, change.target.kind, file.device, file.inode);
    let preserved = preserver.preserve(&content, effort, &mut || {
        let found = match opened.take() {
            Some(found) => Some(found),
            None => open()?.map(|(_, found)| found),
        };
        Ok(found.inspect(|found| path.clone_from(&found.path)))
    })?;
    Ok(preserved.map(|preserved| (change.caller.clone(), path, preserved)))
}

/// Preserves what a recorder asks for. Its path is read only if the content matters.
fn preserve_requested(
    state: &GuardState,
    preserver: &dyn ContentPreserver,
    effort: Effort,
    at: &ChangingCall<'_>,
    resolver: &mut PathResolver,
) -> Result<Option<Preserved>, EffortExceeded> {
    let Some(change) = requested_change(state, at.notification) else {
        preserver.names_will_change();
        return Ok(None);
    };
    let (mut found_for, kind) = (None, change.kind);
    let preserved = preserver.preserve(&change, effort, &mut || {
        let Some((caller, target)) = read_request(state, at, kind) else {
            return Ok(None);
        };
        let found = find(resolver, &caller, &target, at.time)?;
        Ok(found.map(|(_, found)| {
            found_for = Some((caller, found.path.clone()));
            found
        }))
    })?;
    Ok(preserved.and_then(|preserved| {
        let (caller, path) = found_for?;
        Some((caller, path, preserved))
    }))
}

/// The change that a recorder announces; `None` if only names change.
fn requested_change<'a>(
    state: &'a GuardState,
    notification: &Notification,
) -> Option<ContentChange<'a>> {
    let [_, _, _, device_and_directory, change, inode] = notification.args;
    let kind = change_kind(change as u32)?;
    let device = (device_and_directory >> 32) as u32;
    Some(content_change(state, kind, device, inode))
}

/// The kind of change of a recorder's request; `None` if only names change.
pub(crate) fn change_kind(change: u32) -> Option<ChangeKind> {
    Some(match change & CHANGE_KIND {
        CHANGE_WRITE => ChangeKind::Write,
        CHANGE_PART => ChangeKind::Part,
        CHANGE_UPDATE => ChangeKind::Update,
        CHANGE_REMOVE => ChangeKind::Remove,
        _ => return None,
    })
}

fn content_change(
    state: &GuardState,
    kind: ChangeKind,
    device: u32,
    inode: u64,
) -> ContentChange<'_> {
    ContentChange {
        kind,
        device,
        inode,
        deferred: &state.settings.deferred,
    }
}

/// Reads out of a recorder's memory which file it asks for.
fn read_request(
    state: &GuardState,
    at: &ChangingCall<'_>,
    kind: ChangeKind,
) -> Option<(Caller, ChangeTarget)> {
    let [_, _, path, device_and_directory, change, _] = at.notification.args;
    let tid = at.notification.tid;
    let caller = state.callers.meet(tid, at.time).ok()?;
    let (mut memory, mut raw) = (ProcessMemory::of(tid), Vec::with_capacity(128));
    let mut arguments = Arguments {
        args: &[0, 0, path, 0, 0, 0],
        memory: &mut memory,
        caller: &caller,
        callers: &state.callers,
        cwd: OnceCell::new(),
    };
    arguments.string(2, &mut raw).ok()?;
    let name = arguments.name(device_and_directory as u32 as i32, &raw);
    if !state.still_waits(at.notification.id) {
        return None;
    }
    let follow = change as u32 & CHANGE_ITSELF == 0;
    Some((caller, ChangeTarget { name, follow, kind }))
}

/// Opens the file that a call is about to change.
fn find(
    resolver: &mut PathResolver,
    caller: &Caller,
    target: &ChangeTarget,
    time: u64,
) -> Result<Option<(Ident, FoundFile)>, EffortExceeded> {
    let resolved = resolver.look_carefully(caller, &target.name.inside, target.follow, time);
    let Resolved::File(file) = resolved.map_err(|_| EffortExceeded)? else {
        return Ok(None);
    };
    let path = path_of_open_file(&target.name.path, &file);
    let path = path.unwrap_or_else(|| target.name.path.clone());
    let ident = file.ident();
    let opened = file.into_fd();
    Ok(opened.map(|file| (ident, FoundFile { path, file })))
}

/// The path of a file that is named by a descriptor (`/dev/fd/3`, `/proc/self/fd/3`,
/// `/dev/stdout`), or its last path if it has lost its name. Such a name does not tell whether it
/// is a file of the user's.
fn path_of_open_file(name: &[u8], file: &ResolvedFile) -> Option<Vec<u8>> {
    if !name.starts_with(b"/proc/") && !name.starts_with(b"/dev/") {
        return None;
    }
    let path = file.path().filter(|path| !path.starts_with(b"/memfd:"))?;
    Some(match path.strip_suffix(b" (deleted)") {
        Some(path) => path.to_vec(),
        None => path,
    })
}

fn log_preserved<S: RecordSink>(
    out: &mut RecordWriter<S>,
    at: &ChangingCall<'_>,
    done: Option<Preserved>,
) {
    if let Some((caller, path, preserved)) = done {
        let ids = caller_ids(&caller, at.notification);
        out.put(at.time, ids, &kept_fields(preserved), &[&path]);
    }
}

/// The fields of the record about a preserved content.
pub(crate) fn kept_fields(preserved: PreservedContent) -> RecordFields {
    RecordFields {
        arg: preserved.number,
        aux: preserved.how,
        result: RecordResult::Known(-preserved.error),
        ident: Some(preserved.ident),
        resolved: true,
        ..RecordFields::of(op::KEPT)
    }
}

/// Logs that no thread could preserve what a call changes.
pub(crate) fn log_not_preserved<S: RecordSink>(
    out: &mut RecordWriter<S>,
    notification: &Notification,
    time: u64,
    source: &ChangeSource,
    errno: i32,
) {
    let fields = RecordFields {
        arg: -1,
        result: RecordResult::Known(-errno),
        resolved: true,
        ..RecordFields::of(op::KEPT)
    };
    match source {
        ChangeSource::Guard(changes) => {
            for change in changes {
                let ids = caller_ids(&change.caller, notification);
                out.put(time, ids, &fields, &[&change.target.name.path]);
            }
        }
        ChangeSource::Recorder => {
            let unknown = Caller::unknown(notification.tid);
            out.put(time, caller_ids(&unknown, notification), &fields, &[b""]);
        }
    }
}
