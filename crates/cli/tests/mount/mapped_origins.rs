//! Where a file comes from that programs wrote through shared mappings.

use std::fs;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

use backstory_testkit::need::{needs, skipped};

use crate::mount::messages::Messages;
use crate::mount::mounted::{MountedDirectory, mounted};
use crate::mount::recorded::{certain_inputs, inputs};

const PASSTHROUGH: [&str; 2] = ["--passthrough", "on"];
/// Size of the mapped file: a part for each of two programs.
const SIZE: usize = 8192;
/// The type of a file system in memory (tmpfs).
const TMPFS: u64 = 0x0102_1994;

/// A mount of files: `a` and `c` have texts, and `b` has zeros.
fn with_files(what: &str, options: &[&str]) -> Option<MountedDirectory> {
    if !needs(what, &["python3"]) {
        return None;
    }
    let mounted = mounted(what, options)?;
    let is_in_memory = rustix::fs::statfs(&mounted.behind).unwrap().f_type as u64 == TMPFS;
    if is_in_memory && !options.is_empty() {
        skipped(
            what,
            "the kernel changes no time of a mapped file in memory",
        );
        return None;
    }
    for name in ["a", "c"] {
        fs::write(mounted.behind.join(name), text_of(name)).unwrap();
    }
    fs::write(mounted.behind.join("b"), vec![0; SIZE]).unwrap();
    Some(mounted)
}

fn text_of(name: &str) -> String {
    format!("the text of {name}\n")
}

/// A program of Python that nothing recorded started, in the mounted directory.
fn python(mounted: &MountedDirectory, script: &str) -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", script]).current_dir(&mounted.at);
    command
}

/// The mapped file behind the mount has the text of another file at this position.
#[track_caller]
fn has_text_of(mounted: &MountedDirectory, name: &str, at: usize) {
    let (bytes, text) = (fs::read(mounted.behind.join("b")).unwrap(), text_of(name));
    assert_eq!(bytes.len(), SIZE);
    assert!(bytes[at..].starts_with(text.as_bytes()), "{name}");
}

/// Runs a script that writes the text of `a` into `b`.
fn copies_a(mounted: &MountedDirectory, script: &str) {
    let done = python(mounted, script).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

const ALONE: &str = "
import mmap
with open('a', 'rb') as source:
    text = source.read()
with open('b', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:
    m[:len(text)] = text";

#[test]
fn a_file_that_one_program_wrote_through_a_mapping_has_its_origin() {
    for options in [&[][..], &PASSTHROUGH] {
        let Some(mut mounted) = with_files("a file that is written by a mapping", options) else {
            return;
        };
        copies_a(&mounted, ALONE);
        assert!(mounted.unmount().success());
        has_text_of(&mounted, "a", 0);
        assert_eq!(certain_inputs(&mounted, "b"), ["a", "b"], "{options:?}");
        assert_eq!(inputs(&mounted, "b"), ["a", "b"], "{options:?}");
    }
}

const READ_BY_MAPPING: &str = "
import mmap
with open('a', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:
    text = m[:]
with open('b', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:
    m[:len(text)] = text";

#[test]
fn a_file_that_was_read_through_a_mapping_alone_is_certainly_a_source() {
    let Some(mut mounted) = with_files("a file that is read by a mapping", &[]) else {
        return;
    };
    copies_a(&mounted, READ_BY_MAPPING);
    assert!(mounted.unmount().success());
    has_text_of(&mounted, "a", 0);
    assert_eq!(certain_inputs(&mounted, "b"), ["a", "b"]);
}

/// Maps `b`, writes the text of a file into its part, and closes it. It waits for a line before
/// each step, and prints a line after it.
const STEPWISE: &str = "
import mmap, sys
name, at = sys.argv[1], int(sys.argv[2])
def done(step):
    print(step, flush=True)
    sys.stdin.readline()
with open(name, 'rb') as source:
    text = source.read()
f = open('b', 'r+b')
m = mmap.mmap(f.fileno(), 0)
done('mapped')
m[at:at + len(text)] = text
m.flush()
m.close()
done('written')
f.close()";

/// A program that takes a step after each line that it gets.
struct StepwiseMapper {
    child: Child,
    steps: ChildStdin,
    printed: Messages,
}

impl StepwiseMapper {
    /// Begins with the mapping.
    fn start(mounted: &MountedDirectory, name: &str, at: usize) -> StepwiseMapper {
        let mut command = python(mounted, STEPWISE);
        let command = command.args([name, &at.to_string()]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let steps = child.stdin.take().unwrap();
        let printed = Messages::of(child.stdout.take().unwrap());
        assert_eq!(printed.line(), "mapped");
        StepwiseMapper {
            child,
            steps,
            printed,
        }
    }

    fn writes(&mut self) {
        writeln!(self.steps).unwrap();
        assert_eq!(self.printed.line(), "written");
    }

    fn ends(mut self) {
        writeln!(self.steps).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn each_of_two_programs_that_mapped_a_file_has_possibly_written_it() {
    for options in [&[][..], &PASSTHROUGH] {
        for last_opened_ends_first in [false, true] {
            let what = "a file that two programs map";
            let Some(mut mounted) = with_files(what, options) else {
                return;
            };
            let mut first = StepwiseMapper::start(&mounted, "a", 0);
            let mut second = StepwiseMapper::start(&mounted, "c", SIZE / 2);
            first.writes();
            second.writes();
            let order = match last_opened_ends_first {
                true => [second, first],
                false => [first, second],
            };
            order.into_iter().for_each(StepwiseMapper::ends);
            assert!(mounted.unmount().success());
            has_text_of(&mounted, "a", 0);
            has_text_of(&mounted, "c", SIZE / 2);
            let case = format!("{options:?} {last_opened_ends_first}");
            assert_eq!(inputs(&mounted, "b"), ["a", "b", "c"], "{case}");
            assert_eq!(certain_inputs(&mounted, "b"), ["b"], "{case}");
        }
    }
}

/// The child finds the page in memory, so the mount gets no request of it about `b`.
const FORKED: &str = "
import mmap, os
f = open('b', 'r+b')
m = mmap.mmap(f.fileno(), 0)
assert m[0] == 0
child = os.fork()
if child == 0:
    with open('a', 'rb') as source:
        text = source.read()
    m[:len(text)] = text
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
m.close()
f.close()";

#[test]
fn a_fork_that_writes_an_inherited_mapping_has_possibly_written_the_file() {
    for options in [&[][..], &PASSTHROUGH] {
        let what = "a mapping that a fork inherits";
        let Some(mut mounted) = with_files(what, options) else {
            return;
        };
        copies_a(&mounted, FORKED);
        assert!(mounted.unmount().success());
        has_text_of(&mounted, "a", 0);
        assert_eq!(inputs(&mounted, "b"), ["a", "b"], "{options:?}");
        // With passthrough, a program that closes a changed file counts as its writer.
        if options.is_empty() {
            assert_eq!(certain_inputs(&mounted, "b"), ["b"]);
        }
    }
}
