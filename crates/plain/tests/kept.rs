//! Verdicts that an earlier run kept, and files of verdicts that are not believed.
#![allow(clippy::unwrap_used)]

use crate::verdict_file;
use backstory_plain::cache::LibraryCache;
use backstory_plain::{Classifier, Ignored, NotPlain};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use verdict_file::{HEAD, forged, seal};

/// A program of the system, which is plain.
const SYSTEMS: &str = "/usr/bin/env";
const NOTHING: &str = "int main(void) { return 0; }";
const ENTERS: &str = "int main(void) { long a = 39; __asm__ volatile(\"syscall\" : \"+a\"(a) :: \
    \"rcx\", \"r11\", \"memory\"); return a > 0; }";

struct Workshop {
    dir: tempfile::TempDir,
}

impl Workshop {
    /// `None` where no program is plain.
    fn open() -> Option<Workshop> {
        let plain = Classifier::of_machine().is_some_and(|mut classifier| {
            let verdict = classifier.program(Path::new(SYSTEMS));
            verdict.is_ok()
        });
        if !plain {
            backstory_testkit::need::skipped("plain programs", "libc is not of a known release");
        }
        let dir = tempfile::tempdir().unwrap();
        plain.then_some(Workshop { dir })
    }

    /// True where the verdicts about programs of the system last.
    fn systems_last() -> bool {
        let lasts = verdict_file::lasts(SYSTEMS);
        if !lasts {
            let why = format!("{SYSTEMS} is not root's, or is on FUSE");
            backstory_testkit::need::skipped("kept verdicts", &why);
        }
        lasts
    }

    fn kept(&self) -> PathBuf {
        self.dir.path().join("verdicts.index")
    }

    /// A run that classifies these programs. Returns their verdicts, and how many files it read.
    fn run(&self, programs: &[&Path]) -> (Vec<Result<(), NotPlain>>, usize) {
        let mut classifier = Classifier::of_machine().unwrap();
        let _ = classifier.recall(&self.kept());
        let verdicts = programs.iter().map(|path| classifier.program(path));
        let verdicts = verdicts.collect();
        classifier.keep(&self.kept()).unwrap();
        (verdicts, classifier.classified())
    }

    /// Compiles a program that belongs to root, or to another user.
    fn compile(&self, name: &str, text: &str) -> PathBuf {
        let source = self.dir.path().join(format!("{name}.c"));
        fs::write(&source, text).unwrap();
        let made = self.dir.path().join(name);
        let mut compiler = Command::new("cc");
        let status = compiler.arg(&source).arg("-o").arg(&made).status();
        assert!(status.unwrap().success(), "{name}");
        made
    }

    /// Compiles a program of an ordinary user, which is old enough for a verdict that lasts.
    fn compile_as_user(&self, name: &str, text: &str) -> PathBuf {
        let made = self.compile(name, text);
        if fs::metadata(&made).unwrap().uid() == 0 {
            chown(&made, Some(65534), Some(65534)).unwrap();
        }
        wait_until_old(&made);
        made
    }
}

/// Waits until a change would give another time to the file.
fn wait_until_old(path: &Path) {
    let mut classifier = Classifier::of_machine().unwrap();
    loop {
        let _ = classifier.program(path);
        let before = classifier.classified();
        let _ = classifier.program(path);
        if classifier.classified() == before {
            return;
        }
    }
}

#[test]
fn a_second_run_classifies_nothing() {
    let Some(shop) = Workshop::open().filter(|_| Workshop::systems_last()) else {
        return;
    };
    let users = shop.compile_as_user("enters", ENTERS);
    let programs = [Path::new(SYSTEMS), Path::new("/bin/sh"), &users];
    let (first, classified) = shop.run(&programs);
    assert!(classified >= 4, "programs, loader and libc: {classified}");
    let made = fs::metadata(shop.kept()).unwrap();
    assert_eq!(made.mode() & 0o777, 0o600);
    let (second, classified) = shop.run(&programs);
    assert_eq!(classified, 0);
    let plain = |verdicts: &[Result<(), NotPlain>]| -> Vec<bool> {
        verdicts.iter().map(Result::is_ok).collect()
    };
    assert_eq!(plain(&first), plain(&second));
    assert_eq!(second.last(), Some(&Err(NotPlain::KnownFromEarlier)));
    let same = fs::metadata(shop.kept()).unwrap();
    assert_eq!(same.ino(), made.ino(), "nothing new is written");
}

