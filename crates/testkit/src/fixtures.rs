//! Small programs that do one unusual thing each, compiled from `fixtures/programs` once per build directory.
//!
//! A C file's first line may hold `// build: COMMAND…`, in which `$IN` and `$OUT` stand for the paths; the default is gcc with threads.
//! Go files are built with cgo off. What can't be compiled here is left out, loudly.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::need::{find, skipped};

const DEFAULT: &str = "gcc -D_GNU_SOURCE -O1 -Wall -o $OUT $IN -pthread";
const GO: &str = "go build -o $OUT $IN";

/// Directory of the sources.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/programs")
}

/// Compiles every fixture that is not up to date into `target/fixtures` and returns the executables that exist.
pub fn build(target: &Path) -> io::Result<Vec<PathBuf>> {
    let out = target.join("fixtures");
    fs::create_dir_all(&out)?;
    let lock = fs::File::create(out.join(".lock"))?;
    lock.lock()?;
    let mut built = Vec::new();
    let mut files = fs::read_dir(sources())?.collect::<io::Result<Vec<_>>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        let source = file.path();
        let command = match source.extension().and_then(|e| e.to_str()) {
            Some("c") => recipe(&source)?,
            Some("go") => GO.to_owned(),
            _ => continue,
        };
        let executable = out.join(source.file_stem().unwrap_or_default());
        if newer(&executable, &source) || compile(&command, &source, &executable)? {
            built.push(executable);
        }
    }
    Ok(built)
}

fn recipe(source: &Path) -> io::Result<String> {
    let text = fs::read_to_string(source)?;
    let first = text.lines().next().and_then(|l| l.strip_prefix("// build: "));
    Ok(first.unwrap_or(DEFAULT).to_owned())
}

fn newer(executable: &Path, source: &Path) -> bool {
    let time = |p: &Path| fs::metadata(p).and_then(|m| m.modified()).ok();
    matches!((time(executable), time(source)), (Some(e), Some(s)) if e > s)
}

fn compile(recipe: &str, source: &Path, executable: &Path) -> io::Result<bool> {
    let mut words = recipe.split(' ');
    let Some(compiler) = words.next().and_then(find) else {
        skipped(
            &format!("fixture {}", source.display()),
            &format!("no compiler for `{recipe}`"),
        );
        return Ok(false);
    };
    let mut command = Command::new(compiler);
    for word in words {
        match word {
            "$IN" => command.arg(source),
            "$OUT" => command.arg(executable),
            _ => command.arg(word),
        };
    }
    command
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=mod")
        .env("GO111MODULE", "off")
        .stdin(Stdio::null());
    if std::env::var_os("HOME").is_none() {
        command.env("GOCACHE", executable.with_extension("gocache"));
    }
    let output = command.output()?;
    if output.status.success() {
        return Ok(true);
    }
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(format!(
        "fixture {} does not compile: {why}",
        source.display()
    )))
}
