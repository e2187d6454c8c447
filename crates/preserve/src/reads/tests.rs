//! Tests of the set of files that the run has read.

use super::*;
use rustix::fs::CWD;
use std::os::unix::ffi::OsStrExt;

#[test]
fn a_process_that_executes_itself_is_not_taken_for_the_supervisor() {
    let mut known = ReadSet::default();
    known.read_interpreter(b"/proc/self/exe");
    assert!(known.files.is_empty(), "the loader of the supervisor");
}

#[test]
fn a_pipe_in_the_place_of_an_interpreter_delays_no_look_up() {
    let dir = tempfile::tempdir().unwrap();
    let [script, pipe] = ["script", "pipe"].map(|name| dir.path().join(name));
    std::fs::write(&script, "#!/etc/passwd\n").unwrap();
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut known = ReadSet::default();
    known.read_interpreter(pipe.as_os_str().as_bytes());
    assert!(known.files.is_empty());
    known.read_interpreter(script.as_os_str().as_bytes());
    assert_eq!(known.files.len(), 1);
}
