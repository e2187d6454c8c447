//! The meaning of each call for files.
//!
//! A fact is *required* or *permitted*. An answer without a required fact has missed it. An answer
//! with a permitted fact has invented nothing. The table in [`interpret`] is the definition, which
//! docs/testing-oracle.md explains.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::facts::Word::{self, Delete, Dir, Exec, Link, Meta, Missing, Read, Rename, Stat, Write};
use super::line::Arg;
use super::lookup;
use super::traced_call::TracedCall;
use super::world::exec_path;

/// Adds what the call did to files to the facts of the call.
pub fn interpret(call: &mut TracedCall<'_>) {
    match call.name {
        "open" | "creat" => open(call, None, 0),
        "openat" | "openat2" => open(call, Some(0), 1),
        "execve" | "execveat" => exec(call),
        "connect" => connected(call),
        "read" | "pread64" | "readv" | "preadv" | "preadv2" => moved(call, 0, Read),
        "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "ftruncate" | "fallocate" => {
            moved(call, 0, Write)
        }
        "getdents" | "getdents64" => listed(call),
        "mmap" => mapped(call),
        "sendfile" | "sendfile64" => copied(call, 1, 0),
        "copy_file_range" => copied(call, 0, 2),
        "splice" => copied(call, 0, 2),
        "ioctl"
            if call
                .args
                .get(1)
                .is_some_and(|a| a.has("FICLONE") || a.has("BTRFS_IOC_CLONE")) =>
        {
            copied(call, 2, 0)
        }
        "truncate" => changed(call, &[Write], None, 0),
        "mkdir" | "mknod" => changed(call, &[Write, Dir], None, 0),
        "mkdirat" | "mknodat" => changed(call, &[Write, Dir], Some(0), 1),
        "symlink" => changed(call, &[Write, Link], None, 1),
        "symlinkat" => changed(call, &[Write, Link], Some(1), 2),
        "unlink" | "rmdir" => changed(call, &[Delete], None, 0),
        "unlinkat" => changed(call, &[Delete], Some(0), 1),
        "rename" => renamed(call, (None, 0), (None, 1)),
        "renameat" | "renameat2" => renamed(call, (Some(0), 1), (Some(2), 3)),
        "link" => linked(call, (None, 0), (None, 1)),
        "linkat" => linked(call, (Some(0), 1), (Some(2), 3)),
        "chmod" | "chown" | "lchown" | "utime" | "utimes" | "setxattr" | "lsetxattr"
        | "removexattr" | "lremovexattr" => {
            changed(call, &[Meta], None, 0);
        }
        "fchmodat" | "fchmodat2" | "fchownat" | "utimensat" | "futimesat" => {
            changed(call, &[Meta], Some(0), 1)
        }
        "fchmod" | "fchown" | "fsetxattr" | "fremovexattr" => moved(call, 0, Meta),
        "stat" | "lstat" | "access" | "statfs" | "getxattr" | "lgetxattr" | "listxattr"
        | "llistxattr" => looked(call, None, 0),
        "newfstatat" | "statx" | "faccessat" | "faccessat2" | "name_to_handle_at" => {
            looked(call, Some(0), 1)
        }
        "readlink" => link_read(call, None, 0),
        "readlinkat" => link_read(call, Some(0), 1),
        "chdir" | "chroot" => permitted(call, &[Stat, Dir, Missing], None, 0),
        "fstat" | "fstatfs" | "fchdir" | "lseek" => descriptor_permitted(call, &[Stat, Dir], 0),
        _ => {}
    }
}

