"""Names, threads and sockets whose lines of perf are hard to read."""

import os
import socket
import subprocess
import threading


def work():
    with open("of thread", "w") as out:
        out.write("x")
    subprocess.run(["/bin/cp", "of thread", "of child"])


thread = threading.Thread(target=work)
thread.start()
thread.join()
for name in ['q"uo,te) = 3', "new\nline", 'x", flags: RDWR) = 4', b"\xff raw"]:
    open(name, "w").close()
    os.rename(name, os.fsencode(name) + b" renamed")
os.makedirs("/".join(["y" * 200] * 12))
reader, writer = os.pipe()
os.write(writer, b"x")
os.read(reader, 1)
listener = socket.socket(socket.AF_UNIX)
listener.bind("socket")
listener.listen()
client = socket.socket(socket.AF_UNIX)
client.connect("socket")
for family, address in [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]:
    try:
        socket.socket(family).connect((address, 9))
    except OSError:
        pass
os.remove("socket")
os.execv("/bin/sh", ["sh", "-c", "kill -9 $$"])
