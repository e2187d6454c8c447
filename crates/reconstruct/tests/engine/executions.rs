//! Programs run again that execute other ones.

use super::calls::*;
use super::{program, run_with};
use backstory_reconstruct::engine::Options;
use backstory_reconstruct::verdict::Likeness;
use libc::S_IFIFO;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

pub fn an_execution_that_fails_leaves_the_memory_of_its_caller_as_it_was() {
    const OWN: u32 = 100;
    // Without a longer path, the stack of the program would begin higher.
    const STACK: u64 = 0x7fff_ffff_e200;
    let Some(python) = program("python3") else {
        return;
    };
    // The kernel refuses this file only when it is executed.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("one");
    fs::write(&file, b"\x7fELF, but no program").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    let path = file.to_str().unwrap();
    let script = r"
import ctypes, os
memory = ctypes.create_string_buffer(b'PATH\0kept', 4096)
words = (ctypes.c_char_p * 2)(b'one', None)
ctypes.CDLL(None).execve(memory, words, (ctypes.c_char_p * 1)())
os.getpid()
os.write(1, memory.raw.split(b'\0')[1])
os._exit(0)
";
    let script = script.replace("PATH", path);
    let words = ["python3", "-I", "-S", "-c", &script];
    let executes = vec![timed_at(1, begin(&python, &words, "/"))];
    let executed = vec![
        timed_at(10, with_stack(begin(path, &["one"], "/"), STACK)),
        timed_at(11, descriptor(1, 1, S_IFIFO, "pipe:[8]")),
        timed_at(12, write_full(1, b"kept")),
        timed_at(13, exit(0)),
    ];
    let programs = vec![(OWN, executes), (OWN, executed)];
    let result = run_with(programs, &Options::default());
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
}
