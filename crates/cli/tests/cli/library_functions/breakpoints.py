"""Counts the calls of a library's functions with breakpoints, for gdb.

LIBRARY is the file's name, FUNCTIONS its functions as NAME=ADDRESS, OUT the file for the counts. A
call from the library that names the function itself, without the table of the linkage, is left out.
"""

import collections
import os
import struct

import gdb

gdb.execute("set pagination off")
gdb.execute("set breakpoint pending on")
counts = collections.Counter()


class Function(gdb.Breakpoint):
    def __init__(self, name, address):
        super().__init__("*%#x" % address)
        self.function, self.address = name, address

    def stop(self):
        process = gdb.selected_inferior()
        stack = int(gdb.newest_frame().read_register("rsp")) & (2**64 - 1)
        (back,) = struct.unpack("<Q", bytes(process.read_memory(stack, 8)))
        call = bytes(process.read_memory(back - 5, 5))
        is_direct = call[0] == 0xE8 and back + struct.unpack("<i", call[1:])[0] == self.address
        if not is_direct:
            counts[self.function] += 1
        return False


gdb.execute("starti")
gdb.execute("tbreak __libc_start_main")
gdb.execute("continue")
mappings = gdb.execute("info proc mappings", to_string=True).splitlines()
base = next(int(line.split()[0], 16) for line in mappings if os.environ["LIBRARY"] in line)
for function in os.environ["FUNCTIONS"].split():
    name, address = function.split("=")
    Function(name, base + int(address, 16))
gdb.execute("continue")
with open(os.environ["OUT"], "w") as out:
    for name, count in sorted(counts.items()):
        out.write("%s %d\n" % (name, count))
