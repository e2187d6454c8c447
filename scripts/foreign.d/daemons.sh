# what: daemons: double fork, a session of their own, closed descriptors, a file written after the end of the command
# needs: python3 setsid
# quick: yes
# limit: 30
/usr/bin/python3 - <<'PY'
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    os.chdir("."); os.umask(0); os.closerange(0, 1000)
    for n in range(3): os.open("/dev/null", os.O_RDWR)
    time.sleep(0.2); open("from-daemon", "w").write("x"); os._exit(0)
os.wait()
PY
for i in $(seq 50); do [ -s from-daemon ] && break; sleep 0.1; done; cat from-daemon; echo
setsid sh -c 'sleep 0.2; echo later >later' </dev/null >/dev/null 2>&1 & disown; for i in $(seq 50); do [ -s later ] && break; sleep 0.1; done; cat later
(sleep 0.3; echo o >orphan) & exec sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do [ -s orphan ] && break; sleep 0.1; done; cat orphan'
