//! The same random sequence of operations in a mounted and in a plain directory gives the same
//! results and the same trees.

use std::fs;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, SeekFrom, XattrFlags};

use backstory_testkit::need::{needs, skipped};
use backstory_testkit::procs::eventually;

use crate::mounted::mounted;

/// Numbers from a seed (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn name(&mut self) -> &'static str {
        const NAMES: [&str; 10] = ["a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/f", "g", "h"];
        NAMES[self.below(10) as usize]
    }
}

/// One operation, as a function of a directory.
type Operation = Box<dyn Fn(&Path) -> String>;

fn told<T: std::fmt::Debug>(result: Result<T, rustix::io::Errno>) -> String {
    result.map_or_else(|error| format!("{error:?}"), |value| format!("{value:?}"))
}

fn io<T: std::fmt::Debug>(result: std::io::Result<T>) -> String {
    let errno = |error: std::io::Error| format!("errno {:?}", error.raw_os_error());
    result.map_or_else(errno, |value| format!("{value:?}"))
}

/// A random operation.
#[allow(clippy::too_many_lines)] // one arm for each operation
fn operation(dice: &mut Dice) -> Operation {
    let (one, two) = (dice.name(), dice.name());
    let (number, offset) = (dice.below(20_000), dice.below(100_000));
    let bits = dice.below(4096) as u32;
    let kind = dice.below(20);
    let chosen: Operation = match kind {
        0 => Box::new(move |at| told(rustix::fs::mkdir(at.join(one), Mode::from_raw_mode(bits)))),
        1 => Box::new(move |at| told(rustix::fs::rmdir(at.join(one)))),
        2 => Box::new(move |at| told(rustix::fs::unlink(at.join(one)))),
        3 => Box::new(move |at| told(rustix::fs::symlink(two, at.join(one)))),
        4 => Box::new(move |at| told(rustix::fs::link(at.join(one), at.join(two)))),
        5 => {
            let flags = match number % 3 {
                0 => RenameFlags::empty(),
                1 => RenameFlags::NOREPLACE,
                _ => RenameFlags::EXCHANGE,
            };
            Box::new(move |at| {
                told(rustix::fs::renameat_with(
                    CWD,
                    at.join(one),
                    CWD,
                    at.join(two),
                    flags,
                ))
            })
        }
        6 => Box::new(move |at| {
            let mode = Mode::from_raw_mode(bits & 0o777);
            told(rustix::fs::mknodat(
                CWD,
                at.join(one),
                rustix::fs::FileType::Fifo,
                mode,
                0,
            ))
        }),
        7 => Box::new(move |at| {
            told(rustix::fs::chmodat(
                CWD,
                at.join(one),
                Mode::from_raw_mode(bits),
                AtFlags::empty(),
            ))
        }),
        8 => Box::new(move |at| {
            let file = fs::OpenOptions::new()
                .write(true)
                .custom_flags(libc_nonblock())
                .open(at.join(one));
            io(file.and_then(|file| file.set_len(offset)))
        }),
        9 => Box::new(move |at| {
            let value = format!("{number}");
            let path = at.join(one);
            told(rustix::fs::setxattr(
                path,
                "user.test",
                value.as_bytes(),
                XattrFlags::empty(),
            ))
        }),
        10 => Box::new(move |at| {
            let mut room = [0_u8; 64];
            let read = rustix::fs::getxattr(at.join(one), "user.test", &mut room[..]);
            told(read.map(|length| room[..length].to_vec()))
        }),
        11 => Box::new(move |at| told(rustix::fs::removexattr(at.join(one), "user.test"))),
        12 => Box::new(move |at| {
            let flags = OFlags::RDWR | OFlags::NONBLOCK;
            let file = rustix::fs::open(at.join(one), flags, Mode::empty());
            told(file.and_then(|file| {
                let modes = [
                    FallocateFlags::empty(),
                    FallocateFlags::KEEP_SIZE,
                    FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                ];
                let mode = modes[(number % 3) as usize];
                rustix::fs::fallocate(file, mode, offset, number + 1)
            }))
        }),
        13 => Box::new(move |at| {
            // The position of a directory's end has no meaning: each file system chooses it.
            if at.join(one).is_dir() {
                return "a directory".to_owned();
            }
            let flags = OFlags::RDONLY | OFlags::NONBLOCK;
            let file = rustix::fs::open(at.join(one), flags, Mode::empty());
            told(file.and_then(|file| rustix::fs::seek(file, SeekFrom::End(0))))
        }),
        14 | 15 => Box::new(move |at| {
            let bytes = vec![number as u8; number as usize];
            let mut options = fs::OpenOptions::new();
            options
                .write(true)
                .create(true)
                .truncate(false)
                .mode(bits & 0o777 | 0o600);
            let file = options.custom_flags(libc_nonblock()).open(at.join(one));
            io(file.and_then(|file| file.write_all_at(&bytes, offset)))
        }),
        16 => Box::new(move |at| {
            use std::io::Write;
            let file = fs::OpenOptions::new()
                .append(true)
                .custom_flags(libc_nonblock())
                .open(at.join(one));
            io(file.and_then(|mut file| file.write_all(&[7; 100])))
        }),
        17 => Box::new(move |at| io(fs::read(at.join(one)).map(|bytes| sum_of(&bytes)))),
        18 => Box::new(move |at| io(fs::read_link(at.join(one)))),
        _ => Box::new(move |at| {
            let file = |name| fs::metadata(at.join(name)).map(|of| of.is_file());
            // An open of a FIFO would wait for its reader.
            match file(one).unwrap_or(false) && file(two).unwrap_or(true) {
                true => io(fs::copy(at.join(one), at.join(two)).map(|_| ())),
                false => "no file".to_owned(),
            }
        }),
    };
    // The open of a FIFO depends on its readers. For a moment, a child that another test starts has
    // the descriptors of this one.
    match kind {
        8 | 12..=17 => Box::new(move |at| match is_fifo(&at.join(one)) {
            true => "a FIFO".to_owned(),
            false => chosen(at),
        }),
        _ => chosen,
    }
}

