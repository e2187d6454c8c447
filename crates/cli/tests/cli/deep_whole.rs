//! `replay --deep` of a whole run: what libc does inside itself, and what is known of one file.

use super::Place;

/// Records a shell line deeply, and runs it again. Its outputs are equal.
fn runs_again(script: &str, line: &str) {
    let place = Place::new();
    place.write_aged("script.py", script);
    place.deep(line);
    if let Some(answer) = place.again(&[]) {
        let mut lines = answer.err.lines();
        assert!(
            answer.status == 0 && lines.any(|line| line.starts_with("equal: ")),
            "{answer:?}"
        );
    }
}

#[test]
fn a_child_reads_the_pipes_of_its_parent_in_the_place_of_streams_that_nobody_used() {
    let script = r#"
import os, subprocess, sys
os.isatty(0), os.isatty(1)
child = "import os; os.isatty(0); data = os.read(0, 100); os.write(1, data[:2]); os.write(1, data[::-1])"
done = subprocess.run([sys.executable, "-c", child], input=b"recorded", capture_output=True)
sys.stderr.write(repr(done.stdout))
"#;
    runs_again(
        script,
        "RECORD /usr/bin/python3 script.py < /dev/null 2> out | cat",
    );
}

#[test]
fn a_program_reads_what_its_child_wrote_into_the_pipe_of_popen() {
    let script = r#"
import ctypes
libc = ctypes.CDLL(None)
libc.popen.restype = ctypes.c_void_p
libc.fgets.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
libc.pclose.argtypes = [ctypes.c_void_p]
stream = libc.popen(b"echo $$; od -An -N4 /dev/urandom", b"r")
line = ctypes.create_string_buffer(100)
for n in range(2):
    libc.fgets(line, 100, stream)
    print(n, line.value)
print(libc.pclose(stream))
"#;
    runs_again(script, "RECORD /usr/bin/python3 script.py > out");
}

#[test]
fn a_file_keeps_one_identity_while_it_grows() {
    let script = r#"
import os
def same(fd): return os.fstat(fd).st_ino == os.stat("data").st_ino
with open("data", "wb", buffering=0) as f:
    fd, found = f.fileno(), []
    for n in range(20):
        found.append(same(fd))
        f.write(os.urandom(1)[:1] * (1 + n % 3))
        if n % 4 == 0: os.fstat(fd)
        if n % 5 == 0: os.stat("data")
    found.append(same(fd))
print(found)
"#;
    runs_again(script, "RECORD /usr/bin/python3 script.py > out");
}

#[test]
fn a_database_of_sqlite_is_written_again() {
    if !backstory_testkit::need::needs("a database that is written again", &["sqlite3"]) {
        return;
    }
    let place = Place::new();
    let rows = "create table t(a unique, b); insert into t values (1, 2), (3, 4);\n";
    place.write_aged("rows.sql", &format!("{rows}update t set b = 5;\n.dump\n"));
    place.deep("RECORD sh -c 'sqlite3 data.db < rows.sql' > out");
    if let Some(answer) = place.again(&[]) {
        assert!(answer.err.contains("equal: 2 programs"), "{answer:?}");
    }
}
