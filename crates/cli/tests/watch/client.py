"""A client of PostgreSQL that speaks the protocol itself.

client.py ADDRESS STATEMENT [share | leave STATEMENT | spawn HOW]

ADDRESS is a TCP port of this machine, or the path of the server's socket file. The client prints a
line after the statement, and ends at the end of its input. With `share`, a child process has the
connection, too, from just before the statement until the client ends. With `leave`, the client
reads a line and ends. A child process, which has the connection from then on, executes the other
statement, prints a line, and ends. With `spawn`, it executes another program before the statement.
HOW is `closed` or `open` for the connection in this program, or `set` if it is closed by fcntl(2).
"""

import fcntl
import os
import socket
import struct
import subprocess
import sys


def connected(address):
    if address.isdigit():
        return socket.create_connection(("127.0.0.1", int(address)))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    return connection


def until_ready(messages):
    while True:
        kind = messages.read(1)
        body = messages.read(struct.unpack("!i", messages.read(4))[0] - 4)
        if kind == b"E":
            sys.exit(body.decode())
        if kind == b"Z":
            return


def execute(connection, messages, statement):
    text = statement.encode() + b"\0"
    connection.sendall(b"Q" + struct.pack("!i", 4 + len(text)) + text)
    until_ready(messages)
    print("done", flush=True)


def main():
    address, statement = sys.argv[1:3]
    connection = connected(address)
    messages = connection.makefile("rb")
    parameters = b"user\0ann\0database\0bank\0\0"
    connection.sendall(struct.pack("!ii", 8 + len(parameters), 196608) + parameters)
    until_ready(messages)
    child = None
    if "spawn" in sys.argv:
        how = sys.argv[4]
        connection.set_inheritable(how != "closed")
        if how == "set":
            fcntl.fcntl(connection, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
        subprocess.run(["true"], close_fds=False, check=True)
    if "share" in sys.argv:
        ends, others = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(others)
            os.read(ends, 1)
            os._exit(0)
    execute(connection, messages, statement)
    if "leave" in sys.argv:
        sys.stdin.readline()
        if os.fork() == 0:
            execute(connection, messages, sys.argv[4])
        os._exit(0)
    sys.stdin.read()
    if child:
        os.close(others)
        os.waitpid(child, 0)


main()