fn is_fifo(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|of| of.file_type().is_fifo())
}

fn libc_nonblock() -> i32 {
    OFlags::NONBLOCK.bits() as i32
}

fn sum_of(bytes: &[u8]) -> (usize, u64) {
    let sum = bytes
        .iter()
        .fold(0_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
    (bytes.len(), sum)
}

/// Everything that a program can see of a tree.
pub fn tree(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let of = fs::symlink_metadata(&path).unwrap();
        let content = match of.file_type() {
            kind if kind.is_file() => format!("{:?}", sum_of(&fs::read(&path).unwrap())),
            kind if kind.is_symlink() => format!("{:?}", fs::read_link(&path).unwrap()),
            kind if kind.is_dir() => {
                left.extend(
                    fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
                String::new()
            }
            _ => String::new(),
        };
        let links = if of.is_dir() { 0 } else { of.nlink() };
        found.push(format!(
            "{} {:o} {}:{} {links} {} {content}",
            path.strip_prefix(root).unwrap().display(),
            of.permissions().mode(),
            of.uid(),
            of.gid(),
            if of.is_dir() { 0 } else { of.len() },
        ));
    }
    found.sort();
    found
}

fn compare(what: &str, options: &[&str]) {
    let Some(mounted) = mounted(what, options) else {
        return;
    };
    let plain = mounted.stage.directory("plain").unwrap();
    for seed in 1..=6 {
        let mut dice = Dice(seed * 0x9e37_79b9);
        for step in 0..400 {
            let operation = operation(&mut dice);
            let (here, there) = (operation(&mounted.at), operation(&plain));
            assert_eq!(here, there, "seed {seed}, step {step}");
        }
        assert_eq!(tree(&mounted.at), tree(&plain), "seed {seed}");
        assert_eq!(
            tree(&mounted.behind),
            tree(&plain),
            "seed {seed}, behind the mount"
        );
    }
}

#[test]
fn a_mounted_directory_behaves_as_a_plain_one() {
    compare("operations in a mounted directory", &[]);
}

#[test]
fn a_mounted_directory_whose_files_the_kernel_reads_behaves_as_a_plain_one() {
    compare("operations with passthrough", &["--passthrough", "on"]);
}

#[test]
fn a_time_that_a_program_sets_is_the_time_of_the_file_also_before_1970() {
    let Some(mounted) = mounted("times before 1970", &[]) else {
        return;
    };
    let (path, behind) = (mounted.at.join("file"), mounted.behind.join("file"));
    fs::write(&path, "").unwrap();
    for (seconds, nanoseconds) in [(-2, 500_000_000), (-1, 1), (-7, 0), (0, 1), (5, 6)] {
        let time = rustix::fs::Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds,
        };
        let times = rustix::fs::Timestamps {
            last_access: time,
            last_modification: time,
        };
        rustix::fs::utimensat(CWD, &path, &times, AtFlags::empty()).unwrap();
        for file in [&path, &behind] {
            let set = fs::metadata(file).unwrap();
            assert_eq!((set.mtime(), set.mtime_nsec()), (seconds, nanoseconds));
        }
    }
}

/// The kernel reads and writes all open files of an inode by itself, or none.
#[test]
fn a_file_is_opened_again_after_its_set_user_id_bit_has_changed() {
    let what = "opens of one file with passthrough";
    let Some(mounted) = mounted(what, &["--passthrough", "on"]) else {
        return;
    };
    let path = mounted.at.join("file");
    let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    for modes in [[0o4755, 0o755], [0o755, 0o4755]] {
        fs::write(&path, "text").unwrap();
        set_mode(modes[0]);
        let first = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        set_mode(modes[1]);
        let second = fs::File::open(&path).unwrap();
        first.write_all_at(b"TE", 0).unwrap();
        let mut bytes = [0; 4];
        second.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"TExt", "{modes:?}");
        fs::remove_file(&path).unwrap();
    }
}

