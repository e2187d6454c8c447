//! Asks the program `backstory` a question, in a process of its own.
//!
//! In: the path of the program, the directory of a store, and a question. Out: the answer, whose
//! tables lie in the memory that the program has written.
//!
//! The program writes its answer into a file without a name (memfd), which is mapped when the
//! program has ended. So a table of a million rows is not copied.
//!
//! Invariant: no process of a question outlives the question.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::Buffer;
use backstory_answers::{Failure, StoreQuestion};
use memmap2::MmapOptions;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::reply::{self, Reply};

/// Asks the program about the store in a directory; by default the one that the program finds.
///
/// # Errors
///
/// The failure that the program answered; or that it gave no answer.
pub fn ask(
    program: &Path,
    directory: Option<&Path>,
    question: &StoreQuestion,
) -> Result<Reply, Failure> {
    let failed = |what: &dyn std::fmt::Display| {
        Failure::of_package(format!("{} gave no answer: {what}", program.display()))
    };
    let file = memfd_create(
        c"backstory-answer",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )
    .map_err(|error| failed(&error))?;
    let file = File::from(file);
    let question = serde_json::to_vec(question).map_err(|error| failed(&error))?;
    let mut command = Command::new(program);
    command.arg("answer");
    if let Some(directory) = directory {
        command.args([OsStr::new("--store"), directory.as_os_str()]);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(file.try_clone().map_err(|error| failed(&error))?)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    // A program that ends early says why below.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(&question);
    }
    let mut complaint = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_end(&mut complaint);
    }
    // The status is unknown if this process ignores SIGCHLD. The answer says enough.
    let ended = child.wait();
    match mapped(&file) {
        Ok(answer) if answer.len() > 8 => reply::read(&answer),
        Ok(_) => {
            let complaint = String::from_utf8_lossy(&complaint);
            let complaint = complaint.trim().trim_start_matches("backstory: ");
            Err(match (complaint, ended) {
                ("", Ok(status)) => failed(&status),
                ("", Err(error)) => failed(&error),
                (complaint, _) => failed(&complaint),
            })
        }
        Err(error) => Err(failed(&error)),
    }
}

/// The content of a finished file of memory.
fn mapped(file: &File) -> std::io::Result<Buffer> {
    fcntl_add_seals(
        file,
        SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
    )?;
    if file.metadata()?.len() == 0 {
        return Ok(Buffer::default());
    }
    // SAFETY: the file is sealed, so that no process changes or shortens it.
    let map = unsafe { MmapOptions::new().map_copy_read_only(file)? };
    let (start, length) = (NonNull::from(&map[0]), map.len());
    // SAFETY: the mapping has `length` readable bytes from `start`, and lives as long as the buffer
    // owns it.
    Ok(unsafe { Buffer::from_custom_allocation(start, length, Arc::new(map)) })
}
