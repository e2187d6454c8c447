# what: few descriptors, little memory, few processes, no descriptors at all, small stacks
# needs: python3 prlimit
# limit: 90
# quick: yes
# modes: on off strict
(ulimit -v 500000; ls / >/dev/null; echo $?; /usr/bin/python3 -c 'print(1)'); (ulimit -n 8; cat /dev/null; echo $?); (ulimit -s 256; ls / >/dev/null; echo $?)
prlimit --nofile=4 sh -c 'read x </etc/hostname; echo $?'; (ulimit -c 0; ulimit -t 1; /usr/bin/python3 -c 'while 1: pass'); echo $?
/usr/bin/python3 - <<'PY'
import os, mmap, ctypes, resource, subprocess
print(sorted(os.listdir("/proc/self/fd"), key=int))
os.closerange(3, 1000); print(os.open("/dev/null", os.O_RDONLY)); print(os.dup(0))
os.closerange(3, 1 << 20); r = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]; print(r)
resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
try:
    while True: os.open("/dev/null", os.O_RDONLY)
except OSError as e: print(e)
for fd in r: os.close(fd)
libc = ctypes.CDLL(None, use_errno=True); libc.mmap.restype = ctypes.c_void_p; libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
maps = [m.split("-")[0] for m in open("/proc/self/maps") if m.startswith("5500000")]; print(subprocess.run(["echo", "spawned"], capture_output=True, close_fds=True))
pid = os.fork()
if pid == 0:
    os.closerange(0, 100); os.open("/dev/null", os.O_RDWR); os._exit(os.open("/dev/null", os.O_RDWR))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
