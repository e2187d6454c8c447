//! The kernel's own directories: `/proc`, the devices that every program may use, shared memory and
//! `/tmp`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::mount::{MountFlags, mount, mount_bind, mount_bind_recursive};

use super::{HOST, tmpfs};
use crate::plan::Plan;
use crate::{Error, Result};

/// Devices that give no access to the machine.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Makes the directories and devices.
pub fn make(plan: &Plan) -> Result<()> {
    for dir in ["/dev", "/dev/shm", "/dev/pts", "/proc", "/tmp"] {
        fs::create_dir(dir).map_err(Error::io("make", dir))?;
    }
    let open = fs::Permissions::from_mode(0o1777);
    fs::set_permissions("/tmp", open).map_err(Error::io("open", "/tmp"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    if mount("proc", "/proc", "proc", flags, c"").is_err() {
        // In a container whose own `/proc` is partly covered, the kernel does not mount a new one.
        mount_bind_recursive(Path::new(HOST).join("proc"), "/proc")
            .map_err(Error::build("show", "/proc"))?;
    }
    for device in DEVICES {
        let (from, to) = (
            Path::new(HOST).join("dev").join(device),
            Path::new("/dev").join(device),
        );
        fs::write(&to, "").map_err(Error::io("make", &to))?;
        mount_bind(&from, &to).map_err(Error::build("show", to))?;
    }
    for (link, target) in LINKS {
        symlink(target, link).map_err(Error::io("make", link))?;
    }
    tmpfs(Path::new("/dev/shm"), c"mode=1777")?;
    let terminals = Path::new(HOST).join("dev/pts");
    if mount(
        "devpts",
        "/dev/pts",
        "devpts",
        MountFlags::NOSUID | MountFlags::NOEXEC,
        c"newinstance,ptmxmode=0666",
    )
    .is_err()
    {
        mount_bind(&terminals, "/dev/pts").map_err(Error::build("show", terminals))?;
    }
    symlink("pts/ptmx", "/dev/ptmx").map_err(Error::io("make", "/dev/ptmx"))?;
    if plan.sys {
        fs::create_dir("/sys").map_err(Error::io("make", "/sys"))?;
        let sys = Path::new(HOST).join("sys");
        // A new sysfs shows the devices of the replay's own network.
        mount("sysfs", "/sys", "sysfs", flags | MountFlags::RDONLY, c"")
            .or_else(|_| mount_bind_recursive(&sys, "/sys"))
            .or_else(|_| mount_bind(&sys, "/sys"))
            .map_err(Error::build("show", sys))?;
    }
    Ok(())
}
