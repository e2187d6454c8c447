//! The commands whose accounts must be complete and whose effects must not change.
//!
//! Each runs in a fresh directory with files `a` (three lines) and `b` (two), and a directory `d`
//! with files `x` and `y`. It also has the symbolic links `soft` (to `a`), `dangling` (to no file)
//! and `loop` (to itself). `after(…)` prepares more. All commands read and write the same in each
//! run. `restless()` marks those whose output or files still differ.

#[path = "foes.rs"]
pub mod foes;

use backstory_testkit::oracle::{Case, bash, program, sh};

/// Tools from GNU and friends.
pub const TOOLS: &[Case] = &[
    program("cp", &["cp", "a", "copy"]),
    program("cp-archive", &["cp", "-a", "d", "soft", "copied"])
        .after("mkdir copied; ln d/x d/hard; chmod 700 d"),
    program("mv", &["mv", "a", "moved"]),
    program("mv-over", &["mv", "-f", "a", "b"]),
    program("mv-directory", &["mv", "d", "e"]),
    program(
        "mv-across",
        &[
            "sh",
            "-c",
            "t=/dev/shm/mv$(echo $FIX | tr / -); mv a $t && mv $t back",
        ],
    ),
    program("ln", &["ln", "a", "hard"]),
    program("ln-soft", &["ln", "-sf", "b", "soft"]),
    program("rm-tree", &["rm", "-r", "d", "a"]),
    program("mkdir-deep", &["mkdir", "-p", "p/q/r/s"]),
    program("rmdir", &["rmdir", "-p", "p/q"]).after("mkdir -p p/q"),
    program("touch", &["touch", "a", "new"]),
    program("cat-soft", &["cat", "soft", "d/x"]),
    program("cat-missing", &["cat", "a", "nothing", "dangling"]),
    program("sort-output", &["sort", "-o", "b", "b", "a"]),
    program(
        "sort-temporary",
        &[
            "sort",
            "-S",
            "16k",
            "-T",
            ".",
            "--compress-program=gzip",
            "-o",
            "sorted",
            "long",
        ],
    )
    .after("seq 30000 | rev >long"),
    program("split", &["split", "-l", "1", "a", "part-"]),
    program("csplit", &["csplit", "-s", "a", "/two/"]),
    program(
        "install",
        &["install", "-D", "-m", "700", "a", "into/deep/a"],
    ),
    program(
        "dd",
        &[
            "dd",
            "if=a",
            "of=dd-out",
            "bs=2",
            "count=3",
            "conv=notrunc",
            "status=none",
        ],
    ),
    program("truncate", &["truncate", "-s", "100", "a", "fresh"]),
    program("chmod-tree", &["chmod", "-R", "go-r", "d", "a"]),
    program("shred", &["shred", "-u", "-n", "1", "a"]).restless(),
    program("stat-missing", &["stat", "-c", "%s", "a", "nothing"]),
    program("readlink", &["readlink", "-f", "soft"]),
    program("ls-long", &["ls", "-lR", "--time-style=+", "d"]).restless(),
    program("du", &["du", "-a", "--apparent-size", "d"]),
    program("wc", &["wc", "a", "b", "d/x"]),
    program(
        "join-paste",
        &[
            "sh",
            "-c",
            "paste a b >p; join p p >j; comm a b 2>/dev/null >c; tsort d/x >/dev/null",
        ],
    ),
    program("sync-file", &["sync", "a"]),
    program("mkfifo", &["mkfifo", "pipe"]),
    sh("tee", "cat a | tee t1 t2 >t3"),
    sh(
        "mktemp",
        "f=$(mktemp ./tmp.XXXXXXXXXX); cat a >\"$f\"; mv \"$f\" kept; mktemp -d -u >/dev/null",
    ),
    program("find", &["find", ".", "-name", "*x*", "-size", "-10"])
        .after("mkdir -p e/f/g; touch e/f/g/ox"),
    program(
        "find-exec",
        &[
            "find", "d", "-type", "f", "-exec", "cp", "{}", "{}.bak", ";",
        ],
    ),
    program("find-delete", &["find", "d", "-delete"]),
    program("grep-tree", &["grep", "-r", "y", "."]).after("rm loop dangling"),
    program("diff", &["diff", "-r", "d", "e"])
        .after("cp -r d e; echo more >>e/x; touch e/only")
        .needs(&["diff"]),
    sh(
        "tar",
        "tar cf t.tar a d soft && mkdir out && tar xf t.tar -C out",
    ),
    sh("tar-gzip", "tar czf t.tgz d && tar tzf t.tgz >list").needs(&["gzip"]),
    sh(
        "gzip",
        "gzip -nk a && gunzip -c a.gz >same && gzip -9n b && gunzip b.gz",
    )
    .needs(&["gzip"]),
    sh("xargs", "ls a b | xargs -n1 -I% cp % %.x"),
    program("sed-in-place", &["sed", "-i", "s/one/1/", "a", "d/x"]),
    program("sed-write", &["sed", "-n", "w out", "a"]),
    program(
        "awk",
        &[
            "awk",
            "{ print > $1 \".line\" } END { system(\"cat b > from-awk\") }",
            "a",
        ],
    ),
    sh(
        "patch-cmp",
        "sed s/two/2/ a >c; diff -u --label old --label new a c >p; cmp a c; cat p | wc -l",
    )
    .needs(&["diff"]),
    program("timeout", &["timeout", "-s", "KILL", "900", "cat", "a"]),
    program("nice-env", &["env", "-i", "nice", "/bin/cat", "a"]),
    program("setsid", &["setsid", "-w", "cp", "a", "by-session"]),
    program("flock", &["flock", "lock", "cp", "a", "locked"]).needs(&["flock"]),
    program(
        "unlink-self-made",
        &["sh", "-c", "echo x >t; exec 3<t; rm t; cat <&3"],
    ),
];

