//! Writes the records of a call from the decoded call and its conclusion.

use crate::caller::Caller;
use crate::conclusion::Conclusion;
use crate::decoded_call::{DecodedCall, StringList};
use crate::environment::{SeenEnvironments, environment_hash, without_recorder};
use crate::notification_buffers::Notification;
use crate::record_writer::{RecordFields, RecordResult, RecordWriter, born};
use backstory_abi::{CallerIds, F_CUT, op};
use backstory_arena::RecordSink;
use std::os::unix::ffi::OsStringExt;

/// The thread that made a call, as a record names it.
pub fn caller_ids(caller: &Caller, call: &Notification) -> CallerIds {
    CallerIds {
        pid: caller.pid,
        tid: caller.tid,
        nr: call.nr,
        arch: call.arch,
    }
}

/// Writes that a process was met for the first time.
///
/// The record names the parent, from which the program and the directory follow. With `orphan` it
/// also has the directory: the parent may have died before it could be looked up.
pub fn write_born<S: RecordSink>(
    out: &mut RecordWriter<S>,
    caller: &Caller,
    call: &Notification,
    time: u64,
    orphan: bool,
) {
    let directory = orphan.then(|| directory_of(caller.pid)).flatten();
    let directory = directory.unwrap_or_default();
    out.put(
        time,
        caller_ids(caller, call),
        &born(caller.pid, caller.parent),
        &[b"", &directory],
    );
}

/// The current directory of a process, in the supervisor's view. `None` if it has no name any more.
fn directory_of(pid: u32) -> Option<Vec<u8>> {
    const GONE: &[u8] = b" (deleted)";
    let path = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let path = path.into_os_string().into_vec();
    (path.starts_with(b"/") && !path.ends_with(GONE)).then_some(path)
}

/// Writes the records of a call.
pub fn write_call<S: RecordSink>(
    out: &mut RecordWriter<S>,
    (time, ids): (u64, CallerIds),
    decoded: &DecodedCall,
    conclusion: &Conclusion,
    environments: &SeenEnvironments,
) {
    let fields = &conclusion.fields;
    write_removed_link(out, (time, ids), decoded, conclusion);
    match decoded {
        DecodedCall::Exec {
            name, args, env, ..
        } => {
            write_exec(
                out,
                (time, ids),
                fields,
                &name.path,
                args,
                env.as_ref(),
                environments,
            );
        }
        DecodedCall::Rename { from, to, .. } | DecodedCall::Link { from, to, .. } => {
            out.put(time, ids, fields, &[&from.path, &to.path]);
        }
        DecodedCall::Symlink { target, name } => out.put(time, ids, fields, &[target, &name.path]),
        DecodedCall::Chdir { name } => {
            let named = if fields.result_failed() {
                &b""[..]
            } else {
                &name.path[..]
            };
            let directory = conclusion.directory.as_deref().unwrap_or(named);
            out.put(time, ids, fields, &[&name.path, directory]);
        }
        DecodedCall::Pivot { new, old } => out.put(time, ids, fields, &[&new.path, &old.path]),
        DecodedCall::Mount { source, target, .. } => {
            out.put(time, ids, fields, &[source, &target.path])
        }
        DecodedCall::Address { address, .. } => out.put_bytes(time, ids, fields, address),
        DecodedCall::Opaque(what) => out.put(time, ids, fields, &[what.as_bytes()]),
        DecodedCall::Namespace { .. } => out.put(time, ids, fields, &[]),
        _ => {
            let path = decoded.names()[0].map_or(&b""[..], |name| &name.path[..]);
            out.put(time, ids, fields, &[path]);
        }
    }
}

/// Writes the text of the symbolic link that the call removes. The record precedes the call's own.
fn write_removed_link<S: RecordSink>(
    out: &mut RecordWriter<S>,
    (time, ids): (u64, CallerIds),
    decoded: &DecodedCall,
    conclusion: &Conclusion,
) {
    let Some(text) = &conclusion.removed_link else {
        return;
    };
    // Of a rename's two names, the call removes the file at the second.
    let [first, second] = decoded.names();
    let Some(name) = second.or(first) else {
        return;
    };
    let fields = RecordFields {
        op: op::LINK_TEXT,
        arg: 0,
        aux: 0,
        ident: None,
        result: RecordResult::Known(0),
        ..conclusion.fields
    };
    out.put(time, ids, &fields, &[&name.path, text]);
}

fn write_exec<S: RecordSink>(
    out: &mut RecordWriter<S>,
    (time, ids): (u64, CallerIds),
    fields: &RecordFields,
    path: &[u8],
    args: &StringList,
    env: Option<&StringList>,
    environments: &SeenEnvironments,
) {
    out.put_list(
        time,
        ids,
        &RecordFields {
            fd: 0,
            ..RecordFields::of(op::ARGS)
        },
        &args.bytes,
    );
    let mut cut = !args.whole;
    if let Some(env) = env {
        let bytes = without_recorder(&env.bytes);
        let hash = environment_hash(&bytes);
        let fields = RecordFields {
            fd: hash as i32,
            arg: (hash >> 32) as i32,
            ..RecordFields::of(op::ENV)
        };
        let list = if environments.first(hash) {
            &bytes[..]
        } else {
            &[]
        };
        out.put_list(time, ids, &fields, list);
        cut |= !env.whole;
    }
    let flags = if cut {
        fields.flags | F_CUT
    } else {
        fields.flags
    };
    out.put(time, ids, &RecordFields { flags, ..*fields }, &[path]);
}
