//! Packages that their managers installed themselves.

use backstory_testkit::need::skipped;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use super::*;

/// The first entry of a directory whose name begins so.
fn entry(dir: &Path, start: &str) -> Option<std::path::PathBuf> {
    let entries = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    let mut found = entries.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(start))
    });
    found.next()
}

/// True if the program is installed. If not, a line says that the test is skipped.
pub fn there(program: &str, what: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        skipped(what, &format!("needs {program}"));
    }
    found
}

pub fn done(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

const SPEC: &str = "Name: hi\nVersion: 1.2\nRelease: 3\nEpoch: 2\nSummary: x\nLicense: MIT\nBuildArch: noarch\n%description\nx\n\
    %install\nmkdir -p %{buildroot}/opt\necho hello > %{buildroot}/opt/hi\n%files\n/opt/hi\n";

#[test]
fn rpm_owns_what_it_installed_wherever_its_database_is() {
    if !there("rpmbuild", "packages of rpm") || !there("rpm", "packages of rpm") {
        return;
    }
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        skipped(
            "packages of rpm",
            "only root may install one into a root of its own",
        );
        return;
    }
    for database in ["/var/lib/rpm", "/usr/lib/sysimage/rpm"] {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path();
        write(dir, "hi.spec", SPEC);
        let built = format!("_topdir {}", dir.join("built").display());
        let rpm = |program: &str| Command::new(program);
        done(
            rpm("rpmbuild")
                .args(["-bb", "--quiet", "--define", &built])
                .arg(dir.join("hi.spec")),
        );
        let package = dir.join("built/RPMS/noarch/hi-1.2-3.noarch.rpm");
        let root = dir.join("root");
        fs::create_dir(&root).unwrap();
        // Debian's own program warns of itself; nothing of the package is run, so it need not be
        // root's.
        done(
            rpm("rpm")
                .arg("--root")
                .arg(&root)
                .args(["--dbpath", database, "-i", "--nodeps"])
                .arg(&package),
        );
        let mut packages = Packages::new(&root);
        let hi = |same| Some(("rpm hi 2:1.2-3.noarch".to_owned(), same));
        assert_eq!(
            told(&mut packages, "/opt/hi".as_ref(), "hello\n"),
            hi(true),
            "{database}"
        );
        assert_eq!(
            told(&mut packages, "/opt/hi".as_ref(), "other\n"),
            hi(false)
        );
        assert_eq!(told(&mut packages, "/opt".as_ref(), ""), None);
    }
}

/// Installed by the managers themselves: the validators of the exports' tests, and what this is
/// built from.
#[test]
fn packages_that_their_managers_installed_here_are_named_and_verified() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv");
    let home = std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let registry = home.and_then(|home| entry(&home.join("registry/src"), ""));
    let site = entry(&root.join("lib"), "python3").map(|lib| lib.join("site-packages"));
    let files = [
        ("pip", "prov", site.map(|site| site.join("prov/model.py"))),
        (
            "npm",
            "mermaid",
            Some(root.join("mermaid/node_modules/mermaid/package.json")),
        ),
        (
            "cargo",
            "thiserror",
            registry
                .and_then(|all| entry(&all, "thiserror-2"))
                .map(|dir| dir.join("Cargo.toml")),
        ),
    ];
    for (manager, name, file) in files {
        let Some(file) = file.and_then(|file| file.canonicalize().ok()) else {
            skipped(&format!("packages of {manager}"), &format!("needs {name}"));
            continue;
        };
        let owner = Packages::new(Path::new("/")).owners(&file).next().unwrap();
        assert_eq!((owner.manager, owner.name.as_str()), (manager, name));
        assert!(
            owner.version.starts_with(|c: char| c.is_ascii_digit()),
            "{owner:?}"
        );
        if owner.checksum.is_none() && manager != "pip" {
            let why = format!("its archive of {name} is not in its cache");
            skipped(&format!("checksums of {manager}"), &why);
            continue;
        }
        let mut content = fs::read(&file).unwrap();
        assert!(
            is_as_installed(&owner, &content),
            "{manager}: {}",
            file.display()
        );
        // One byte more is another file.
        content.push(b'\n');
        assert!(
            !is_as_installed(&owner, &content),
            "{manager}: {}",
            file.display()
        );
    }
}
