//! Starts a user's inspector in place of this process.
//!
//! The plug-in reads one line of JSON (here in two) from its standard input, and the contents from
//! descriptors 3 and 4. It writes one line of JSON, an answer, to its standard output.
//!
//! ```text
//! {"backstory_inspect": 1, "inspector": "mesh", "version": 2, "name": "/w/part.mesh",
//!  "contents": ["/proc/self/fd/3"]}
//! ```

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use backstory_inspection::question::ReadQuestion;
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::json;

use crate::sandbox;

/// The version of the line that a plug-in reads.
const PROTOCOL: u32 = 1;

/// Becomes the plug-in. Returns only if it cannot be started, with the reason.
pub fn become_plugin(question: &ReadQuestion<'_>) -> io::Error {
    match start(question) {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

fn start(question: &ReadQuestion<'_>) -> io::Result<std::convert::Infallible> {
    let head = &question.head;
    let Some((program, args)) = head.command.split_first() else {
        return Err(io::Error::other("the plug-in has no command"));
    };
    // They stay open in the plug-in: as 3 and 4, for this process has opened nothing else.
    let mut contents = Vec::new();
    for content in &question.contents {
        contents.push(memory_file(content, MemfdFlags::empty())?);
    }
    let names: Vec<String> = contents
        .iter()
        .map(|content| format!("/proc/self/fd/{}", content.as_raw_fd()))
        .collect();
    let line = json!({
        "backstory_inspect": PROTOCOL,
        "inspector": head.inspector,
        "version": head.version,
        "name": head.name,
        "contents": names,
    });
    let input = memory_file(format!("{line}\n").as_bytes(), MemfdFlags::CLOEXEC)?;
    sandbox::enter_for_plugin()?;
    Err(Command::new(program)
        .args(args)
        .stdin(Stdio::from(input))
        .exec())
}

/// Becomes a filter of graphs, whose standard input is `lines`. Returns only if it cannot be
/// started, with the reason.
pub fn become_judge(command: &[String], lines: &[u8]) -> io::Error {
    let start = || {
        let Some((program, args)) = command.split_first() else {
            return Err(io::Error::other("the filter has no command"));
        };
        let input = memory_file(lines, MemfdFlags::CLOEXEC)?;
        sandbox::enter_for_plugin()?;
        let error = Command::new(program)
            .args(args)
            .stdin(Stdio::from(input))
            .exec();
        Err::<std::convert::Infallible, _>(io::Error::new(
            error.kind(),
            format!("cannot execute {program}: {error}"),
        ))
    };
    match start() {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

fn memory_file(bytes: &[u8], flags: MemfdFlags) -> io::Result<File> {
    let mut file = File::from(memfd_create("inspected", flags)?);
    file.write_all(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}