#[test]
fn a_replaced_program_is_classified_anew() {
    let Some(shop) = Workshop::open() else {
        return;
    };
    let program = shop.compile("program", NOTHING);
    if fs::metadata(&program).unwrap().uid() != 0 {
        return backstory_testkit::need::skipped("a replaced program", "needs root");
    }
    wait_until_old(&program);
    assert_eq!(shop.run(&[&program]).0, [Ok(())]);
    assert_eq!(shop.run(&[&program]), (vec![Ok(())], 0));
    // In place, with the same inode; then as another file.
    let other = shop.compile("other", ENTERS);
    fs::copy(&other, &program).unwrap();
    for _ in 0..2 {
        wait_until_old(&program);
        let (verdicts, classified) = shop.run(&[&program]);
        assert!(matches!(verdicts[0], Err(NotPlain::EntersKernel { .. })));
        assert_eq!(classified, 1);
        fs::rename(&other, &program).ok();
    }
    // Changed rights give another identity, too.
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).unwrap();
    let (verdicts, _) = shop.run(&[&program]);
    assert!(matches!(verdicts[0], Err(NotPlain::Privileged(_))));
}

#[test]
fn a_program_just_changed_leaves_no_verdict() {
    let Some(shop) = Workshop::open() else {
        return;
    };
    let program = shop.compile("program", ENTERS);
    let mut length = None;
    // A slow machine may look late. The next copy is new again.
    for _ in 0..1000 {
        shop.run(&[Path::new(SYSTEMS)]);
        let before = fs::metadata(shop.kept()).unwrap().len();
        fs::copy(
            shop.dir.path().join("program"),
            shop.dir.path().join("copy"),
        )
        .unwrap();
        shop.run(&[&shop.dir.path().join("copy")]);
        length = Some(fs::metadata(shop.kept()).unwrap().len() - before);
        if length == Some(0) {
            break;
        }
        fs::remove_file(shop.kept()).unwrap();
    }
    assert_eq!(length, Some(0), "{}", program.display());
}

#[test]
fn what_another_user_could_write_is_not_believed_to_be_plain() {
    let Some(shop) = Workshop::open() else {
        return;
    };
    let users = shop.compile_as_user("users", NOTHING);
    assert_eq!(shop.run(&[&users]).0, [Ok(())]);
    assert_eq!(shop.run(&[&users]), (vec![Ok(())], 1));
    // Not plain is believed, and such an entry is what a hostile program would start from.
    let enters = shop.compile_as_user("enters", ENTERS);
    fs::remove_file(shop.kept()).unwrap();
    shop.run(&[&enters]);
    assert_eq!(
        shop.run(&[&enters]),
        (vec![Err(NotPlain::KnownFromEarlier)], 0)
    );
    let entry = fs::read(shop.kept()).unwrap();
    fs::write(shop.kept(), forged(&entry, b"libc.so.6\0")).unwrap();
    let (verdicts, classified) = shop.run(&[&enters]);
    assert!(matches!(verdicts[0], Err(NotPlain::EntersKernel { .. })));
    assert_eq!(classified, 1);
    // The same entry is believed of root's program.
    if fs::metadata(&enters).unwrap().uid() == 0 || chown(&enters, Some(0), Some(0)).is_err() {
        return;
    }
    wait_until_old(&enters);
    fs::remove_file(shop.kept()).unwrap();
    shop.run(&[&enters]);
    let entry = fs::read(shop.kept()).unwrap();
    let recalled = |names: &[u8]| {
        fs::write(shop.kept(), forged(&entry, names)).unwrap();
        let mut classifier = Classifier::of_machine().unwrap();
        classifier.recall(&shop.kept()).unwrap();
        classifier
    };
    // No plain program is without the C library.
    assert!(recalled(b"").program(&enters).is_err());
    let mut classifier = recalled(b"libc.so.6\0");
    assert_eq!(classifier.program(&enters), Ok(()));
    fs::set_permissions(&enters, Permissions::from_mode(0o775)).unwrap();
    assert!(classifier.program(&enters).is_err());
}

