//! Finds the byte engine, an optional program of its own, and starts commands under it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use backstory_session::SimulatorOptions;

use crate::error::Failure;

/// The tool's file, in the directory that `bytes/build` fills.
const TOOL: &str = "bytes-amd64-linux";

/// Its launcher for programs that are being recorded, in the same directory.
const LAUNCHER: &str = "launch";

/// Names the engine's directory.
const VARIABLE: &str = "BACKSTORY_BYTE_ENGINE";

/// An installed engine.
#[derive(Debug)]
pub struct ByteEngine {
    directory: PathBuf,
    valgrind: PathBuf,
}

impl ByteEngine {
    /// The engine in the directory that the environment names, else beside this program, else where
    /// packages put it.
    pub fn find() -> Result<ByteEngine, Failure> {
        let missing = |what: &str| {
            Failure::not_found(format!(
                "{what}: install the packages valgrind and gcc, run bytes/build DIRECTORY in the sources of backstory, and set {VARIABLE} to that directory"
            ))
        };
        let named = std::env::var_os(VARIABLE).map(PathBuf::from);
        let beside = std::env::current_exe().ok();
        let beside =
            beside.and_then(|exe| Some(exe.parent()?.parent()?.join("lib/backstory/bytes")));
        let usual = ["/usr/local/lib/backstory/bytes", "/usr/lib/backstory/bytes"];
        let mut all = named
            .into_iter()
            .chain(beside)
            .chain(usual.map(PathBuf::from));
        let directory = all.find(|directory| directory.join(TOOL).is_file());
        let directory = directory.ok_or_else(|| missing("the byte engine is not installed"))?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let valgrind = std::env::split_paths(&path)
            .map(|directory| directory.join("valgrind"))
            .find(|program| program.is_file());
        Ok(ByteEngine {
            directory: std::path::absolute(directory)?,
            valgrind: valgrind.ok_or_else(|| missing("valgrind is not installed"))?,
        })
    }

    /// The command that runs another one under the engine. `output`: an empty directory.
    /// `implicit`: also follow what branches decide.
    pub fn command(&self, output: &Path, implicit: bool, command: Vec<OsString>) -> Vec<OsString> {
        let mut all = self.words(output, implicit);
        all.extend(command);
        all
    }

    /// The engine for a command that is being recorded.
    pub fn recorded(&self, output: &Path, implicit: bool) -> Result<SimulatorOptions, Failure> {
        let launcher = self.directory.join(LAUNCHER);
        if !launcher.is_file() {
            return Err(Failure::not_found(format!(
                "{} has an older byte engine: run bytes/build {} again",
                self.directory.display(),
                self.directory.display()
            )));
        }
        let mut words = vec![OsString::from(launcher.clone())];
        words.extend(options(output, implicit));
        // A debugger's connection would be files of its own.
        words.extend(["--vgdb=no", "--recorded=yes"].map(OsString::from));
        Ok(SimulatorOptions {
            words,
            files: vec![launcher, self.directory.join(TOOL)],
        })
    }

    /// The beginning of a command that runs under the supervisor of a deep replay. That knows what
    /// descriptors are. `aside`: options that leave programs aside.
    pub fn asking(&self, output: &Path, implicit: bool, aside: Vec<OsString>) -> Vec<OsString> {
        let mut all = self.words(output, implicit);
        all.extend(aside);
        // A debugger's connection would wait for descriptors of its own.
        all.extend(["--vgdb=no", "--ask=yes"].map(OsString::from));
        all
    }

    fn words(&self, output: &Path, implicit: bool) -> Vec<OsString> {
        let mut all = vec![
            "/usr/bin/env".into(),
            option("VALGRIND_LIB=", &self.directory),
            self.valgrind.clone().into(),
        ];
        all.extend(options(output, implicit));
        all
    }
}

/// The engine's options.
fn options(output: &Path, implicit: bool) -> Vec<OsString> {
    let mut all = ["-q", "--tool=bytes", "--trace-children=yes"]
        .map(OsString::from)
        .to_vec();
    all.push(option("--output=", output));
    if implicit {
        all.push("--implicit=yes".into());
    }
    all
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}