/// Programs that examine their environment must not notice that they are recorded.
pub const SURROUNDINGS: &[Case] = &[
    program("environment", &["env"]),
    sh(
        "environment-of-shell",
        "env | sort; export X=1; sh -c 'env | sort >e'; env -u HOME sh -c 'set | grep -v PPID' >s; tr -s '\\0' '\\n' </proc/self/environ",
    ),
    sh(
        "open-descriptors",
        "ls /proc/self/fd; sh -c 'ls /proc/$$/fd'",
    ),
    sh(
        "limits",
        "ulimit -a; ulimit -n 10; cat a >l; sh -c 'ulimit -f 1; dd if=/dev/zero of=big bs=1k count=3 status=none'; echo $?",
    ),
    program("time-out", &["timeout", "5", "sleep", "600"]),
    sh("broken-pipe", "yes | head -n 3"),
    sh(
        "closed-streams",
        "cat a >&- 2>&-; exec <&- >out; cat b; cat",
    ),
    sh(
        "ignored-signals",
        "trap '' TERM; kill -TERM $$; cat a >still; sh -c 'kill -TERM $$; echo on'",
    ),
    program("no-input-or-output", &["true"]),
    program("fails", &["false"]),
];

/// Shells.
pub const SHELLS: &[Case] = &[
    sh("pipeline", "cat a b | sort | uniq -c | sort -rn >counted"),
    sh("redirections", "cat <a >out; echo err >&2 2>errors; cat a >>out; : >empty; cat nothing 2>errors; cat <>b >rw"),
    sh("here-document", "cat >doc <<EOF\nhello $(cat b)\nEOF\ncat <<'EOF' >>doc\nraw\nEOF"),
    sh("subshells", "(cd d; cat x >../from-sub; (cd ..; cat b >two-down)); { cat a; cat b; } >grouped; cat from-sub"),
    sh("globs", "cat d/* ? >all; for f in d/*; do cp $f $f.copy; done; echo no*match"),
    sh("exec-replaces", "cat b >first; exec cat a"),
    sh("background", "cat a >bg1 & cat b >bg2 & wait; cat bg1 bg2 >both"),
    sh("trap-exit", "trap 'cat b >trapped' EXIT; cat a >before; exit 4"),
    sh("signals-itself", "cat a >before; kill -TERM $$"),
    sh("statuses", "false; (exit 9); sh -c 'exit 300'; sh -c 'kill -9 $$'; cat a >/dev/null; true"),
    sh("not-found", "no-such-command; ./a; ./d; /no/such/thing; cat a"),
    sh("script", "chmod +x s; ./s one; ./t").after(
        "printf '#!/bin/sh\\ncat a >\"$1\"\\n' >s; printf 'cat b >no-shebang\\n' >t; chmod +x t",
    ),
    sh("script-chain", "./outer").after("printf '#!/usr/bin/env sh\\nexec ./inner\\n' >outer; printf '#!/bin/cat\\n' >inner; chmod +x outer inner"),
    sh("read-loop", "while read l; do echo \"$l\" >\"line-$l\"; done <a"),
    sh("descriptors", "exec 3>three 4<b; cat <&4 >&3; exec 3>&- 4<&-; cat three"),
    sh("umask-cd", "umask 077; cd d; cat x >z; cd ..; cat d/z; cd soft 2>/dev/null || cat b"),
    sh("deep-directory", "d=.; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do d=$d/deep$i; done; mkdir -p $d; cd $d; cat ../../../../../../../../../../../../a >end"),
    bash("process-substitution", "diff <(sort a) <(sort b) >differences; tee >(cat >side) <a >/dev/null; wait").needs(&["bash", "diff"]),
    bash("bash-reads", "mapfile -t l <a; printf '%s\\n' \"${l[@]}\" >m; read -r x <b; echo \"$x\" >r; echo $(<b) >c").needs(&["bash"]),
    bash("bash-jobs", "set -m; (cat a >j1) & (sleep 0.05; cat b >j2) & wait; kill %1 2>/dev/null; cat j1 j2").needs(&["bash"])
    .restless(),
    bash("bash-coproc", "coproc cat; echo hi >&${COPROC[1]}; read -r l <&${COPROC[0]}; echo $l >co; kill $COPROC_PID; wait").needs(&["bash"]),
    bash("bash-glob-star", "shopt -s globstar nullglob; cat ./**/x >star; exec -a other cat b").needs(&["bash"]),
];