#[test]
fn a_believed_verdict_is_confirmed_or_found_to_be_wrong() {
    let Some(shop) = Workshop::open().filter(|_| Workshop::systems_last()) else {
        return;
    };
    // As a program, the loader is not plain.
    let (system, loader) = (Path::new(SYSTEMS), Path::new("/lib64/ld-linux-x86-64.so.2"));
    shop.run(&[system]);
    let made = fs::metadata(shop.kept()).unwrap().ino();
    let mut classifier = Classifier::of_machine().unwrap();
    classifier.recall(&shop.kept()).unwrap();
    assert_eq!(classifier.program(system), Ok(()));
    assert_eq!(classifier.classified(), 0);
    assert!(classifier.believed().contains(&system.to_owned()));
    assert_eq!(classifier.confirm(), Vec::<PathBuf>::new());
    assert_eq!(classifier.believed(), Vec::<PathBuf>::new());
    assert!(classifier.classified() > 1, "the program and its libraries");
    classifier.keep(&shop.kept()).unwrap();
    assert_eq!(fs::metadata(shop.kept()).unwrap().ino(), made, "no news");

    fs::remove_file(shop.kept()).unwrap();
    shop.run(&[loader]);
    let entry = fs::read(shop.kept()).unwrap();
    fs::write(shop.kept(), forged(&entry, b"libc.so.6\0")).unwrap();
    let mut classifier = Classifier::of_machine().unwrap();
    classifier.recall(&shop.kept()).unwrap();
    assert_eq!(classifier.program(loader), Ok(()), "it is believed");
    assert_eq!(classifier.confirm(), [loader]);
    assert!(classifier.program(loader).is_err());
}

/// Its path could be another file's when the verdict is confirmed.
#[test]
fn a_program_of_another_mount_namespace_is_classified_in_each_run() {
    let Some(shop) = Workshop::open().filter(|_| Workshop::systems_last()) else {
        return;
    };
    let system = Path::new(SYSTEMS);
    shop.run(&[system]);
    let made = fs::metadata(shop.kept()).unwrap().ino();
    for _ in 0..2 {
        let mut classifier = Classifier::of_machine().unwrap();
        classifier.recall(&shop.kept()).unwrap();
        let mut file = fs::File::open(system).unwrap();
        let examined = classifier.examine(&mut file, Path::new("/nowhere/env"));
        assert_eq!(examined.verdict, Ok(()));
        assert_eq!(classifier.classified(), 1, "the program, and no library");
        assert_eq!(classifier.confirm(), Vec::<PathBuf>::new());
        classifier.keep(&shop.kept()).unwrap();
    }
    assert_eq!(fs::metadata(shop.kept()).unwrap().ino(), made, "no news");
}

#[test]
fn what_a_killed_writer_left_is_removed() {
    let Some(shop) = Workshop::open() else {
        return;
    };
    // No process has this number.
    let left = shop.dir.path().join("verdicts.index.4294967295");
    let other = shop.dir.path().join("verdicts.index.old");
    for path in [&left, &other] {
        fs::write(path, "").unwrap();
    }
    let users = shop.compile_as_user("enters", ENTERS);
    shop.run(&[&users]);
    assert!(!left.exists() && other.exists());
}

#[test]
fn a_damaged_file_changes_nothing_but_the_work() {
    let Some(shop) = Workshop::open().filter(|_| Workshop::systems_last()) else {
        return;
    };
    let system = Path::new(SYSTEMS);
    let (verdicts, all) = shop.run(&[system]);
    let good = fs::read(shop.kept()).unwrap();
    let problem = |bytes: &[u8]| {
        fs::write(shop.kept(), bytes).unwrap();
        let mut classifier = Classifier::new(LibraryCache::default());
        classifier.recall(&shop.kept()).err()
    };
    assert!(problem(&good).is_none());
    for length in 0..good.len() {
        let cut = problem(&good[..length]);
        assert!(cut.is_some() || length == HEAD, "{length}");
    }
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        let found = problem(&bytes);
        let version = matches!(found, Some(Ignored::OtherVersion));
        let damaged = matches!(found, Some(Ignored::Damaged));
        assert!(if at < 16 { version } else { damaged }, "{at}: {found:?}");
        if at >= HEAD {
            seal(&mut bytes);
            problem(&bytes); // any outcome, but an end
        }
    }
    assert_eq!(shop.run(&[system]), (verdicts.clone(), all), "damaged");
    assert_eq!(shop.run(&[system]), (verdicts, 0), "written anew");
}

#[test]
fn a_file_of_another_user_is_ignored() {
    let Some(shop) = Workshop::open() else {
        return;
    };
    shop.run(&[Path::new(SYSTEMS)]);
    let why = || {
        let mut classifier = Classifier::of_machine().unwrap();
        classifier
            .recall(&shop.kept())
            .err()
            .map(|why| why.to_string())
    };
    assert_eq!(why(), None);
    let foreign = Some("another user can write to it".to_owned());
    fs::set_permissions(shop.kept(), Permissions::from_mode(0o660)).unwrap();
    assert_eq!(why(), foreign);
    fs::set_permissions(shop.kept(), Permissions::from_mode(0o600)).unwrap();
    if chown(shop.kept(), Some(65534), None).is_ok() {
        assert_eq!(why(), foreign);
    }
    fs::remove_file(shop.kept()).unwrap();
    fs::create_dir(shop.kept()).unwrap();
    assert!(why().unwrap().starts_with("it cannot be read"));
}
