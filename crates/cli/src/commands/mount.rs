//! `mount`: records what any process does below a mount point.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use backstory_mount::{self as mounted, MountNews, MountOptions};
use backstory_session as session;
use backstory_store::Home;
use backstory_vocabulary::{
    ContentsMode, GuardMode, IoUringMode, LookupsMode, PassthroughMode, SuppressMode,
};

use super::Outcome;
use super::record::check_name;
use crate::args::mount::MountArgs;
use crate::error::{Failure, complain};
use crate::index;

/// Mounts, and records until the unmount.
pub fn run(args: MountArgs, store: Option<&Path>) -> Outcome {
    if let Some(name) = &args.name {
        check_name(name)?;
    }
    let home = Home::locate(store).map_err(Failure::not_found)?;
    let id = home.new_run_id();
    let what = MountOptions {
        directory: args.directory.clone(),
        mountpoint: args.mountpoint.clone(),
        passthrough: args.passthrough == PassthroughMode::On,
    };
    let after = index::in_background(&home);
    let run = source_options(&home, id.clone(), args.name, args.redact);
    let (directory, mountpoint) = (what.directory.display(), what.mountpoint.display());
    let mut news = |news: MountNews| match news {
        MountNews::Mounted => complain(&format!(
            "run {id} records {directory} at {mountpoint}, until it is unmounted"
        )),
        MountNews::Busy => complain(&format!(
            "{mountpoint} is in use and stays mounted; `fuser -vm {mountpoint}` lists the processes"
        )),
        MountNews::NotUnmounted(reason) => {
            complain(&format!("cannot unmount {mountpoint}: {reason}"));
        }
    };
    let recorded = mounted::mount(&what, run, &mut news).map_err(Failure::not_found)?;
    if let Some(line) = recorded.warning() {
        complain(&line);
    }
    start_indexer(&after);
    Ok(0)
}

/// The options of a run of a source, which has no command of its own.
pub(super) fn source_options(
    home: &Home,
    id: String,
    name: Option<String>,
    redact: Vec<String>,
) -> session::Options {
    session::Options {
        command: std::env::args_os().collect(),
        name,
        repeats: None,
        part: home.part_path(&id),
        log: home.log_path(&id),
        id,
        guard: GuardMode::Off,
        lookups: LookupsMode::All,
        io_uring: IoUringMode::Decode,
        contents: ContentsMode::Off,
        self_contained: false,
        suppress: SuppressMode::On,
        redact,
        detach_after: None,
        library_dir: home.dir().join("lib"),
        after: Vec::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Starts the indexer. Without it, the first question does the work.
pub(super) fn start_indexer(words: &[OsString]) {
    if let Some((program, rest)) = words.split_first() {
        let _ = Command::new(program)
            .args(rest)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
    }
}
