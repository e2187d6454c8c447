//! Bad input: faulty commands, machines and stores. Each gives a clear error or a truthful run. No
//! program behaves otherwise than without backstory.

mod commands;
pub(super) mod damage;
mod kernels;
mod limits;
pub(super) mod privileges;
mod scarce;
mod surroundings;

use std::path::Path;

use backstory_testkit::{fixtures, need};

use super::{Answer, Place};

impl Place {
    /// Puts a fixture into the stage. `None`, with a notice, if it cannot be compiled here.
    pub(super) fn fixture(&self, name: &str) -> Option<String> {
        // An existing file may be the built file itself under another name. Copying over it would
        // empty both.
        let there = self.stage.path().join("bin").join(name);
        if there.exists() {
            return Some(there.into_os_string().into_string().unwrap());
        }
        let built = fixtures::build(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
        let Some(file) = built.iter().find(|file| file.ends_with(name)) else {
            need::skipped(name, "it does not compile here");
            return None;
        };
        let path = self.stage.install(file).unwrap();
        Some(path.into_os_string().into_string().unwrap())
    }

    /// The staged program.
    pub(super) fn program(&self) -> String {
        let path = self.stage.path().join("bin/backstory");
        path.into_os_string().into_string().unwrap()
    }

    /// Runs a shell line, unrecorded. The line knows the staged program as `$B`.
    pub(super) fn shell(&self, line: &str) -> Answer {
        let mut command = self.stage.command("sh");
        command
            .current_dir(self.work())
            .env("BACKSTORY_STORE", self.stage.store())
            .env("B", self.program())
            .args(["-c", line]);
        Answer::of(command.output().unwrap())
    }

    /// A stage for a user that may mount FUSE file systems: on some machines only root.
    pub(super) fn with_file_servers() -> Option<Place> {
        let place = Place::new();
        if place.shell("exec 3<>/dev/fuse").status == 0 {
            return Some(place);
        }
        Place::of_root()
    }

    /// Runs a shell line like [`Place::shell`], as root of its own user and mount namespaces.
    /// `None`, with a notice, where that is not permitted.
    pub(super) fn shell_in_namespaces(&self, what: &str, line: &str) -> Option<Answer> {
        if !need::needs(what, &["unshare", "mount"]) {
            return None;
        }
        let probe = self.shell("unshare -Urm mount -t tmpfs none /mnt");
        if probe.status != 0 {
            need::skipped(what, "needs user namespaces");
            return None;
        }
        let quoted = line.replace('\'', r"'\''");
        Some(self.shell(&format!("unshare -Urm sh -c '{quoted}'")))
    }

    /// True if the latest run lists this file of the working directory as written.
    pub(super) fn wrote(&self, name: &str) -> bool {
        let path = self.path(name);
        let files = self.json(&["files", "--json"]);
        let wrote = |file: &&serde_json::Value| {
            file["path"] == path.as_str()
                && file["access"].as_array().unwrap().contains(&"write".into())
        };
        files.as_array().unwrap().iter().find(wrote).is_some()
    }
}
