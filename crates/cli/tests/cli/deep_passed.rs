//! `replay --deep` of programs that pass descriptors to each other (`SCM_RIGHTS`).

use super::deep_equal::script_is_equal_again;

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
    script_is_equal_again(script);
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
    script_is_equal_again(script);
}

#[test]
fn a_descriptor_that_was_passed_and_not_received_holds_no_lock() {
    let script = r#"
import fcntl, os, socket
one, two = socket.socketpair()
if os.fork() == 0:
    one.close(); two.recv(1); two.close(); os._exit(0)
two.close()
file, other = [os.open("locked", os.O_RDWR | os.O_CREAT) for _ in range(2)]
fcntl.flock(file, fcntl.LOCK_EX)
socket.send_fds(one, [b"x"], [file])
os.close(file)
os.wait()
try: print(fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB))
except OSError as error: print(error.strerror)
"#;
    script_is_equal_again(script);
}
