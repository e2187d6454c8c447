//! The same random sequence of operations in a mounted and in a plain directory gives the same
//! results and the same trees.

use std::fs;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, SeekFrom, XattrFlags};

use crate::mount::mounted::mounted;

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
