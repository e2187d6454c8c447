//! `mount`: records what any process does below a mount point.

use std::path::Path;

use backstory_mount::{self as mounted, MountNews, MountOptions, PassthroughRefusal};
use backstory_session::Options;
use backstory_store::Home;
use backstory_vocabulary::PassthroughMode;

use super::Outcome;
use super::record::check_name;
use super::source_run::{source_options, start_indexer};
use crate::args::mount::MountArgs;
use crate::error::{Failure, complain};
use crate::index;
use crate::shell_policy::ShellPolicy;

/// Mounts, and records until the unmount.
pub fn run(args: MountArgs, store: Option<&Path>) -> Outcome {
    if let Some(name) = &args.name {
        check_name(name)?;
    }
    let passthrough = args.passthrough == PassthroughMode::On;
    if args.nfs && passthrough {
        return Err(Failure::misuse(
            "--nfs needs --passthrough off: what the kernel reads and writes itself has no client",
        ));
    }
    let home = Home::locate(store).map_err(Failure::not_found)?;
    let id = home.new_run_id();
    let what = MountOptions {
        directory: args.directory.clone(),
        mountpoint: args.mountpoint.clone(),
        passthrough,
        nfs: args.nfs,
        kept_limit: ShellPolicy::load().contents.store.bytes_at(home.dir()),
    };
    let after = index::in_background(&home);
    let run = Options {
        contents: args.contents,
        ..source_options(&home, id.clone(), args.name, args.redact)
    };
    let (directory, mountpoint) = (what.directory.display(), what.mountpoint.display());
    let unmount = match rustix::process::geteuid().is_root() {
        true => "umount",
        false => "fusermount3 -u",
    };
    let mut news = |news: MountNews| match news {
        MountNews::HidesDeadMount => complain(&format!(
            "{mountpoint} has a dead mount, whose server has ended; run {id} mounts over it and \
             does not remove it"
        )),
        MountNews::Mounted => complain(&format!(
            "run {id} records {directory} at {mountpoint}, until it is unmounted"
        )),
        MountNews::WithoutPassthrough(refusal) => complain(&format!(
            "--passthrough on fails at {mountpoint}: {}",
            without_passthrough(&refusal)
        )),
        MountNews::Busy => complain(&format!(
            "{mountpoint} is in use and stays mounted; `fuser -vm {mountpoint}` lists the processes"
        )),
        MountNews::NotUnmounted(reason) => {
            complain(&format!("cannot unmount {mountpoint}: {reason}"));
        }
        MountNews::Elsewhere => complain(&format!(
            "{mountpoint} is unmounted, but is mounted elsewhere, too, perhaps in a container, or \
             in use after `umount -l`: run {id} ends with the last mount; `grep fuse.backstory \
             /proc/*/mountinfo` finds mounts"
        )),
        MountNews::Finishing => complain(&format!(
            "{mountpoint} is unmounted; run {id} ends when the work for earlier requests is \
             finished, such as copies of contents"
        )),
        MountNews::DeadMountLeft => complain(&format!(
            "{mountpoint} still has a dead mount, whose server has ended; `{unmount} {mountpoint}` \
             removes it"
        )),
    };
    let recorded = mounted::mount(&what, run, &mut news).map_err(Failure::not_found)?;
    if let Some(line) = recorded.warning() {
        complain(&line);
    }
    start_indexer(&after);
    Ok(0)
}

/// Why the kernel does not read and write files itself, what happens instead, and what to do.
fn without_passthrough(refusal: &PassthroughRefusal) -> String {
    match refusal {
        PassthroughRefusal::Kernel => "this kernel has no FUSE passthrough; the mount reads and \
            writes all files itself; use Linux 6.9 or later with CONFIG_FUSE_PASSTHROUGH, or \
            `--passthrough off`"
            .to_owned(),
        PassthroughRefusal::Privilege => "the kernel permits it only to root, outside of user \
            namespaces (CAP_SYS_ADMIN); the mount reads and writes all files itself; mount as \
            root, or with `--passthrough off`"
            .to_owned(),
        PassthroughRefusal::FileSystem => "the kernel does not pass through files of a file \
            system that is stacked on another one, such as overlayfs; the mount reads and writes \
            such files itself; mount a directory of the lower file system, or use `--passthrough \
            off`"
            .to_owned(),
        PassthroughRefusal::Other(reason) => format!(
            "the kernel refused to pass a file through: {reason}; the mount reads and writes such \
             files itself; remove the cause, or use `--passthrough off`"
        ),
    }
}