fn open(call: &mut TracedCall<'_>, dir: Option<usize>, text: usize) {
    if matches!(call.args.get(text), Some(Arg::Text { bytes, .. }) if bytes.is_empty()) {
        return; // no name
    }
    let Some(path) = call.path(dir, text) else {
        return;
    };
    let flags = call
        .args
        .get(text + 1)
        .map(|a| a.raw().to_owned())
        .unwrap_or_default();
    let creat = call.name == "creat";
    let has = |flag: &str| creat && flag == "O_TRUNC" || flags.contains(flag);
    if call.returned.value.is_none() {
        return call.add(&[Read, Write, Stat, Missing], vec![path], false);
    }
    if !call.returned.ok() {
        if call.failed_with(&["EINTR", "ENOSYS"]) {
            return call.add(&[Read, Write, Stat, Missing], vec![path], false);
        }
        let words: &[Word] = if call.absent() {
            &[Missing]
        } else {
            &[Missing, Stat, Read, Write]
        };
        return call.add(words, vec![path], true);
    }
    let kernel = call.returned.path.clone().unwrap_or_else(|| path.clone());
    if has("O_TMPFILE") {
        return call.add(&[Write, Read, Stat, Dir], vec![path], false);
    }
    let directory =
        call.directories.contains(&kernel) || Path::new(OsStr::from_bytes(&kernel)).is_dir();
    let (writes, both) = (has("O_WRONLY") || creat, has("O_RDWR"));
    let fresh = has("O_TRUNC") || has("O_CREAT") && has("O_EXCL");
    let names = vec![path, kernel];
    if has("O_PATH") || directory {
        return call.add(&[Stat, Dir], names, false);
    }
    if !writes && !both {
        call.add(&[Read], names.clone(), true);
    }
    if both {
        call.add(&[Read], names.clone(), false);
    }
    if fresh {
        call.add(&[Write], names, true);
    } else if writes || both || has("O_CREAT") {
        call.add(&[Write], names, false);
    }
}

fn exec(call: &mut TracedCall<'_>) {
    let program = call.context.program.clone();
    let Some(path) = exec_path(&call.context.cwd, program, call.name, call.args) else {
        return;
    };
    if call.returned.ok() {
        for interpreter in lookup::loaded(&path).interpreters {
            call.add(
                &[Exec, Read],
                vec![lookup::absolute(&call.context.cwd, &interpreter)],
                true,
            );
        }
        call.add(&[Exec], vec![path.clone()], true);
        call.add(&[Read], vec![path], false);
    } else {
        let words: &[Word] = if call.absent() {
            &[Missing]
        } else {
            &[Missing, Stat, Exec, Read]
        };
        call.add(words, vec![path], call.returned.value.is_some());
    }
}

/// A socket that does not exist is missing like any file.
fn connected(call: &mut TracedCall<'_>) {
    let address = call.args.get(1).map(Arg::raw).unwrap_or_default();
    let path = address
        .split_once("sun_path=\"")
        .and_then(|(_, text)| text.split('"').next());
    let path: Vec<u8> = path
        .unwrap_or_default()
        .split("\\x")
        .filter_map(|digits| u8::from_str_radix(digits, 16).ok())
        .collect();
    if call.absent() && !path.is_empty() {
        call.add(
            &[Missing],
            vec![lookup::absolute(&call.context.cwd, &path)],
            true,
        );
    }
}

/// Data went through the descriptor at `at`, or its file was changed.
fn moved(call: &mut TracedCall<'_>, at: usize, word: Word) {
    let Some(path) = call.descriptor(at) else {
        return;
    };
    let nothing = word == Write && call.name.contains("write") && call.returned.value == Some(0);
    if call.returned.ok() {
        call.add(&[word], vec![path], !nothing);
    } else {
        call.add(&[word], vec![path], false);
    }
}

fn listed(call: &mut TracedCall<'_>) {
    let Some(path) = call.descriptor(0) else {
        return;
    };
    let required = call.returned.ok();
    call.add(&[Dir], vec![path], required);
}

fn mapped(call: &mut TracedCall<'_>) {
    let Some(path) = call.descriptor(4) else {
        return;
    };
    let shared = call
        .args
        .get(3)
        .is_some_and(|a| a.raw().contains("MAP_SHARED"));
    if !call.returned.ok() {
        return;
    }
    // /dev/null gives no data.
    let empty = path == b"/dev/null";
    call.add(&[Read], vec![path.clone()], !shared && !empty);
    if shared && call.args.get(2).is_some_and(|a| a.has("PROT_WRITE")) {
        call.add(&[Write], vec![path], true);
    }
}

