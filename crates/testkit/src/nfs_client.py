"""An NFS client. Arguments: the library libnfs, and the URL of the exported directory. Each line of
stdin is an operation.

It uses libnfs, so that it needs no mount. It ends with the first operation that fails.
"""

import ctypes
import os
import sys

lib = ctypes.CDLL(sys.argv[1])


class Url(ctypes.Structure):
    _fields_ = [("server", ctypes.c_char_p), ("path", ctypes.c_char_p), ("file", ctypes.c_char_p)]


lib.nfs_init_context.restype = ctypes.c_void_p
lib.nfs_parse_url_dir.restype = ctypes.POINTER(Url)
lib.nfs_get_error.restype = ctypes.c_char_p
context = ctypes.c_void_p(lib.nfs_init_context())


def check(what, status):
    if status < 0:
        sys.exit(f"{what}: {status} {lib.nfs_get_error(context).decode()}")
    return status


# With O_WRONLY, libnfs opens a file in a way in which the server does not let it write.
def opened(path, flags):
    file = ctypes.c_void_p()
    check(f"open {path}", lib.nfs_open2(context, path.encode(), flags, 0o644, ctypes.byref(file)))
    return file


def write(path, text):
    file = opened(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    data = text.encode()
    check(f"write {path}", lib.nfs_write(context, file, ctypes.c_uint64(len(data)), data))
    check(f"close {path}", lib.nfs_close(context, file))


def append(path, text):
    file = opened(path, os.O_RDWR | os.O_APPEND)
    data = text.encode()
    check(f"append {path}", lib.nfs_write(context, file, ctypes.c_uint64(len(data)), data))
    check(f"close {path}", lib.nfs_close(context, file))


def read(path):
    file = opened(path, os.O_RDONLY)
    room = ctypes.create_string_buffer(1 << 16)
    size = check(f"read {path}", lib.nfs_read(context, file, ctypes.c_uint64(len(room)), room))
    check(f"close {path}", lib.nfs_close(context, file))
    print(room.raw[:size].decode(), flush=True)


def simple(name, *paths):
    check(f"{name} {paths}", getattr(lib, "nfs_" + name)(context, *(path.encode() for path in paths)))


url = lib.nfs_parse_url_dir(context, sys.argv[2].encode())
check("mount", lib.nfs_mount(context, url.contents.server, url.contents.path))
for line in sys.stdin:
    operation, *words = line.split()
    own = {"write": write, "append": append, "read": read}.get(operation)
    own(*words) if own else simple(operation, *words)