/// Interpreters, compilers, version control.
pub const LANGUAGES: &[Case] = &[
    sh(
        "git-commit",
        "git init -q r && cd r && cp ../a . && git add a && git commit -q -m one && cp ../b a && git commit -qam two && git log --stat >../log",
    )
    .needs(&["git"])
    .restless(),
    sh("git-clone", "git clone -q r c && git -C c log -p --format=%s >log && git -C c checkout -q -b side && rm c/a && git -C c status -s")
        .after("git init -q r && cp a r && git -C r add a && git -C r commit -q -m one")
        .needs(&["git"])
        .restless(),
    sh("gcc", "gcc -c -o one.o one.c && gcc -c two.c && gcc -o prog one.o two.o && ./prog")
        .after("echo 'int two(void); int main(void){return two()-2;}' >one.c; printf '#include \"t.h\"\\nint two(void){return T;}\\n' >two.c; echo '#define T 2' >t.h")
        .needs(&["gcc"]),
    sh("make", "make -s -j2 && ./prog && make -s")
        .after(
            "for i in 1 2 3 4; do echo \"int f$i(void){return $i;}\" >f$i.c; done; echo 'int main(void){return 0;}' >main.c; \
             printf 'prog: main.o f1.o f2.o f3.o f4.o\\n\\tgcc -o $@ $^\\n%%.o: %%.c\\n\\tgcc -c -o $@ $<\\n' >Makefile",
        )
        .needs(&["gcc", "make"]),
    program("python-import", &["python3", "-c", "import json, email.message, sqlite3, m; print(m.value)"])
        .after("echo 'value = open(\"a\").read()' >m.py")
        .needs(&["python3"])
        .restless(),
    program(
        "python-files",
        &[
            "python3",
            "-c",
            "import os, shutil\nopen('w','w').write(open('a').read())\nopen('b','a').write('x')\nf=open('w','r+b'); f.read(1); f.write(b'z'); f.close()\n\
             open('n','x').close()\nos.rename('n','n2'); os.replace('n2','b'); os.link('a','h'); os.symlink('a','s'); os.makedirs('m/n'); \
             shutil.copytree('d','dd'); shutil.rmtree('d'); os.truncate('w',2); os.utime('a',(1,1)); os.listdir('dd'); os.path.exists('none')\n\
             os.chmod('a',0o600); print(os.stat('w').st_size)",
        ],
    )
    .needs(&["python3"]),
    program(
        "python-processes",
        &[
            "python3",
            "-c",
            "import subprocess, os\nsubprocess.run(['cp','a','c1']); subprocess.run('cat a >c2', shell=True); os.system('cat b >c3')\n\
             print(subprocess.check_output(['sort','../a'], env={}, close_fds=True, cwd='d'))\n\
             p=os.fork()\nif p==0:\n  open('child','w').write('c'); os._exit(3)\nprint(os.waitpid(p,0)[1])",
        ],
    )
    .needs(&["python3"]),
    program(
        "python-temporary",
        &[
            "python3",
            "-c",
            "import tempfile, os\nf=tempfile.NamedTemporaryFile(dir='.',delete=False); f.write(b'x'); f.close(); os.rename(f.name,'kept')\n\
             t=tempfile.TemporaryFile(dir='.'); t.write(b'y'); t.seek(0); t.read(); t.close()\nwith tempfile.TemporaryDirectory(dir='.') as d: open(d+'/in','w').write('z')",
        ],
    )
    .needs(&["python3"]),
    program(
        "python-workers",
        &[
            "python3",
            "-c",
            "import multiprocessing as m\ndef w(i): open('w%d'%i,'w').write(open('a').read()); return i\n\
             if __name__=='__main__':\n  c=m.get_context('fork')\n  ps=[c.Process(target=w,args=(i,)) for i in range(3)]\n  [p.start() for p in ps]; [p.join() for p in ps]; print(len(ps))",
        ],
    )
    .needs(&["python3"]),
    program(
        "python-threads",
        &[
            "python3",
            "-c",
            "import threading, mmap, os\ndef w(i): open('t%d'%i,'w').write(open('b').read())\nts=[threading.Thread(target=w,args=(i,)) for i in range(6)]\n\
             [t.start() for t in ts]; [t.join() for t in ts]\nf=open('a','r+b'); m=mmap.mmap(f.fileno(),0); m[0]=90; m.close(); f.close()\n\
             d=os.open('d',os.O_RDONLY); g=os.open('x',os.O_RDONLY,dir_fd=d); os.sendfile(os.open('s',os.O_CREAT|os.O_WRONLY),g,0,9)",
        ],
    )
    .needs(&["python3"]),
    program(
        "python-sqlite",
        &[
            "python3",
            "-c",
            "import sqlite3\nc=sqlite3.connect('db'); c.execute('pragma journal_mode=wal'); c.execute('create table t(x)'); c.execute('insert into t values(1)'); c.commit()\n\
             d=sqlite3.connect('db2'); d.execute('create table u(y)'); d.execute('insert into u values(2)'); d.commit(); print(d.execute('select * from u').fetchall()); c.close(); d.close()",
        ],
    )
    .needs(&["python3"])
    .restless(),
    program(
        "perl",
        &["perl", "-e", "open A,'<','a'; open W,'>','w'; print W <A>; close W; rename 'w','w2'; unlink 'b'; print `cat d/x`; system 'cp','d/y','p'; -e 'none'; opendir D,'d'; readdir D"],
    )
    .needs(&["perl"]),
    program("perl-in-place", &["perl", "-pi.bak", "-e", "s/one/1/", "a"]).needs(&["perl"]),
];

