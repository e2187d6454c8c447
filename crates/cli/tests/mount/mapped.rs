//! Random reads, writes, truncations and mappings of one file give what a buffer in memory gives:
//! the method of fsx.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::mount::mounted::mounted;

/// Largest size of the file.
const LARGEST: usize = 200_000;

struct Exercise {
    file: File,
    expected: Vec<u8>,
    random: u64,
}

impl Exercise {
    fn below(&mut self, bound: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.random >> 33) as usize) % bound
    }

    fn range(&mut self) -> (usize, usize) {
        let start = self.below(LARGEST - 1);
        let length = 1 + self.below((LARGEST - start).min(60_000));
        (start, length)
    }

    fn write(&mut self) {
        let (start, length) = self.range();
        let bytes = vec![self.below(256) as u8; length];
        self.file.write_all_at(&bytes, start as u64).unwrap();
        if self.expected.len() < start + length {
            self.expected.resize(start + length, 0);
        }
        self.expected[start..start + length].copy_from_slice(&bytes);
    }

    fn read(&mut self) {
        let (start, length) = self.range();
        let mut bytes = vec![0; length];
        let mut done = 0;
        while done < length {
            match self
                .file
                .read_at(&mut bytes[done..], (start + done) as u64)
                .unwrap()
            {
                0 => break,
                count => done += count,
            }
        }
        let end = (start + length).min(self.expected.len());
        let wanted = self.expected.get(start..end).unwrap_or(&[]);
        assert!(bytes[..done] == *wanted, "read of {length} at {start}");
    }

    fn set_size(&mut self) {
        let size = self.below(LARGEST);
        self.file.set_len(size as u64).unwrap();
        self.expected.resize(size, 0);
    }

    /// Through a shared mapping of the whole file, made and removed by another program.
    fn map(&mut self, path: &Path) {
        if self.expected.is_empty() {
            return;
        }
        let start = self.below(self.expected.len());
        let length = 1 + self.below((self.expected.len() - start).min(30_000));
        let byte = self.below(256) as u8;
        let script = "import mmap, sys
path, start, length, byte = sys.argv[1], *map(int, sys.argv[2:])
with open(path, 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:
    old = m[start:start + length]
    m[start:start + length] = bytes([byte]) * length
sys.stdout.buffer.write(old)";
        let numbers = [start, length, byte.into()].map(|n| n.to_string());
        let output = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(path)
            .args(numbers)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(
            output.stdout == self.expected[start..start + length],
            "mapped read"
        );
        self.expected[start..start + length].fill(byte);
    }
}

/// Steps of a quick exercise. One of 40 starts the program that maps the file.
const QUICK: usize = 600;
const LONG: usize = 3000;

fn exercise(steps: usize, what: &str, options: &[&str]) {
    let Some(mut mounted) = mounted(what, options) else {
        return;
    };
    let path = mounted.at.join("file");
    let mut options = File::options();
    let file = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    let mut exercise = Exercise {
        file,
        expected: Vec::new(),
        random: 42,
    };
    for step in 0..steps {
        match exercise.below(8) {
            0..3 => exercise.write(),
            3..6 => exercise.read(),
            6 => exercise.set_size(),
            _ if step % 5 == 0 => exercise.map(&path),
            _ => exercise.read(),
        }
    }
    let expected = std::mem::take(&mut exercise.expected);
    drop(exercise);
    assert!(std::fs::read(&path).unwrap() == expected);
    assert!(mounted.unmount().success());
    assert!(
        std::fs::read(mounted.behind.join("file")).unwrap() == expected,
        "behind the mount"
    );
}

#[test]
fn a_file_below_a_mount_has_what_was_written_and_mapped() {
    exercise(QUICK, "random uses of a file below a mount", &[]);
}

const PASSTHROUGH: [&str; 2] = ["--passthrough", "on"];

#[test]
fn a_file_that_the_kernel_writes_has_what_was_written_and_mapped() {
    exercise(
        QUICK,
        "random uses of a file with passthrough",
        &PASSTHROUGH,
    );
}

#[test]
#[ignore = "half a minute, as the quick tests with fewer uses"]
fn a_file_has_what_was_written_and_mapped_after_many_uses() {
    exercise(LONG, "many uses of a file below a mount", &[]);
    exercise(LONG, "many uses of a file with passthrough", &PASSTHROUGH);
}