fn copied(call: &mut TracedCall<'_>, from: usize, to: usize) {
    let required = call.returned.ok() && (call.returned.value != Some(0) || call.name == "ioctl");
    if let Some(path) = call.descriptor(from) {
        call.add(&[Read], vec![path], required);
    }
    if let Some(path) = call.descriptor(to) {
        call.add(&[Write], vec![path], required);
    }
}

/// A call that changes the file at its path.
fn changed(call: &mut TracedCall<'_>, words: &[Word], dir: Option<usize>, text: usize) {
    let Some(path) = call.path(dir, text) else {
        return;
    };
    if call.returned.ok() {
        call.add(words, vec![path.clone()], true);
        call.add(&[Write], vec![path], false);
    } else {
        call.add(&[Missing, Stat], vec![path], false);
    }
}

fn renamed(call: &mut TracedCall<'_>, from: (Option<usize>, usize), to: (Option<usize>, usize)) {
    let (Some(old), Some(new)) = (call.path(from.0, from.1), call.path(to.0, to.1)) else {
        return;
    };
    if !call.returned.ok() {
        call.add(&[Missing, Stat], vec![old], false);
        return call.add(&[Missing, Stat], vec![new], false);
    }
    call.add(&[Rename, Delete], vec![old], true);
    call.add(&[Rename], vec![new.clone()], true);
    call.add(&[Delete, Write], vec![new], false);
}

fn linked(call: &mut TracedCall<'_>, from: (Option<usize>, usize), to: (Option<usize>, usize)) {
    let (Some(old), Some(new)) = (call.path(from.0, from.1), call.path(to.0, to.1)) else {
        return;
    };
    if !call.returned.ok() {
        call.add(&[Missing, Stat], vec![old], false);
        return call.add(&[Missing, Stat], vec![new], false);
    }
    let flags = ["AT_EMPTY_PATH", "AT_SYMLINK_FOLLOW"];
    if call
        .args
        .iter()
        .any(|a| flags.iter().any(|flag| a.has(flag)))
    {
        // A file that may have had no name gets one.
        call.add(&[Link, Write, Rename], vec![new], true);
        return call.add(&[Link, Stat, Meta], vec![old], false);
    }
    call.add(&[Link, Write], vec![new], true);
    call.add(&[Link, Stat, Meta], vec![old], true);
}

/// A look-up, which is known if the recorder is in the process.
fn looked(call: &mut TracedCall<'_>, dir: Option<usize>, text: usize) {
    let Some(path) = call.path(dir, text) else {
        return;
    };
    if call.absent() {
        let looks_up = [
            "stat",
            "lstat",
            "newfstatat",
            "statx",
            "access",
            "faccessat",
            "faccessat2",
        ]
        .contains(&call.name);
        return call.add(&[Missing], vec![path], looks_up && call.context.dynamic);
    }
    call.add(&[Stat], vec![path.clone()], false);
    if !call.returned.ok() {
        call.add(&[Missing], vec![path], false);
    }
}

fn link_read(call: &mut TracedCall<'_>, dir: Option<usize>, text: usize) {
    let Some(path) = call.path(dir, text) else {
        return;
    };
    // libc's own realpath reads links by absolute path. Its look-ups are not the program's.
    let absolute =
        matches!(call.args.get(text), Some(Arg::Text { bytes, .. }) if bytes.starts_with(b"/"));
    let required = call.context.dynamic && !absolute;
    if call.absent() {
        call.add(&[Missing], vec![path], required);
    } else if required && call.returned.ok() {
        call.add(&[Link], vec![path], true);
    } else {
        call.add(&[Link, Stat], vec![path], false);
    }
}

fn permitted(call: &mut TracedCall<'_>, words: &[Word], dir: Option<usize>, text: usize) {
    if let Some(path) = call.path(dir, text) {
        call.add(words, vec![path], false);
    }
}

fn descriptor_permitted(call: &mut TracedCall<'_>, words: &[Word], at: usize) {
    if let Some(path) = call.descriptor(at) {
        call.add(words, vec![path], false);
    }
}
