"""Kinds of line for Python."""

from . import row


def py(name: str, text: str, **more: str) -> None:
    """Adds a kind of line for Python."""
    row(name, text, "python", **more)


HEAD = """
import glob, json, mmap, multiprocessing, os, pickle, shutil, signal, socket, sqlite3, stat, subprocess, sys, tempfile, threading
def rd(p):
    with open(p) as f: return f.read()
def wr(p, t):
    with open(p, "w") as f: f.write(t)
def sh(c): return subprocess.run(c, shell=True).returncode
def qx(c): return subprocess.run(c, shell=True, stdout=subprocess.PIPE, text=True).stdout
""".strip()

py("py-copy", "wr('{out}', rd('{lines}'))")
py(
    "py-check-output",
    "n = subprocess.check_output(['cat', '{num}'], text=True).strip(); sh('head -n ' + n + ' {lines} > {out}')",
)
py("py-read-word", "n = rd('{num}').strip(); subprocess.run(['sh', '-c', 'head -n \"$1\" {lines} > {out}', 'x', n])")
py("py-system", "os.system('sort {lines} > {out}')")
py("py-system-word", "os.system('tail -n %d {lines} > {out}' % int(rd('{num}')))")
py(
    "py-popen-pipe",
    "p = subprocess.Popen(['cat', '{lines}'], stdout=subprocess.PIPE); q = subprocess.Popen('sort > {out}', shell=True, stdin=p.stdout); p.stdout.close(); q.wait(); p.wait()",
)
py("py-communicate", "subprocess.run(['tee', '{out}'], input=rd('{lines}'), text=True, stdout=subprocess.DEVNULL)")
py("py-status", "wr('{out}', str(sh('grep -q yes {flag}')))")
py("py-status-if", "sh('cat {lines} > {out}') if sh('grep -q yes {flag}') == 0 else sh('sort -r {lines} > {out}')")
py(
    "py-check-call",
    "try:\n    subprocess.check_call(['grep', '-q', 'yes', '{flag}'])\n    wr('{out}', 'ok')\nexcept subprocess.CalledProcessError as e:\n    wr('{out}', 'bad %d' % e.returncode)",
    flags="fails",
)
py(
    "py-signal-status",
    "p = subprocess.Popen(['sleep', '5']); p.send_signal(9 if 'yes' in rd('{flag}') else 15); wr('{out}', str(p.wait()))",
    flags="fails",
)
py("py-size", "wr('{out}', str(os.path.getsize('{lines}')))")
py("py-mode", "wr('{out}', oct(os.stat('{mode}').st_mode & 0o777))")
py("py-access", "wr('{out}', str(os.access('{mode}', os.X_OK)))")
py("py-exists", "wr('{out}', 'there' if os.path.exists('{maybe}') else 'missing')")
py("py-exists-child", "sh('cat {lines} > {out}' if os.path.exists('{maybe}') else 'sort -r {lines} > {out}')")
py("py-mtime", "wr('{out}', str(os.path.getmtime('{lines}') > os.path.getmtime('{lines2}')))", flags="src")
py("py-try-open", "try:\n    t = rd('{maybe}')\nexcept OSError:\n    t = 'none'\nwr('{out}', t + rd('{word}'))")
py("py-listdir", "wr('{out}', ' '.join(sorted(os.listdir('{dir}'))))")
py("py-glob", "wr('{out}', ''.join(rd(p) for p in sorted(glob.glob('{dir}/f*'))))")
py("py-scandir-size", "wr('{out}', str(sorted((e.name, e.stat().st_size) for e in os.scandir('{dir}'))))")
py("py-walk", "wr('{out}', str(sorted((sorted(d), sorted(f)) for _, d, f in os.walk('{dir}'))))")
py("py-readlink", "wr('{out}', os.readlink('{link}'))")
py("py-realpath", "wr('{out}', os.path.basename(os.path.realpath('{link}')))")
py("py-import", "import {module}; wr('{out}', str({module}.V))")
py(
    "py-exec",
    "ns = {}; exec(rd('{code}').replace('alpha', '1').replace('beta', '2').replace('gamma', '3'), ns); wr('{out}', str(ns['W']))",
)
py("py-json", "wr('{out}', json.loads(rd('{json}'))['a'])")
py("py-json-word", "sh('grep -c %s {lines} > {out}' % json.load(open('{json}'))['key'])")
py(
    "py-sqlite",
    "c = sqlite3.connect('{db}'); wr('{out}', str(c.execute('select k, v from t order by k').fetchall())); c.close()",
)
py(
    "py-sqlite-word",
    "c = sqlite3.connect('{db}'); n = c.execute('select count(*) from t').fetchone()[0]; c.close(); sh('head -n %d {lines} > {out}' % n)",
)
py(
    "py-sqlite-build",
    "c = sqlite3.connect('{out}.db'); c.execute('create table t(v)'); c.execute('insert into t values(?)', (rd('{word}'),)); c.commit(); wr('{out}', str(c.execute('select v from t').fetchall())); c.close()",
)
py(
    "py-pickle",
    "pickle.dump(rd('{lines}'), open('{out}.pkl', 'wb')); wr('{out}', pickle.load(open('{out}.pkl', 'rb'))[:9])",
)
py(
    "py-tempfile",
    "f = tempfile.NamedTemporaryFile('w+'); f.write(rd('{lines}')); f.flush(); sh('sort ' + f.name + ' > {out}'); f.close()",
)
py("py-replace", "wr('{out}.t', rd('{lines}').upper()); os.replace('{out}.t', '{out}')")
py("py-link", "os.link('{lines}', '{out}.h'); wr('{out}', rd('{out}.h'))")
py("py-symlink", "os.symlink(rd('{word}').strip(), '{out}')")
py("py-copytree", "shutil.copytree('{dir}', '{out}.d'); wr('{out}', str(len(os.listdir('{out}.d'))))")
py("py-copymode", "wr('{out}', 'x'); shutil.copymode('{mode}', '{out}')")
py(
    "py-stage",
    "os.mkdir('{out}.st'); wr('{out}.st/f', rd('{lines}')); os.rename('{out}.st', '{out}.fin'); wr('{out}', rd('{out}.fin/f'))",
)
py(
    "py-mmap-read",
    "f = open('{lines}', 'r+b' if 0 else 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); wr('{out}', m[:].decode()); m.close(); f.close()",
)
py(
    "py-mmap-fork",
    "m = mmap.mmap(-1, 100)\np = os.fork()\nif p == 0:\n    t = rd('{word}').encode(); m[:len(t)] = t; os._exit(0)\nos.waitpid(p, 0); wr('{out}', m[:20].rstrip(b'\\0').decode())",
)
py(
    "py-mmap-fork-child",
    "m = mmap.mmap(-1, 100)\np = os.fork()\nif p == 0:\n    m[0] = int(rd('{num}')); os._exit(0)\nos.waitpid(p, 0); sh('head -n %d {lines} > {out}' % m[0])",
)
py(
    "py-mmap-file-shared",
    "wr('{out}', rd('{lines}') + '....'); f = open('{out}', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[:1] = rd('{word}')[:1].encode(); m.flush(); m.close(); f.close()",
)
py(
    "py-pipe-fork",
    "r, w = os.pipe()\np = os.fork()\nif p == 0:\n    os.write(w, rd('{word}').encode()); os._exit(0)\nos.close(w); wr('{out}', os.read(r, 99).decode()); os.close(r); os.waitpid(p, 0)",
)
py(
    "py-socketpair",
    "a, b = socket.socketpair()\np = os.fork()\nif p == 0:\n    b.send(rd('{num}').encode()); os._exit(0)\nn = int(a.recv(9)); os.waitpid(p, 0); a.close(); b.close(); sh('head -n %d {lines} > {out}' % n)",
)
py(
    "py-exit-child",
    "p = os.fork()\nif p == 0:\n    os._exit(int(rd('{num}')))\nwr('{out}', str(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1])))",
    flags="fails",
)
py(
    "py-exit-child-head",
    "p = os.fork()\nif p == 0:\n    os._exit(int(rd('{num}')))\nsh('head -n %d {lines} > {out}' % os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))",
    flags="fails",
)
py(
    "py-thread",
    "t = []; h = threading.Thread(target=lambda: t.append(rd('{lines}'))); h.start(); h.join(); wr('{out}', t[0])",
)
py(
    "py-pool",
    "with multiprocessing.get_context('fork').Pool(2) as pool:\n    wr('{out}', str(pool.map(os.path.getsize, sorted(glob.glob('{dir}/*')))))",
    flags="slow",
)
py(
    "py-queue",
    "q = multiprocessing.get_context('fork').SimpleQueue()\np = os.fork()\nif p == 0:\n    q.put(rd('{word}')); os._exit(0)\nwr('{out}', q.get()); os.waitpid(p, 0)",
)
py(
    "py-shm",
    "from multiprocessing import shared_memory\nm = shared_memory.SharedMemory(create=True, size=64)\np = os.fork()\nif p == 0:\n    m.buf[0] = int(rd('{num}')); os._exit(0)\nos.waitpid(p, 0); k = m.buf[0]; m.close(); m.unlink(); sh('head -n %d {lines} > {out}' % k)",
)
py(
    "py-signal",
    "g = []; signal.signal(signal.SIGUSR1, lambda *a: g.append(rd('{word}')))\nif 'yes' in rd('{flag}'): os.kill(os.getpid(), signal.SIGUSR1)\nwr('{out}', ''.join(g) or 'none')",
)
py("py-env", "os.environ['WW'] = rd('{word}').strip(); sh('echo \"$WW\" > {out}')")
py("py-chdir", "os.chdir('{dir}'); t = rd('f1'); os.chdir('..'); wr('{out}', t)")
py(
    "py-held",
    "with open('{out}', 'w') as f:\n    subprocess.run(['cat', '{lines}'], stdout=f)\n"
    "    if os.path.exists('{maybe}'):\n        subprocess.run(['cat', '{word}'], stdout=f)",
)
py("py-cwd-child", "subprocess.run('cat f1 f2 > ../{out}', shell=True, cwd='{dir}')")
py("py-stdin-fd", "with open('{lines}') as f: subprocess.run('sort > {out}', shell=True, stdin=f)")
py(
    "py-offset-fd",
    "f = os.open('{lines}', os.O_RDONLY); os.read(f, int(rd('{num}'))); subprocess.run('cat > {out}', shell=True, stdin=f); os.close(f)",
)
py(
    "py-offset-child",
    "f = os.open('{lines}', os.O_RDONLY); subprocess.run(['dd', 'bs=1', 'count=' + rd('{num}').strip(), 'status=none', 'of=/dev/null'], stdin=f); wr('{out}', os.read(f, 999).decode()); os.close(f)",
)
py("py-stdout-fd", "with open('{out}', 'w') as f: subprocess.run(['cat', '{lines}'], stdout=f)")
py("py-append", "wr('{out}', 'a\\n')\nwith open('{out}', 'a') as f: f.write(rd('{lines}'))")
py("py-loop-outs", "for i, l in enumerate(rd('{lines}').splitlines()[:2]): wr('{out}.%d' % i, l)")
py(
    "py-cache",
    "os.makedirs('.cache', exist_ok=True)\nif not os.path.exists('.cache/p{id}'): wr('.cache/p{id}', rd('{lines}').upper())\nwr('{out}', rd('.cache/p{id}'))",
)
py("py-odd", "wr('{out}', rd('{odd}'))")
py("py-chmod", "wr('{out}', rd('{lines}')); os.chmod('{out}', int(rd('{mode}'), 8))")
py(
    "py-utime",
    "wr('{out}', 'x'); os.utime('{out}', (1, int(rd('{num}')) * 1000)); wr('{out}.t', str(int(os.stat('{out}').st_mtime)))",
)
py("py-truncate", "wr('{out}', rd('{lines}')); os.truncate('{out}', int(rd('{num}')))")
py(
    "py-flock",
    "import fcntl\nf = open('{out}.lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX); sh('cat {lines} > {out}'); f.close()",
)
py(
    "py-bg-poll",
    "p = subprocess.Popen('sleep 0.03; cat {lines} > {out}.b.t; mv {out}.b.t {out}.b', shell=True)\nwhile not os.path.exists('{out}.b'): threading.Event().wait(0.01)\nwr('{out}', rd('{out}.b')[::-1]); p.wait()",
    flags="slow",
)
py("py-sys-exit", "if sh('test -s {lines}'): wr('{out}', 'empty')\nelse: sh('head -n 1 {lines} > {out}')")
py(
    "py-which",
    "os.environ['PATH'] = './{pathdirs}a:./{pathdirs}b:' + os.environ['PATH']; wr('{out}', os.path.dirname(shutil.which('mytool')))",
)
py("py-script", "subprocess.run(['./{tool}', '{lines}'], stdout=open('{out}', 'w'))", flags="fails")
py("py-spawn", "os.waitpid(os.posix_spawn('/bin/sh', ['sh', '-c', 'cat {lines} > {out}'], os.environ), 0)")
py(
    "py-zip",
    "import zipfile\nz = zipfile.ZipFile('{out}.zip', 'w'); z.writestr(zipfile.ZipInfo('m'), rd('{lines}')); z.close(); wr('{out}', zipfile.ZipFile('{out}.zip').read('m').decode()[:7])",
)
py("py-atomic-config", "t = rd('{config}').replace('alpha', 'Alpha'); wr('{out}.t', t); os.rename('{out}.t', '{out}')")
py(
    "py-global-state",
    "S{id} = rd('{num}').strip()\nsh('head -n ' + S{id} + ' {lines} > {out}')\nsh('tail -n ' + S{id} + ' {lines2} > {out}.2')",
)
py("py-count-up", "n = int(rd('{num}')); wr('{num}', str(n + 1)); sh('head -n %d {lines} > {out}' % n)", flags="rmw")
py(
    "py-append-log",
    "with open('{lines}', 'a') as f: f.write(rd('{word}'))\nwr('{out}', rd('{lines}')[-8:])",
    flags="rmw",
)
py(
    "py-memfd",
    "f = os.memfd_create('m')\np = os.fork()\nif p == 0:\n    os.write(f, rd('{word}').encode()); os._exit(0)\nos.waitpid(p, 0); os.lseek(f, 0, 0); wr('{out}', os.read(f, 99).decode()); os.close(f)",
)
py(
    "py-memfd-child",
    "f = os.memfd_create('m', 0)\nos.write(f, rd('{num}').encode()); os.lseek(f, 0, 0); n = subprocess.run(['cat'], stdin=f, stdout=subprocess.PIPE, text=True).stdout.strip(); os.close(f); sh('head -n ' + n + ' {lines} > {out}')",
)
py(
    "py-fifo-loop",
    "os.mkfifo('{out}.p')\np = subprocess.Popen('cat {num} > {out}.p', shell=True); n = rd('{out}.p').strip(); p.wait(); os.unlink('{out}.p'); sh('head -n ' + n + ' {lines} > {out}')",
)
py(
    "py-unix-socket",
    "s = socket.socket(socket.AF_UNIX); s.bind('{out}.s'); s.listen()\np = os.fork()\nif p == 0:\n    c = socket.socket(socket.AF_UNIX); c.connect('{out}.s'); c.send(rd('{word}').encode()); os._exit(0)\nc = s.accept()[0]; t = c.recv(99).decode(); os.waitpid(p, 0); c.close(); s.close(); os.unlink('{out}.s'); wr('{out}', t)",
)
py(
    "py-tcp-local",
    "s = socket.create_server(('127.0.0.1', 0)); a = s.getsockname()\np = os.fork()\nif p == 0:\n    c = socket.create_connection(a); c.send(rd('{num}').encode()); os._exit(0)\nc = s.accept()[0]; n = int(c.recv(99)); os.waitpid(p, 0); c.close(); s.close(); sh('head -n %d {lines} > {out}' % n)",
)
py("py-lines-loop", "t = 0\nfor l in open('{list}'): t += int(l)\nwr('{out}', str(t))")
py(
    "py-big-pipe",
    "p = subprocess.Popen(['cat', '{big}'], stdout=subprocess.PIPE); t = p.stdout.read(); p.wait(); wr('{out}', str(len(t)) + t.decode()[-20:])",
)
