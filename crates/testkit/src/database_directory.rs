//! The first files of a database server, made once per build directory.
//!
//! A server's own program needs a second or more to make them, and most tests of databases need a
//! server. The servers of two tests are therefore equal in what that program chooses at random.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::Stage;

/// Fills `data`, a directory that does not exist yet, with the first files of a server. They belong
/// to the user of the stage. The test that comes first calls `make` with the options, by which
/// `program` makes them.
pub fn fill(
    stage: &Stage,
    data: &Path,
    (program, options): (&Path, &[&str]),
    make: impl FnOnce(&[&str]) -> io::Result<()>,
) -> io::Result<()> {
    let kept = kept(program, options)?;
    let lock = fs::File::create(kept.with_extension("lock"))?;
    lock.lock()?;
    if kept.exists() {
        copy(&kept, data)?;
        return stage.user().owns(data);
    }
    make(options)?;
    let part = kept.with_extension("part");
    if part.exists() {
        fs::remove_dir_all(&part)?;
    }
    copy(data, &part)?;
    fs::rename(part, kept)
}

/// Where the files that this version of the program makes with these options are kept: below the
/// build directory of the running test, `target/debug/deps/…`.
fn kept(program: &Path, options: &[&str]) -> io::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let target = test.ancestors().nth(3);
    let target = target.ok_or_else(|| io::Error::other("a test outside of a build directory"))?;
    let target = target.join("tmp/databases");
    fs::create_dir_all(&target)?;
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let status = fs::metadata(program)?;
    let mut of = DefaultHasher::new();
    (status.ino(), status.mtime(), options).hash(&mut of);
    Ok(target.join(format!("{name}-{:x}", of.finish())))
}

/// Copies a directory with its modes.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let status = Command::new("/bin/cp")
        .args(["-R", "--preserve=mode", "--"])
        .args([from, to])
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "a copy of {}: {status}",
            from.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::User;

    #[test]
    fn the_files_are_made_once_for_each_choice_of_options_and_belong_to_the_user_of_each_stage() {
        let mut program = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut program, b"a server").unwrap();
        let made = std::cell::Cell::new(0);
        let choices: [&[&str]; 2] = [&[], &["--large"]];
        for options in choices.into_iter().chain(choices) {
            let stage = Stage::of(User::ordinary(), program.path()).unwrap();
            let data = stage.path().join("database");
            let make = |options: &[&str]| {
                made.set(made.get() + 1);
                let first = stage.directory("database")?.join("first");
                fs::write(&first, options.concat())?;
                stage.user().owns(&first)
            };
            fill(&stage, &data, (program.path(), options), make).unwrap();
            let first = fs::read_to_string(data.join("first")).unwrap();
            assert_eq!(first, options.concat());
            for path in [&data, &data.join("first")] {
                let (file, home) = (fs::metadata(path), fs::metadata(stage.path().join("home")));
                assert_eq!(file.unwrap().uid(), home.unwrap().uid(), "{path:?}");
            }
        }
        assert_eq!(made.get(), 2);
        for options in choices {
            let kept = kept(program.path(), options).unwrap();
            fs::remove_file(kept.with_extension("lock")).unwrap();
            fs::remove_dir_all(kept).unwrap();
        }
    }
}
