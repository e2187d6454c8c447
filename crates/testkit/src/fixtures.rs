//! Small programs that do one unusual thing each, compiled from `fixtures/programs` once per build
//! directory.
//!
//! A C file's first line may hold `// build: COMMAND…`, in which `$IN` and `$OUT` stand for the
//! paths. The default is gcc with threads. A fixture is compiled again when it, or a file that it
//! includes from its own directory, has changed. Go files are built without cgo. A fixture that
//! cannot be compiled here is left out, with a notice.

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

/// Compiles every fixture that is not up to date into `target/fixtures`. Returns the executables
/// that exist.
pub fn build(target: &Path) -> io::Result<Vec<PathBuf>> {
    build_all(&sources(), target)
}

/// The same for the sources in `from`.
fn build_all(from: &Path, target: &Path) -> io::Result<Vec<PathBuf>> {
    let out = target.join("fixtures");
    fs::create_dir_all(&out)?;
    let lock = fs::File::create(out.join(".lock"))?;
    lock.lock()?;
    let mut built = Vec::new();
    let mut files = fs::read_dir(from)?.collect::<io::Result<Vec<_>>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        let source = file.path();
        let command = match source.extension().and_then(|e| e.to_str()) {
            Some("c") => recipe(&source)?,
            Some("go") => GO.to_owned(),
            _ => continue,
        };
        let executable = out.join(source.file_stem().unwrap_or_default());
        if up_to_date(&executable, &source)? || compile(&command, &source, &executable)? {
            built.push(executable);
        }
    }
    Ok(built)
}

fn recipe(source: &Path) -> io::Result<String> {
    let text = fs::read_to_string(source)?;
    let first = text
        .lines()
        .next()
        .and_then(|l| l.strip_prefix("// build: "));
    Ok(first.unwrap_or(DEFAULT).to_owned())
}

/// The files of `source`: itself, its includes (`#include "NAME"`) from its own directory, and
/// theirs.
fn parts(source: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![source.to_owned()];
    let mut read = 0;
    while let Some(part) = found.get(read) {
        let text = fs::read_to_string(part)?;
        let included = |line: &str| {
            line.strip_prefix("#include \"")
                .and_then(|l| l.split('"').next())
                .map(str::to_owned)
        };
        for name in text.lines().filter_map(included) {
            let file = source.with_file_name(name);
            if file.exists() && !found.contains(&file) {
                found.push(file);
            }
        }
        read += 1;
    }
    Ok(found)
}

/// True if the executable is newer than its source and all its includes.
pub fn up_to_date(executable: &Path, source: &Path) -> io::Result<bool> {
    let time = |p: &Path| fs::metadata(p).and_then(|m| m.modified()).ok();
    let Some(made) = time(executable) else {
        return Ok(false);
    };
    let older = |part: &PathBuf| time(part).is_some_and(|changed| made > changed);
    Ok(parts(source)?.iter().all(older))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn says(fixtures: &[PathBuf]) -> String {
        let output = Command::new(&fixtures[0])
            .output()
            .expect("the fixture runs");
        String::from_utf8(output.stdout).expect("text")
    }

    #[test]
    fn a_fixture_is_compiled_again_when_what_it_includes_has_changed_and_only_then() {
        if find("gcc").is_none() {
            return skipped("fixtures", "needs gcc");
        }
        let place = tempfile::tempdir().expect("a place");
        let write =
            |name: &str, text: &str| fs::write(place.path().join(name), text).expect("a source");
        write(
            "one.c",
            "#include <stdio.h>\n#include \"near.h\"\nint main(void) { puts(WORD); }\n",
        );
        write("near.h", "#include \"far.h\"\n");
        write("far.h", "#define WORD \"old\"\n");
        let built = || build_all(place.path(), &place.path().join("target")).expect("it compiles");
        assert_eq!(says(&built()), "old\n");
        let made = || {
            fs::metadata(&built()[0])
                .and_then(|m| m.modified())
                .expect("a time")
        };
        assert_eq!(made(), made());
        write("far.h", "#define WORD \"new\"\n");
        assert_eq!(says(&built()), "new\n");
    }
}
