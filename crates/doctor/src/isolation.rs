//! Namespaces, the container around this process, and Landlock.

use std::fs;
use std::io;
use std::path::Path;

use backstory_sys as sys;
use rustix::thread::UnshareFlags;

use crate::attempt::in_child;
use crate::finding::Finding;

/// Enters the namespaces that `replay` needs, in a child.
pub fn namespaces() -> Finding {
    const NAME: &str = "namespaces";
    match in_child(enter) {
        Ok(()) => Finding::works(NAME, "user, mount, pid and network namespaces can be made"),
        Err(error) => Finding::limited(
            NAME,
            format!("cannot be made: {error}"),
            "`replay` cannot make its root directory. Recording needs none.",
            allow_namespaces(),
        ),
    }
}

/// The deprecated function is sound here: the child has one thread, and its descriptors stay open.
#[allow(deprecated)]
fn enter() -> io::Result<()> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    rustix::thread::unshare(UnshareFlags::NEWUSER)?;
    let _ = fs::write("/proc/self/setgroups", "deny");
    fs::write("/proc/self/uid_map", format!("0 {} 1", uid.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("0 {} 1", gid.as_raw()))?;
    rustix::thread::unshare(
        UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWNET | UnshareFlags::NEWUTS,
    )?;
    Ok(())
}

/// The setting that forbids them here.
fn allow_namespaces() -> String {
    let value = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_default();
        text.trim().to_owned()
    };
    if value("kernel/unprivileged_userns_clone") == "0" {
        return "Allow them: sysctl kernel.unprivileged_userns_clone=1.".to_owned();
    }
    if value("user/max_user_namespaces") == "0" {
        return "Allow them: sysctl user.max_user_namespaces=1000.".to_owned();
    }
    if value("kernel/apparmor_restrict_unprivileged_userns") == "1" {
        return "Allow them: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or give \
                backstory an AppArmor profile with `userns`."
            .to_owned();
    }
    "Use a kernel with CONFIG_USER_NS. In a container, use a seccomp profile that permits \
     unshare(2)."
        .to_owned()
}

pub fn container() -> Finding {
    const NAME: &str = "container";
    let Some(kind) = kind() else {
        return Finding::works(NAME, "none was found");
    };
    Finding::limited(
        NAME,
        format!("this is a container ({kind})"),
        "Recorded paths are those inside. A store inside is removed with the container.",
        "Keep the store on a volume: --store DIR, or $BACKSTORY_STORE.",
    )
}

fn kind() -> Option<String> {
    if Path::new("/.dockerenv").exists() {
        return Some("Docker".to_owned());
    }
    if Path::new("/run/.containerenv").exists() {
        return Some("Podman".to_owned());
    }
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        return Some("Kubernetes".to_owned());
    }
    let named = |environment: Vec<u8>| {
        let found = environment
            .split(|byte| *byte == 0)
            .find_map(|one| one.strip_prefix(b"container="));
        found.map(|name| String::from_utf8_lossy(name).into_owned())
    };
    let own = std::env::var("container").ok();
    own.or_else(|| fs::read("/proc/1/environ").ok().and_then(named))
        .filter(|name| !name.is_empty())
}

pub fn landlock() -> Finding {
    let found = match sys::landlock_version() {
        Some(version) => format!("ABI version {version}"),
        None => "not offered by this kernel".to_owned(),
    };
    Finding::works("Landlock", format!("{found}; backstory does not need it"))
}
