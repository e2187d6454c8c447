//! `replay --deep` of programs that pass descriptors to each other (`SCM_RIGHTS`).

use super::deep_whole::runs_again;

#[test]
fn a_child_writes_into_the_file_without_a_name_that_its_parent_passed() {
    // The kernel makes a name of the inode. Not all file systems have such files.
    let script = r#"
import os, socket
one, two = socket.socketpair()
if os.fork() == 0:
    one.close()
    _, fds, _, _ = socket.recv_fds(two, 1, 1)
    os.write(fds[0], b"child\n")
    os._exit(0)
try: fd = os.open(".", os.O_RDWR | os.O_TMPFILE)
except OSError: fd = os.memfd_create("memory")
socket.send_fds(one, [b"x"], [fd])
print(os.wait()[1], os.pread(fd, 100, 0))
"#;
    runs_again(script, "RECORD /usr/bin/python3 script.py > out");
}

#[test]
fn a_receiver_with_room_for_one_descriptor_gets_the_first_one_of_a_message() {
    let script = r#"
import os, socket
one, two = socket.socketpair()
if os.fork() == 0:
    one.close()
    _, fds, _, _ = socket.recv_fds(two, 1, 1)
    for fd in fds: os.write(fd, b"child\n")
    os._exit(0)
fds = [os.open(name, os.O_RDWR | os.O_CREAT) for name in ("a", "b", "c", "d")]
socket.send_fds(one, [b"x"], fds)
print(os.wait()[1], [os.pread(fd, 100, 0) for fd in fds])
"#;
    runs_again(script, "RECORD /usr/bin/python3 script.py > out");
}
