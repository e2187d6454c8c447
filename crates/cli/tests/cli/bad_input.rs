//! What nobody wishes for: commands, machines and stores that are not as they should be. Each gives a clear error or a truthful run,
//! and never a program that behaves otherwise than it would have.

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
    /// Puts a fixture into the place. None, loudly, if it cannot be compiled here.
    pub(super) fn fixture(&self, name: &str) -> Option<String> {
        // What is there already may be the built file itself by another name: to put it there again would empty both.
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
    fn program(&self) -> String {
        let path = self.stage.path().join("bin/backstory");
        path.into_os_string().into_string().unwrap()
    }

    /// A shell line, which knows the staged program as `$B` and is not recorded itself.
    pub(super) fn shell(&self, line: &str) -> Answer {
        let mut command = self.stage.command("sh");
        command
            .current_dir(self.work())
            .env("BACKSTORY_STORE", self.stage.store())
            .env("B", self.program())
            .args(["-c", line]);
        Answer::of(command.output().unwrap())
    }

    /// A place of somebody who may serve files: on some machines root alone.
    pub(super) fn with_file_servers() -> Option<Place> {
        let place = Place::new();
        if place.shell("exec 3<>/dev/fuse").status == 0 {
            return Some(place);
        }
        Place::of_root()
    }

    /// A shell line as [`Place::shell`] takes it, in user and mount namespaces of its own, as their root. None, loudly, where that is not allowed.
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

    /// True if the latest run says that it wrote this file of the working directory.
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
