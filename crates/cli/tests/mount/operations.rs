//! The same random sequence of operations in a mounted and in a plain directory gives the same
//! results and the same trees.

use std::fs;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, SeekFrom, XattrFlags};

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
    match dice.below(20) {
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
        17 => Box::new(move |at| {
            if at
                .join(one)
                .metadata()
                .is_ok_and(|of| of.file_type().is_fifo())
            {
                return "a fifo".to_owned();
            }
            io(fs::read(at.join(one)).map(|bytes| sum_of(&bytes)))
        }),
        18 => Box::new(move |at| io(fs::read_link(at.join(one)))),
        _ => Box::new(move |at| {
            let copied = fs::metadata(at.join(one))
                .ok()
                .is_some_and(|of| of.is_file());
            match copied {
                true => io(fs::copy(at.join(one), at.join(two)).map(|_| ())),
                false => "no file".to_owned(),
            }
        }),
    }
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

#[test]
fn a_change_behind_the_mount_is_visible_at_once() {
    let Some(mounted) = mounted("changes behind a mount", &[]) else {
        return;
    };
    for text in ["one", "another one", "a"] {
        fs::write(mounted.behind.join("file"), text).unwrap();
        assert_eq!(fs::read_to_string(mounted.at.join("file")).unwrap(), text);
        assert_eq!(
            fs::metadata(mounted.at.join("file")).unwrap().len(),
            text.len() as u64
        );
    }
    fs::remove_file(mounted.behind.join("file")).unwrap();
    assert!(!mounted.at.join("file").exists());
}
