//! rpm: its database is read by its own program, the only manager here of which that is so; nothing else knows the formats it had over the
//! years. Asked once for a file, and not at all where there is no database.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Checksum, Manager, Owner, hex};

/// rpm's database.
pub struct Rpm {
    there: bool,
    root: PathBuf,
}

impl Rpm {
    /// The database below `root`.
    pub fn new(root: &Path) -> Rpm {
        let dirs = ["var/lib/rpm", "usr/lib/sysimage/rpm"];
        let files = ["rpmdb.sqlite", "Packages", "Packages.db"];
        let there = dirs
            .iter()
            .any(|dir| files.iter().any(|file| root.join(dir).join(file).exists()));
        Rpm {
            there,
            root: root.to_owned(),
        }
    }
}

impl Manager for Rpm {
    fn owner(&mut self, path: &Path) -> Option<Owner> {
        if !self.there {
            return None;
        }
        let format =
            "[%{=NAME}\\t%{=EPOCHNUM}:%{=VERSION}-%{=RELEASE}.%{=ARCH}\\t%{FILEDIGESTS}\\t%{FILENAMES}\\n]";
        let asked = Command::new("rpm")
            .arg("--root")
            .arg(&self.root)
            .args(["-qf", "--queryformat", format])
            .arg(path)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let answer = String::from_utf8(asked.stdout).ok()?;
        parse(&answer, path.to_str()?)
    }
}

/// The line about `path` of those that rpm printed: name, version, digest, path.
fn parse(answer: &str, path: &str) -> Option<Owner> {
    answer.lines().find_map(|line| {
        let [name, version, digest, file] = line.splitn(4, '\t').collect::<Vec<_>>().try_into().ok()?;
        (file == path).then(|| Owner {
            manager: "rpm",
            name: name.to_owned(),
            version: version.trim_start_matches("0:").to_owned(),
            checksum: hex(digest)
                .map(Checksum::Sha256)
                .or_else(|| hex(digest).map(Checksum::Md5)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_about_the_file_is_taken() {
        let sum = "ab".repeat(32);
        let answer = format!("bash\t0:5.2-1.x86_64\t\t/bin\nbash\t0:5.2-1.x86_64\t{sum}\t/bin/bash\n");
        let owner = parse(&answer, "/bin/bash").unwrap();
        assert_eq!(
            (owner.name.as_str(), owner.version.as_str()),
            ("bash", "5.2-1.x86_64")
        );
        assert_eq!(owner.checksum, Some(Checksum::Sha256([0xab; 32])));
        assert_eq!(parse(&answer, "/bin").unwrap().checksum, None);
        assert_eq!(parse(&answer, "/other"), None);
    }
}
