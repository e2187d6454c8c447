//! rpm. Its own program reads its database, because no library knows all formats that the database
//! has had. The program runs once for each package, and never if there is no database.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::checksum::Checksum;
use crate::package_id::PackageId;
use crate::provider::{Owner, Provider};
use crate::records::hex;

/// rpm's database.
pub struct Rpm {
    root: PathBuf,
    /// The path of the database below the root. `None` if it does not exist.
    database: Option<PathBuf>,
    /// All files of the packages that were looked up.
    known: HashMap<PathBuf, Owner>,
}

impl Rpm {
    /// The database below `root`.
    pub fn new(root: &Path) -> Rpm {
        let dirs = ["var/lib/rpm", "usr/lib/sysimage/rpm"];
        let files = ["rpmdb.sqlite", "Packages", "Packages.db"];
        let is_one = |dir: &&str| files.iter().any(|file| root.join(dir).join(file).exists());
        let found = dirs.iter().find(|dir| is_one(dir));
        Rpm {
            database: found.map(|dir| Path::new("/").join(dir)),
            root: root.to_owned(),
            known: HashMap::new(),
        }
    }
}

impl Provider for Rpm {
    fn package(&mut self, path: &Path) -> Option<PackageId> {
        let owner = self.owner(path)?;
        Some(PackageId::of_system("rpm", owner.name, owner.version))
    }

    fn owner(&mut self, path: &Path) -> Option<Owner> {
        let database = self.database.as_ref()?;
        if let Some(owner) = self.known.get(path) {
            return Some(owner.clone());
        }
        let format = "[%{=NAME}\\t%{=EPOCHNUM}:%{=VERSION}-%{=RELEASE}.%{=ARCH}\\t%{FILEDIGESTS}\\t%{FILENAMES}\\n]";
        let asked = Command::new("rpm")
            .arg("--root")
            .arg(&self.root)
            // The default of the program depends on its build: Debian's looks into the user's home.
            .arg("--dbpath")
            .arg(database)
            .args(["-qf", "--queryformat", format])
            .arg(path)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let answer = String::from_utf8(asked.stdout).ok()?;
        self.known.extend(answer.lines().filter_map(parse));
        self.known.get(path).cloned()
    }
}

/// Parses a line of rpm's output: name, version, digest, path.
fn parse(line: &str) -> Option<(PathBuf, Owner)> {
    let [name, version, digest, file] = line.splitn(4, '\t').collect::<Vec<_>>().try_into().ok()?;
    let owner = Owner {
        manager: "rpm",
        name: name.to_owned(),
        version: version.strip_prefix("0:").unwrap_or(version).to_owned(),
        checksum: hex(digest)
            .map(Checksum::Sha256)
            .or_else(|| hex(digest).map(Checksum::Md5)),
    };
    Some((file.into(), owner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_package_version_checksum_and_file() {
        let sum = "ab".repeat(32);
        let (file, owner) = parse(&format!("bash\t0:5.2-1.x86_64\t{sum}\t/bin/bash")).unwrap();
        assert_eq!(file, Path::new("/bin/bash"));
        assert_eq!(
            (owner.name.as_str(), owner.version.as_str()),
            ("bash", "5.2-1.x86_64")
        );
        assert_eq!(owner.checksum, Some(Checksum::Sha256([0xab; 32])));
        let (_, directory) = parse("bash\t2:5.2-1.x86_64\t\t/bin").unwrap();
        assert_eq!(
            (directory.version.as_str(), directory.checksum),
            ("2:5.2-1.x86_64", None)
        );
        assert_eq!(parse("file /other is not owned by any package"), None);
    }
}
