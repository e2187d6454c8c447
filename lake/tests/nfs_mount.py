"""Runs a command as a machine that has a directory of an NFS server mounted.

The kernel's client may be missing, and its mounts would be those of one machine. So this is a
client of its own: a file system in user space (FUSE) over the library libnfs. Each machine has a
mount that no other process sees, and is another client of the server.

It behaves as NFS clients do:

- Names and attributes are believed for some seconds. An open or a lock asks the server.
- A file that is removed while it is open here gets the name `.nfs...` until it is closed.
- Locks hold for all clients. A mount without locks refuses them.

The locks are those of the exported directory on the server: libnfs 4 does not release its own.

usage: nfs_mount.py LIBRARY URL EXPORTED DIRECTORY locks|nolocks COMMAND...
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

#: Seconds for which names and attributes are believed.
BELIEVED = 3
#: The most bytes of a write.
WRITTEN = 1 << 17
#: The bytes that libnfs 4 can write at once.
PIECE = 2048
ROOT = 1
#: Flags of FUSE: the server has the locks; the file is not kept in memory.
POSIX_LOCKS, BIG_WRITES, DIRECT_IO, INVALIDATE = 1 << 1, 1 << 5, 1, 2

#: Flags of unshare(2), mount(2) and umount2(2).
NEW_MOUNTS, PRIVATE, DETACH = 0x20000, 1 << 18 | 1 << 14, 2

_LIBC = ctypes.CDLL(None, use_errno=True)

FORGET, GETATTR, SETATTR, OPEN, INTERRUPT, BATCH_FORGET = 2, 3, 4, 14, 36, 42
HEADER, ENTRY = struct.Struct("<IIQQIIIHH"), struct.Struct("<QQQQII")
ATTRIBUTES, SET = struct.Struct("<QQQQQQIIIIIIIIII"), struct.Struct("<IIQQQQQQIIIIIIII")
LOCK, FLOCK = struct.Struct("<QQQQIIII"), struct.Struct("hhqqi4x")


class Entry(ctypes.Structure):
    """The beginning of `struct nfsdirent`."""

    _fields_ = [("next", ctypes.c_void_p), ("name", ctypes.c_char_p), ("inode", ctypes.c_uint64)]


class Url(ctypes.Structure):
    """`struct nfs_url`."""

    _fields_ = [("server", ctypes.c_char_p), ("path", ctypes.c_char_p), ("file", ctypes.c_char_p)]


class Client:
    """A client of the server. Each operation fails with `OSError`."""

    def __init__(self, library: str, url: str) -> None:
        self._given = library, url
        self._lib = ctypes.CDLL(library)
        for name, result in (
            ("nfs_init_context", ctypes.c_void_p),
            ("nfs_parse_url_dir", ctypes.POINTER(Url)),
            ("nfs_readdir", ctypes.POINTER(Entry)),
        ):
            getattr(self._lib, name).restype = result
        self._context = ctypes.c_void_p(self._lib.nfs_init_context())
        self._lib.nfs_get_error.restype = ctypes.c_char_p
        # The server knows a client by its name.
        self._lib.nfs4_set_client_name(
            self._context, b"backstory %s" % os.urandom(8).hex().encode()
        )
        found = self._lib.nfs_parse_url_dir(self._context, url.encode())
        self("mount", found.contents.server, found.contents.path)

    def __call__(self, name: str, *words: Any) -> int:
        """Calls a function of the library."""
        status = int(getattr(self._lib, f"nfs_{name}")(self._context, *words))
        if status < 0:
            message = self._lib.nfs_get_error(self._context).decode(errors="replace")
            raise OSError(-status, f"{name}: {message}")
        return status

    def another(self) -> Client:
        """Another client, for one open file.

        libnfs 4 loses count of the requests about opens after one that failed.
        """
        return Client(*self._given)

    def end(self) -> None:
        """Ends the connection."""
        self._lib.nfs_destroy_context(self._context)

    def attributes(self, name: str, of: Any) -> tuple[int, ...]:
        """The attributes of a path or an open file."""
        room = (ctypes.c_uint64 * 17)()
        self(name, of, room)
        return tuple(room)

    def names(self, path: bytes) -> list[tuple[bytes, int]]:
        """The names of a directory."""
        directory = ctypes.c_void_p()
        self("opendir", path, ctypes.byref(directory))
        found = []
        while entry := self._lib.nfs_readdir(self._context, directory):
            found.append((entry.contents.name, entry.contents.inode))
        self._lib.nfs_closedir(self._context, directory)
        return found


class OpenFile(NamedTuple):
    """A file that is open here."""

    node: int
    client: Client
    handle: ctypes.c_void_p

    def __call__(self, name: str, *words: Any) -> int:
        """Calls a function of the library about the file."""
        return self.client(name, self.handle, *words)


class Mount:
    """Answers the kernel's requests, one after the other."""

    def __init__(self, client: Client, exported: bytes, has_locks: bool) -> None:
        self._client, self._exported, self._has_locks = client, exported, has_locks
        self._kernel = os.open("/dev/fuse", os.O_RDWR)
        self._paths: dict[int, bytes] = {ROOT: b"/"}
        self._numbers: dict[bytes, int] = {b"/": ROOT}
        #: The open files, by number.
        self._open: dict[int, OpenFile] = {}
        self._next, self._opens = ROOT, 0
        #: The server's files with locks, by node and owner.
        self._locked: dict[tuple[int, int], int] = {}
        #: Names of removed files, by their nodes.
        self._silly: dict[int, bytes] = {}
        self._calls: dict[int, Callable[[int, bytes], bytes]] = {
            1: self._lookup, GETATTR: self._getattr, SETATTR: self._setattr, 9: self._mkdir,
            10: self._unlink, 11: self._rmdir, 12: self._rename, 13: self._link,
            OPEN: self._opened, 15: self._read, 16: self._write, 17: self._statfs,
            18: self._release, 20: self._fsync, 25: self._flush, 26: self._init,
            27: lambda *_: bytes(16), 28: self._readdir, 29: lambda *_: b"",
            30: lambda *_: b"", 31: self._locked_by, 32: self._lock, 33: self._lock,
            35: self._create, 45: self._rename2,
        }  # fmt: skip

    def mount(self, directory: str) -> None:
        """Mounts the directory for this process and those that it starts."""
        _system("unshare", NEW_MOUNTS)
        _system("mount", b"none", b"/", None, PRIVATE, None)
        options = f"fd={self._kernel},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
        _system("mount", b"nfs", directory.encode(), b"fuse", 0, options.encode())

    def serve(self) -> None:
        """Answers the kernel until the directory is unmounted."""
        while True:
            try:
                request = os.read(self._kernel, WRITTEN + 4096)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                raise
            _, call, unique, node, *_ = HEADER.unpack_from(request)
            if call in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            try:
                status, answer = 0, self._answer(call, node, request[HEADER.size :])
            except OSError as error:
                status, answer = -(error.errno or errno.EIO), b""
                if status == -errno.ENOENT and call in (GETATTR, SETATTR, OPEN):
                    # The kernel believed a name. It then asks again.
                    status = -errno.ESTALE
            head = struct.pack("<IiQ", 16 + len(answer), status, unique)
            try:
                os.write(self._kernel, head + answer)
            except FileNotFoundError:
                # The caller was interrupted.
                pass

    def _answer(self, call: int, node: int, content: bytes) -> bytes:
        if call not in self._calls:
            raise OSError(errno.ENOSYS, "")
        return self._calls[call](node, content)

    def _init(self, _: int, content: bytes) -> bytes:
        major, _, ahead, flags = struct.unpack_from("<IIII", content)
        known = flags & (POSIX_LOCKS | BIG_WRITES)
        values = (major, 31, ahead, known, 16, 12, WRITTEN, 1, 0, 0, 0)
        return struct.pack("<IIIIHHIIHHI28x", *values)

    def _below(self, node: int, name: bytes) -> bytes:
        return os.path.join(self._paths[node], name.rstrip(b"\0"))

    def _entry(self, path: bytes) -> bytes:
        found = self._client.attributes("lstat64", path)
        number = self._numbers.get(path)
        if number is None:
            self._next += 1
            number = self._numbers[path] = self._next
            self._paths[number] = path
        return ENTRY.pack(number, 0, BELIEVED, BELIEVED, 0, 0) + _packed(found)

    def _of(self, node: int) -> list[OpenFile]:
        return [one for one in self._open.values() if one.node == node]

    def _of_node(self, node: int) -> tuple[int, ...]:
        for one in self._of(node):
            return one.client.attributes("fstat64", one.handle)
        return self._client.attributes("lstat64", self._silly.get(node, self._paths[node]))

    def _attributes(self, node: int) -> bytes:
        return struct.pack("<QII", BELIEVED, 0, 0) + _packed(self._of_node(node))

    def _forget_attributes(self, node: int) -> None:
        """Lets the kernel ask for attributes again."""
        content = struct.pack("<Qqq", node, -1, 0)
        head = struct.pack("<IiQ", 16 + len(content), INVALIDATE, 0)
        try:
            os.write(self._kernel, head + content)
        except FileNotFoundError:
            # The kernel knows nothing of it.
            pass

    def _lookup(self, node: int, name: bytes) -> bytes:
        return self._entry(self._below(node, name))

    def _getattr(self, node: int, _: bytes) -> bytes:
        return self._attributes(node)

    def _setattr(self, node: int, content: bytes) -> bytes:
        which, _, _, size, *_, mode, _, _, _, _ = SET.unpack(content)
        path = self._silly.get(node, self._paths[node])
        if which & 1:
            self._client("chmod", path, mode & 0o7777)
        if which & 8:
            length = ctypes.c_uint64(size)
            for one in self._of(node)[:1]:
                one("ftruncate", length)
            if not self._of(node):
                self._client("truncate", path, length)
        return self._attributes(node)

    def _mkdir(self, node: int, content: bytes) -> bytes:
        path = self._below(node, content[8:])
        self._client("mkdir2", path, struct.unpack_from("<I", content)[0])
        return self._entry(path)

    def _unlink(self, node: int, name: bytes) -> bytes:
        path = self._below(node, name)
        number = self._numbers.get(path)
        if number is not None and self._of(number):
            hidden = self._below(node, b".nfs%016x" % number)
            self._client("rename", path, hidden)
            self._silly[number] = hidden
        else:
            self._client("unlink", path)
        self._drop(path)
        return b""

    def _rmdir(self, node: int, name: bytes) -> bytes:
        path = self._below(node, name)
        self._client("rmdir", path)
        self._drop(path)
        return b""

    def _drop(self, path: bytes) -> None:
        self._numbers.pop(path, None)

    def _rename(self, node: int, content: bytes, names: int = 8) -> bytes:
        (to,) = struct.unpack_from("<Q", content)
        old, new = content[names:].rstrip(b"\0").split(b"\0")
        source, target = self._below(node, old), self._below(to, new)
        self._client("rename", source, target)
        self._drop(target)
        for path, number in list(self._numbers.items()):
            if path == source or path.startswith(source + b"/"):
                self._drop(path)
                moved = target + path[len(source) :]
                self._numbers[moved], self._paths[number] = number, moved
        return b""

    def _rename2(self, node: int, content: bytes) -> bytes:
        if struct.unpack_from("<QI", content)[1]:
            raise OSError(errno.EINVAL, "")
        return self._rename(node, content, 16)

    def _link(self, node: int, content: bytes) -> bytes:
        (old,) = struct.unpack_from("<Q", content)
        path = self._below(node, content[8:])
        self._client("link", self._paths[old], path)
        return self._entry(path)

    def _handle(self, node: int, flags: int) -> bytes:
        # With O_WRONLY, libnfs opens a file in a way in which the server does not let it write.
        access = os.O_RDONLY if flags & os.O_ACCMODE == os.O_RDONLY else os.O_RDWR
        client = self._client.another()
        try:
            handle = ctypes.c_void_p()
            given = access | flags & os.O_TRUNC, 0, ctypes.byref(handle)
            client("open2", self._paths[node], *given)
        except OSError:
            client.end()
            raise
        self._opens += 1
        self._open[self._opens] = OpenFile(node, client, handle)
        self._forget_attributes(node)
        return struct.pack("<QII", self._opens, DIRECT_IO, 0)

    def _opened(self, node: int, content: bytes) -> bytes:
        return self._handle(node, struct.unpack_from("<I", content)[0])

    def _create(self, node: int, content: bytes) -> bytes:
        flags, mode, _, _ = struct.unpack_from("<IIII", content)
        path, handle = self._below(node, content[16:]), ctypes.c_void_p()
        client = self._client.another()
        try:
            given = os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, ctypes.byref(handle)
            client("open2", path, *given)
            client("close", handle)
            client("chmod", path, mode & 0o7777)
        except FileExistsError:
            # Another client made it first.
            if flags & os.O_EXCL:
                raise
        finally:
            client.end()
        entry = self._entry(path)
        return entry + self._handle(self._numbers[path], flags)

    def _of_handle(self, content: bytes) -> OpenFile:
        return self._open[struct.unpack_from("<Q", content)[0]]

    def _read(self, _: int, content: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", content)
        room = ctypes.create_string_buffer(size)
        place = ctypes.c_uint64(offset), ctypes.c_uint64(size)
        count = self._of_handle(content)("pread", *place, room)
        return room.raw[:count]

    def _write(self, _: int, content: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", content)
        data, of, done = content[40:], self._of_handle(content), 0
        while done < size:
            part = data[done : done + PIECE]
            place = ctypes.c_uint64(offset + done), ctypes.c_uint64(len(part))
            done += of("pwrite", *place, part)
        return struct.pack("<II", done, 0)

    def _fsync(self, _: int, content: bytes) -> bytes:
        self._of_handle(content)("fsync")
        return b""

    def _release(self, _: int, content: bytes) -> bytes:
        closed = self._open.pop(struct.unpack_from("<Q", content)[0])
        try:
            closed("close")
        finally:
            closed.client.end()
        if closed.node in self._silly and not self._of(closed.node):
            self._client("unlink", self._silly.pop(closed.node))
        return b""

    def _readdir(self, node: int, content: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", content)
        answer = b""
        for at, (name, inode) in enumerate(self._client.names(self._paths[node]), 1):
            if at <= offset:
                continue
            one = struct.pack("<QQII", inode or 1, at, len(name), 0) + name
            one += bytes(-len(one) % 8)
            if len(answer) + len(one) > size:
                break
            answer += one
        return answer

    def _statfs(self, *_: Any) -> bytes:
        return struct.pack("<QQQQQIIII24x", 1 << 30, 1 << 30, 1 << 30, 1, 1, 4096, 255, 4096, 0)

    def _locks(self, node: int, content: bytes, call: int) -> bytes:
        """Asks the server's file of an owner about a lock. Returns `struct flock`."""
        if not self._has_locks:
            raise OSError(errno.ENOLCK, "")
        _, owner, start, end, kind, *_ = LOCK.unpack_from(content)
        path = self._exported + self._silly.get(node, self._paths[node])
        file = self._locked.get((node, owner))
        if file is None:
            file = self._locked[node, owner] = os.open(path, os.O_RDWR)
        length = 0 if end >= (1 << 63) - 1 else end - start + 1
        return fcntl.fcntl(file, call, FLOCK.pack(kind, os.SEEK_SET, start, length, 0))

    def _lock(self, node: int, content: bytes) -> bytes:
        # No program of the tests waits for a lock.
        self._locks(node, content, fcntl.F_OFD_SETLK)
        self._forget_attributes(node)
        return b""

    def _locked_by(self, node: int, content: bytes) -> bytes:
        kind, _, start, length, _ = FLOCK.unpack(self._locks(node, content, fcntl.F_OFD_GETLK))
        end = start + length - 1 if length else (1 << 63) - 1
        return struct.pack("<QQII", start, end, kind, 0)

    def _flush(self, node: int, content: bytes) -> bytes:
        # A process that closes a file has no lock of it any more.
        file = self._locked.pop((node, struct.unpack("<QIIQ", content)[-1]), None)
        if file is not None:
            os.close(file)
        return b""


def _packed(found: tuple[int, ...]) -> bytes:
    """The attributes of the library as those of FUSE."""
    _, inode, mode, links, user, group, device, size, block, blocks = found[:10]
    times, parts = found[10:13], found[13:16]
    if not stat.S_IFMT(mode):
        mode |= stat.S_IFREG
    rest = (*parts, mode, links, user, group, device, block, 0)
    return ATTRIBUTES.pack(inode, size, blocks, *times, *rest)


def _system(call: str, *words: Any) -> None:
    """Calls a function of libc."""
    if getattr(_LIBC, call)(*words) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def main(library: str, url: str, exported: str, directory: str, locks: str, *command: str) -> int:
    """Runs the command. Returns its status."""
    mount = Mount(Client(library, url), exported.encode(), locks == "locks")
    mount.mount(directory)
    status: list[int] = []

    def run() -> None:
        status.append(subprocess.run(command).returncode)
        _system("umount2", directory.encode(), DETACH)

    thread = threading.Thread(target=run)
    thread.start()
    mount.serve()
    thread.join()
    return status[0]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