/// Root's writes keep the bit. The kernel's own writes would clear it: they lack root's privilege.
#[test]
fn root_writes_a_file_that_got_its_set_user_id_bit_while_it_was_open() {
    let what = "a set-user-ID bit during an open with passthrough";
    if !rustix::process::geteuid().is_root() {
        skipped(what, "needs root");
        return;
    }
    let Some(mounted) = mounted(what, &["--passthrough", "on"]) else {
        return;
    };
    for place in [&mounted.behind, &mounted.at] {
        let path = place.join("file");
        fs::write(&path, "text").unwrap();
        let reader = fs::File::open(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
        let mut options = fs::OpenOptions::new();
        let writer = options.read(true).write(true).open(&path).unwrap();
        writer.write_all_at(b"TE", 0).unwrap();
        writer.set_len(3).unwrap();
        let mode = fs::metadata(&path).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o6755, "{place:?}");
        for file in [&reader, &writer] {
            let mut bytes = [0; 5];
            let count = file.read_at(&mut bytes, 0).unwrap();
            assert_eq!(&bytes[..count], b"TEx", "{place:?}");
        }
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn chown_without_a_new_owner_acts_as_in_the_directory_itself() {
    let Some(mounted) = mounted("chown without a new owner", &[]) else {
        return;
    };
    for place in [&mounted.behind, &mounted.at] {
        let path = place.join("file");
        fs::write(&path, "text").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
        let before = fs::metadata(&path).unwrap();
        let changed = || {
            std::os::unix::fs::chown(&path, None, None).unwrap();
            let now = fs::metadata(&path).unwrap();
            (now.ctime(), now.ctime_nsec()) != (before.ctime(), before.ctime_nsec())
        };
        // The clock of the file system stands still for some milliseconds.
        assert!(eventually(Duration::from_secs(120), changed), "{place:?}");
        let mode = fs::metadata(&path).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o755, "{place:?}");
    }
}

#[test]
fn a_file_belongs_to_the_user_who_makes_it_and_has_the_mode_that_its_umask_leaves() {
    let Some(mounted) = mounted("owners of files in a mounted directory", &[]) else {
        return;
    };
    fs::set_permissions(&mounted.behind, fs::Permissions::from_mode(0o777)).unwrap();
    let made = mounted.shell(
        "umask 027; setpriv --reuid 1234 --regid 2345 --clear-groups sh -c '
            : > file; mkdir directory; ln -s x link; mkfifo fifo'
         chmod 2777 directory
         setpriv --reuid 1234 --regid 99 --clear-groups sh -c ': > directory/inherits'",
    );
    assert!(made.status.success(), "{made:?}");
    let seen = |name: &str| {
        let of = fs::symlink_metadata(mounted.behind.join(name)).unwrap();
        (of.uid(), of.gid(), of.permissions().mode() & 0o7777)
    };
    assert_eq!(seen("file"), (1234, 2345, 0o640));
    assert_eq!(seen("directory"), (1234, 2345, 0o2777));
    assert_eq!(seen("link"), (1234, 2345, 0o777));
    assert_eq!(seen("fifo"), (1234, 2345, 0o640));
    assert_eq!(seen("directory/inherits"), (1234, 2345, 0o640));
}

#[test]
fn a_user_may_do_below_the_mount_what_the_modes_of_the_directory_allow() {
    let Some(mounted) = mounted("permissions in a mounted directory", &[]) else {
        return;
    };
    mounted.shell("echo secret > mine; chmod 600 mine; echo all > yours; chmod 644 yours");
    fs::set_permissions(&mounted.behind, fs::Permissions::from_mode(0o755)).unwrap();
    let as_other = |script: &str| {
        let script = format!("setpriv --reuid 1234 --regid 2345 --clear-groups sh -c '{script}'");
        mounted.shell(&script).status.success()
    };
    assert!(as_other("cat yours"));
    for refused in [
        "cat mine",
        "echo x >> yours",
        "rm -f mine",
        ": > new",
        "chmod 666 yours",
    ] {
        assert!(!as_other(refused), "{refused}");
    }
}

/// Compares the modes of set-user-ID and set-group-ID files that a user has changed.
fn changed_by(user: &str, options: &[&str]) {
    let Some(mounted) = mounted("set-user-ID files in a mounted directory", options) else {
        return;
    };
    let plain = mounted.stage.directory("plain").unwrap();
    let script = format!(
        "for f in write append truncate open allocate copy keep; do
             echo text > $f; chmod 6777 $f; done
         setpriv {user} sh -ec '
             printf x 1<>write; printf x >>append; truncate -s 1 truncate; : >open
             fallocate -l 99 allocate; cp write copy; cat keep'
         stat -c '%n %a' *"
    );
    let there = std::process::Command::new("sh")
        .args(["-ec", &script])
        .current_dir(&plain)
        .output()
        .unwrap();
    assert!(there.status.success(), "{there:?}");
    assert_eq!(mounted.shell(&script), there, "{user} {options:?}");
}

#[test]
fn a_file_that_an_ordinary_user_changes_loses_its_set_user_id_bit() {
    if !needs("set-user-ID files", &["setpriv", "fallocate"]) {
        return;
    }
    for options in [&[][..], &["--passthrough", "on"]] {
        changed_by("--reuid 1234 --regid 2345 --clear-groups", options);
        changed_by("--reuid 0", options);
    }
}
