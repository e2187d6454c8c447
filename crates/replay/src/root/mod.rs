//! The file system and the namespaces of a replay, which contain only the files that the run used.
//!
//! Two processes build it, without privileges:
//!
//! 1. [`enter`] runs in the first process, which leaves the machine's namespaces.
//! 2. Its child is the first process of the new pid namespace. It calls [`build`] and
//!    [`become_user`], runs the command, and collects the results
//!    ([`results::RootSnapshot::collect`]). When it ends, only the results remain.
//!
//! Invariant: nothing of the machine can be changed from inside. Its files are mounted read-only.

pub mod results;

mod copy_out;
mod devices;
mod host_files;
mod listing_order;
mod network;
mod populate;
mod replayed_file;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use backstory_contents::WorkMeter;
use backstory_workflow::paths::to_path;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change,
    mount_remount, unmount,
};
use rustix::thread::UnshareFlags;

use crate::plan::Plan;
use crate::{Error, Result};

/// The replay's own directory, as seen from inside.
pub const OWN: &str = "/.backstory";

/// The machine's root, as seen while the replay's root is filled.
const HOST: &str = "/.host";

/// Leaves the machine's namespaces. The calling process must have one thread. It becomes root of
/// its own user namespace, and its children start a pid namespace.
pub fn enter(plan: &Plan) -> Result<()> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    unshare("user", UnshareFlags::NEWUSER)?;
    map(
        "0",
        &uid.as_raw().to_string(),
        &gid.as_raw().to_string(),
        "0",
    )?;
    unshare("mount", UnshareFlags::NEWNS)?;
    unshare(
        "process",
        UnshareFlags::NEWPID | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS,
    )?;
    if !plan.network {
        unshare("network", UnshareFlags::NEWNET)?;
    }
    Ok(())
}

/// The deprecated function is sound here: the process has one thread, and its descriptors stay
/// open.
#[allow(deprecated)]
fn unshare(what: &'static str, flags: UnshareFlags) -> Result<()> {
    rustix::thread::unshare(flags).map_err(|error| Error::NoNamespace {
        what,
        source: error.into(),
    })
}

/// Maps user `uid` and group `gid` of this namespace to `as_uid` and `as_gid`.
fn map(as_uid: &str, uid: &str, gid: &str, as_gid: &str) -> Result<()> {
    let no = |source| Error::NoNamespace {
        what: "user",
        source,
    };
    match fs::write("/proc/self/setgroups", "deny") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(no(error)),
        _ => {}
    }
    fs::write("/proc/self/uid_map", format!("{as_uid} {uid} 1")).map_err(no)?;
    fs::write("/proc/self/gid_map", format!("{as_gid} {gid} 1")).map_err(no)
}

/// Builds the plan's root and enters it. `own`: the replay's directory, which is visible as [`OWN`]
/// afterwards. `meter` counts the entries that are made.
pub fn build(plan: &Plan, own: &Path, meter: &WorkMeter) -> Result<()> {
    let at = |path: &str| PathBuf::from(path);
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .map_err(Error::build("separate the mounts below", "/"))?;
    let root = own.join("root");
    fs::create_dir_all(&root).map_err(Error::io("make", &root))?;
    tmpfs(&root, c"mode=755")?;
    for dir in [HOST, OWN] {
        let dir = root.join(&dir[1..]);
        fs::create_dir(&dir).map_err(Error::io("make", dir))?;
    }
    let within = root.join(&OWN[1..]);
    mount_bind(own, &within).map_err(Error::build("show", own))?;
    rustix::process::chdir(&root).map_err(Error::build("enter", &root))?;
    rustix::process::pivot_root(".", &HOST[1..])
        .map_err(Error::build("change the root to", &root))?;
    rustix::process::chdir("/").map_err(Error::build("enter", at("/")))?;
    devices::make(plan)?;
    populate::fill(plan, meter)?;
    unmount(HOST, UnmountFlags::DETACH).map_err(Error::build("leave", at(HOST)))?;
    fs::remove_dir(HOST).map_err(Error::io("remove", at(HOST)))?;
    if !plan.network {
        network::loopback().map_err(Error::io("bring up", at("lo")))?;
    }
    // Without a recorded host name, the namespace keeps its own.
    if !plan.host.is_empty() {
        rustix::system::sethostname(plan.host.as_bytes())
            .map_err(Error::build("name", at("the host")))?;
    }
    Ok(())
}

/// Becomes the recorded user, without rights beyond its own files.
pub fn become_user(plan: &Plan) -> Result<()> {
    if plan.uid != 0 {
        unshare("user", UnshareFlags::NEWUSER)?;
        map(&plan.uid.to_string(), "0", "0", &plan.gid.to_string())?;
    }
    let cwd = to_path(&plan.cwd);
    rustix::process::chdir(cwd).map_err(Error::build("enter", cwd))
}

fn tmpfs(path: &Path, options: &std::ffi::CStr) -> Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", path, "tmpfs", flags, options)
        .map_err(Error::build("mount a file system in memory at", path))
}

/// Mounts a file or directory of the machine at a path, read-only.
fn show(from: &Path, to: &Path) -> Result<()> {
    mount_bind(from, to).map_err(Error::build("show", from))?;
    protect(to)
}

/// Makes a mount read-only, unless it is already.
fn protect(to: &Path) -> Result<()> {
    let writable = rustix::fs::access(to, rustix::fs::Access::WRITE_OK).is_ok();
    if !writable {
        return Ok(());
    }
    // A remount must repeat the restrictions of the machine's mount.
    let kept = rustix::fs::statvfs(to).map_err(Error::build("look at", to))?;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (has, flag) in [
        (rustix::fs::StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (rustix::fs::StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (rustix::fs::StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (rustix::fs::StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (
            rustix::fs::StatVfsMountFlags::NODIRATIME,
            MountFlags::NODIRATIME,
        ),
        (
            rustix::fs::StatVfsMountFlags::RELATIME,
            MountFlags::RELATIME,
        ),
    ] {
        if kept.f_flag.contains(has) {
            flags |= flag;
        }
    }
    mount_remount(to, flags, c"").map_err(Error::build("protect", to))
}

/// The path of a machine's file while the root is filled.
fn on_host(bytes: &[u8]) -> PathBuf {
    let below = to_path(bytes);
    Path::new(HOST).join(below.strip_prefix("/").unwrap_or(below))
}