/// Programs that cannot be preloaded, and programs that do one unusual thing.
pub const UNUSUAL: &[Case] = &[
    program("busybox-cp", &["busybox", "cp", "a", "copy"]).needs(&["busybox"]),
    program(
        "busybox-sh",
        &[
            "busybox",
            "sh",
            "-c",
            "cat a b | sort >s; cp s t; (cd d; mv x z); rm b; [ -e nothing ] || echo done >>t",
        ],
    )
    .needs(&["busybox"]),
    program(
        "busybox-tar",
        &[
            "busybox",
            "sh",
            "-c",
            "tar cf t.tar a d; mkdir o; tar xf t.tar -C o",
        ],
    )
    .needs(&["busybox"]),
    program(
        "busybox-find",
        &[
            "busybox", "find", ".", "-type", "f", "-exec", "/bin/cat", "{}", ";",
        ],
    )
    .needs(&["busybox"])
    .restless(),
    program(
        "busybox-sort",
        &["busybox", "sort", "-o", "sorted", "a", "b"],
    )
    .needs(&["busybox"]),
    program(
        "busybox-background",
        &[
            "busybox",
            "sh",
            "-c",
            "cat a >x1 & cat b >x2 & wait; cat x1 x2",
        ],
    )
    .needs(&["busybox"]),
    program("listings", &["$FIX/listings"]),
    program("static-files", &["$FIX/static_files"]).needs(&["musl-gcc"]),
    program("static-listings", &["$FIX/static_listings"]),
    program("static-spawn", &["$FIX/static_spawn"]).needs(&["musl-gcc"]),
    program(
        "static-inherits",
        &["sh", "-c", "busybox cat <a >out; busybox cat b >>out"],
    )
    .needs(&["busybox"]),
    program("go-files", &["$FIX/go_files"]).needs(&["go"]),
    program("raw-syscalls", &["$FIX/raw_syscalls"]),
    program("vfork", &["$FIX/vfork_exec"]),
    program("threads", &["$FIX/threads"]),
    program("spawn", &["$FIX/spawn"]),
    program("memory-files", &["$FIX/memfd"]),
    program("tmpfile-link", &["$FIX/tmpfile_link"]),
    program("exchange", &["$FIX/exchange"]),
    program("descriptor-games", &["$FIX/descriptors"]),
    program("at-calls", &["$FIX/at_calls"]),
    program("stdio-modes", &["$FIX/stdio_modes"]),
    program("mmap-writer", &["$FIX/mmap_writer"]),
    program("daemon", &["$FIX/daemon"]),
    program("thread-exec", &["$FIX/thread_exec"]),
    program("kernel-copy", &["$FIX/kernel_copy"]),
    program("failures", &["$FIX/failures"]),
    program("odd-names", &["$FIX/odd_names"]),
    program("channels", &["$FIX/channels"]),
    program("signals", &["$FIX/signals"]),
    program("clone-child", &["$FIX/clone_child"]),
    program("truncation", &["$FIX/truncation"]),
    program("metadata", &["$FIX/metadata"]),
    program("lookups", &["$FIX/lookups"]),
    program("many-files", &["$FIX/many_files"]),
    program("loads", &["$FIX/loads"]),
    program("bare-exec", &["$FIX/bare_exec", "/bin/cat", "a"]),
    program("sandboxed", &["$FIX/sandbox"]),
    program("int80", &["$FIX/int80"]),
    program("32-bit", &["$FIX/narrow"]),
    program("x32-calls", &["$FIX/x32_calls"]),
    sh(
        "own-preload",
        "LD_PRELOAD=$FIX/own_preload dd if=a of=preloaded status=none; LD_PRELOAD=/nowhere.so cat b",
    ),
    program(
        "sanitized",
        &["env", "ASAN_OPTIONS=detect_leaks=0", "$FIX/sanitized"],
    ),
    program("timer-storm", &["$FIX/storm"]),
    program("unshared", &["unshare", "-Ur", "cp", "a", "by-unshared"]),
    program(
        "unshared-pids",
        &["unshare", "-Urpf", "sh", "-c", "cat a >one; cat b >two"],
    ),
    program(
        "bubblewrap",
        &[
            "bwrap",
            "--dev-bind",
            "/",
            "/",
            "--unshare-pid",
            "cp",
            "a",
            "wrapped",
        ],
    )
    .needs(&["bwrap"]),
];

/// All cases.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [TOOLS, SURROUNDINGS, SHELLS, LANGUAGES, UNUSUAL, foes::FOES]
        .into_iter()
        .flatten()
}

/// A quick part of them: every adversary, and one of so many other cases. All of them where
/// `BACKSTORY_ORACLE_ONLY` chooses some.
#[allow(dead_code)] // each test program takes what it needs of this file
pub fn one_of(step: usize) -> impl Iterator<Item = &'static Case> {
    let step = match std::env::var_os("BACKSTORY_ORACLE_ONLY") {
        Some(_) => 1,
        None => step,
    };
    let ordinary = all().take(all().count() - foes::FOES.len());
    ordinary.step_by(step).chain(foes::FOES)
}
