//! Every byte that strace saw enter or leave a process is in the deep log, in the same order.

use crate::deep::strace_oracle::{self, ENTERS, TracedCall};
use crate::harness::Run;
use backstory_abi::deep::{DESCRIPTOR, NO_NAME};
use backstory_deep::call_numbers::OPENS;
use backstory_deep::{Call, Content, DeepLog, DeepProcess};
use backstory_testkit::need::{needs, skipped};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Records a command under strace. Returns the deep log and strace's log.
fn traced(run: &Run, words: &[&str], input: Stdio) -> (DeepLog, PathBuf) {
    let trace = run.path("trace");
    let recording = run.command(words);
    let mut command = Command::new("strace");
    command
        .args(["-f", "-xx", "-s", "4000000", "-e"])
        .arg(strace_oracle::selection())
        .arg("-o")
        .arg(&trace)
        .arg(recording.get_program())
        .args(recording.get_args())
        .current_dir(run.dir.path())
        .stdin(input);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    run.log();
    (deep_log(run), trace)
}

pub fn deep_log(run: &Run) -> DeepLog {
    DeepLog::open(run.path(&format!("{}.deep", run.id))).unwrap()
}

/// The calls but those of the loader, and of the recorder, which looks at programs before they are
/// executed. The loader's begin with the head of a library, and go on with `pread64`.
fn without_loader(calls: &[TracedCall]) -> Vec<TracedCall> {
    let mut library = None;
    let mut kept = Vec::new();
    for call in calls {
        if call.name == "read"
            && call.bytes.starts_with(b"\x7fELF")
            && [832, 1024].contains(&call.result)
        {
            library = Some(call.fd);
        } else if call.name == "pread64" && library == Some(call.fd) {
        } else {
            library = None;
            kept.push(call.clone());
        }
    }
    kept
}

/// The calls of a thread that moved bytes, as strace shows them.
fn data_calls(log: &DeepLog, epochs: &[u64], tid: u32) -> Vec<Call> {
    let all = epochs
        .iter()
        .flat_map(|epoch| log.thread_calls(*epoch, tid));
    all.filter(|call| call.result > 0 && !call.is_fact())
        .filter(|call| call.content_out().is_some() || enters(call))
        .collect()
}

fn enters(call: &Call) -> bool {
    const NUMBERS: [u16; 7] = [0, 17, 19, 295, 45, 47, 318];
    NUMBERS.contains(&call.number) && call.content_in().is_some()
}

/// Compares every deep process with strace's log. Returns the number of compared calls.
pub fn assert_same(log: &DeepLog, trace: &Path) -> usize {
    let traced = strace_oracle::read(trace);
    assert_eq!(log.damage(), Default::default());
    assert_eq!(log.end().unwrap().records_lost, 0);
    let mut tids: Vec<u32> = log
        .processes()
        .iter()
        .flat_map(|p| p.tids.clone())
        .collect();
    tids.sort_unstable();
    tids.dedup();
    let mut compared = 0;
    for tid in tids {
        let of_it = log.processes().iter().filter(|p| p.tids.contains(&tid));
        let epochs: Vec<u64> = of_it.map(|p| p.epoch).collect();
        let mut own = data_calls(log, &epochs, tid);
        let mut expected = without_loader(traced.get(&tid).map_or(&[][..], Vec::as_slice));
        // The record of an interrupted call follows those of the handler.
        own.sort_by_key(|call| call.in_handler);
        expected.sort_by_key(|call| call.in_handler);
        for (index, (call, wanted)) in own.iter().zip(&expected).enumerate() {
            let content = match ENTERS.contains(&&*wanted.name) {
                true => call.content_in(),
                false => call.content_out(),
            };
            let content = content.unwrap_or_else(|| {
                panic!(
                    "thread {tid}, call {index}: {} fd {}\nstrace: {} fd {}",
                    call.number, call.fd, wanted.name, wanted.fd
                )
            });
            if let Content::Bytes(bytes) = content {
                let differ = bytes.iter().zip(&wanted.bytes).position(|(a, b)| a != b);
                assert_eq!((bytes.len(), differ), (wanted.bytes.len(), None), "{index}");
            }
            assert!(
                call.fd == wanted.fd && content.is(&wanted.bytes),
                "thread {tid}, call {index}: {} fd {} = {}\nstrace: {} fd {} = {} {:?}",
                call.number,
                call.fd,
                call.result,
                wanted.name,
                wanted.fd,
                wanted.result,
                String::from_utf8_lossy(&wanted.bytes[..wanted.bytes.len().min(80)])
            );
        }
        assert_eq!(
            own.len(),
            expected.len(),
            "thread {tid}: {:?}\nstrace: {:?}",
            own.iter()
                .map(|c| (c.number, c.fd, c.result))
                .collect::<Vec<_>>(),
            expected
                .iter()
                .map(|c| (&c.name, c.fd, c.result))
                .collect::<Vec<_>>()
        );
        compared += own.len();
    }
    compared
}

fn agrees(what: &str, tools: &[&str], words: &[&str], least: usize) {
    let tools = [&["strace"], tools].concat();
    if !needs(what, &tools) {
        return;
    }
    for options in [
        &["--deep", "full"][..],
        &["--deep", "digest", "--contents", "lazy"],
    ] {
        let run = Run::new(options);
        let (log, trace) = traced(&run, words, Stdio::null());
        let compared = assert_same(&log, &trace);
        assert!(compared >= least, "{what}: only {compared} calls");
    }
}

#[test]
fn a_pipeline_of_shell_tools_agrees_with_strace() {
    let script = "seq 1 20000 >in; cat in | sort -r | tee out | wc -l; cat <in >copy; head -c 100000 /dev/zero | cat >/dev/null";
    agrees("shell tools", &["sort"], &["sh", "-c", script], 20);
}

#[test]
fn python_agrees_with_strace() {
    let script = "import os,subprocess,random\nopen('a','w').write('x'*300000)\nprint(len(open('a').read()), os.urandom(20), random.random())\nprint(subprocess.run(['cat','a'],capture_output=True).stdout[:10])";
    agrees(
        "python",
        &["/usr/bin/python3"],
        &["/usr/bin/python3", "-c", script],
        30,
    );
}

#[test]
fn curl_and_its_server_agree_with_strace() {
    // libc's own resolver is not asked: the address is a number.
    let script = "/usr/bin/python3 -u -c '
import http.server, os, threading
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.path.encode() * 30000
        self.send_response(200); self.send_header(\"Content-Length\", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
class S(http.server.ThreadingHTTPServer):
    daemon_threads = False
s = S((\"127.0.0.1\", 0), H)
open(\"port.new\", \"w\").write(str(s.server_port)); os.rename(\"port.new\", \"port\")
for _ in range(3): s.handle_request()
s.server_close()
' & while ! test -e port; do sleep 0.05; done
for i in 1 2 3; do curl -s http://127.0.0.1:$(cat port)/page$i >got$i; done; wait; cat got1 | wc -c";
    let tools = ["curl", "/usr/bin/python3"];
    agrees("curl and a server", &tools, &["sh", "-c", script], 30);
}

#[test]
fn descriptors_have_the_names_that_proc_has() {
    if !needs("names of descriptors", &["/usr/bin/python3"]) {
        return;
    }
    let script = "
import os, socket
ends = socket.socketpair(); pair = [end.fileno() for end in ends]
listener = socket.socket(socket.AF_UNIX); listener.bind('named'); listener.listen()
client = socket.socket(socket.AF_UNIX); client.connect('named')
server = listener.accept()[0]
os.mkfifo('fifo'); fifo = os.open('fifo', os.O_RDWR)
file = os.open('file', os.O_RDWR | os.O_CREAT)
pipe = os.pipe()
for to in [pair[0], client.fileno(), server.fileno(), fifo, file, pipe[1]]: os.write(to, b'x')
for of in [pair[1], pipe[0]]: os.read(of, 1)
used = [*pair, client.fileno(), server.fileno(), fifo, file, *pipe]
print(*[os.readlink(f'/proc/self/fd/{fd}') for fd in used], sep='\\n')";
    let run = Run::new(&["--deep", "full"]);
    let printed = run.record(&["/usr/bin/python3", "-c", script]);
    assert!(printed.status.success(), "{printed:?}");
    run.log();
    let log = deep_log(&run);
    let calls = log
        .processes()
        .iter()
        .flat_map(|process| {
            log.thread_calls(process.epoch, process.tids[0])
                .collect::<Vec<_>>()
        })
        .collect::<Vec<_>>();
    let named: Vec<&[u8]> = calls
        .iter()
        .filter(|call| call.number == DESCRIPTOR)
        .filter_map(Call::path)
        .collect();
    let links: Vec<&[u8]> = printed.stdout.trim_ascii().split(|&b| b == b'\n').collect();
    assert_eq!(links.len(), 8, "{printed:?}");
    for link in links {
        let link_text = String::from_utf8_lossy(link);
        assert!(named.contains(&link), "{link_text} has no descriptor");
    }
}

/// The calls of the first thread of each process.
fn first_threads(log: &DeepLog) -> Vec<Vec<Call>> {
    let calls = |process: &DeepProcess| log.thread_calls(process.epoch, process.tids[0]).collect();
    log.processes().iter().map(calls).collect()
}

#[test]
fn a_file_that_is_opened_again_has_the_name_by_which_it_was_opened() {
    if !needs("Python", &["/usr/bin/python3"]) {
        return;
    }
    // Each line: the link of a descriptor after a read through it.
    let script = "import os, sys
top = os.path.realpath('.')
here = top + '/here'; os.mkdir(here); name = here + '/file'
def use(fd):
    os.read(fd, 1); print(os.readlink(f'/proc/self/fd/{fd}'), flush=True)
def fresh(path=name):
    fd = os.open(path, os.O_RDONLY); use(fd); return fd
for text in 'ab':
    with open(name + text, 'w') as to: to.write(text * 9)
    os.rename(name + text, name); os.close(fresh()); os.close(fresh())
os.symlink(name, top + '/link')
for path in [top + '/link', 'here/file', here + '//file', name, top + '/link']: os.close(fresh(path))
first = os.open(name, os.O_RDONLY); copy = os.dup(first); use(copy); use(first); os.close(copy)
pid = os.open(name, os.O_RDONLY)
if os.fork() == 0: use(pid); os._exit(0)
os.wait(); os.close(pid)
os.rename(here, top + '/there'); os.symlink(top + '/there', here); other = os.open(top + '/there/file', os.O_RDONLY)
use(other); os.close(other)
gone = os.open(top + '/there/file', os.O_RDONLY); os.unlink(top + '/there/file'); use(gone)";
    let run = Run::new(&["--deep", "full"]);
    let printed = run.record(&["/usr/bin/python3", "-c", script]);
    assert!(printed.status.success(), "{printed:?}");
    run.log();
    let log = deep_log(&run);
    let mut names: Vec<(String, bool)> = Vec::new();
    for calls in first_threads(&log) {
        let mut opened = HashMap::new();
        for call in &calls {
            if OPENS.contains(&call.number) {
                let path = call.path().unwrap_or_default().to_vec();
                opened.insert(call.result, path);
            } else if call.number == DESCRIPTOR && call.result & 0o170_000 == 0o100_000 {
                let path = call.path().map(<[u8]>::to_vec);
                let was_asked = path.is_some();
                let name = path.unwrap_or_else(|| opened[&i64::from(call.fd)].clone());
                names.push((String::from_utf8_lossy(&name).into_owned(), was_asked));
            }
        }
    }
    names.retain(|(name, _)| name.contains("here/file") && !name.ends_with(['a', 'b']));
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let wanted: Vec<&str> = printed.lines().collect();
    // The child's name comes last: it is another process.
    let child = wanted.len() - 3;
    let order = (0..wanted.len())
        .filter(|line| *line != child)
        .chain([child]);
    let wanted: Vec<&str> = order.map(|line| wanted[line]).collect();
    let found: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(found, wanted);
    // Known names: the second ones of `a` and `b`, the last but one of the paths, and `first`.
    let known: Vec<usize> = (0..names.len()).filter(|n| !names[*n].1).collect();
    assert_eq!(known, [1, 3, 7, 10], "{names:?}");
}

#[test]
fn a_descriptor_for_which_the_kernel_gives_no_name_has_not_the_one_of_an_earlier_file() {
    if !needs("a root without /proc", &["/usr/bin/python3", "unshare"]) {
        return;
    }
    let namespaces = Command::new("unshare").args(["-r", "true"]).status();
    if !namespaces.is_ok_and(|status| status.success()) {
        return skipped("a root without /proc", "there are no user namespaces");
    }
    let script = "import os
for name in 'ab': open(name, 'w').write('text')
a = os.open('a', os.O_RDONLY); os.read(a, 1)
b = os.open('b', os.O_RDONLY)
os.mkdir('root'); os.chroot('root')
os.dup2(b, a); os.read(a, 1)";
    let run = Run::new(&["--deep", "full"]);
    let printed = run.record(&["unshare", "-r", "/usr/bin/python3", "-c", script]);
    assert!(printed.status.success(), "{printed:?}");
    run.log();
    let calls = first_threads(&deep_log(&run)).concat();
    let mut described = calls.iter().rev();
    let last = described.find(|call| call.number == DESCRIPTOR).unwrap();
    assert_eq!(last.path(), Some(&[NO_NAME][..]), "{last:?}");
}

/// Compiles a C program next to the test.
pub fn compiled(run_of: &str, source: &str) -> tempfile::TempDir {
    compiled_with("cc", run_of, source)
}

/// The same by this compiler.
pub fn compiled_with(compiler: &str, run_of: &str, source: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(format!("{run_of}.c"));
    std::fs::write(&path, source).unwrap();
    let built = Command::new(compiler)
        .args(["-O1", "-pthread", "-o"])
        .arg(dir.path().join(run_of))
        .arg(&path)
        .status();
    assert!(built.unwrap().success());
    dir
}

#[test]
fn threads_agree_with_strace() {
    let dir = compiled("threads", include_str!("../programs/deep_threads.c"));
    let program = dir.path().join("threads");
    agrees("threads", &["cc"], &[program.to_str().unwrap()], 1000);
}

#[test]
fn a_server_that_forks_agrees_with_strace() {
    let dir = compiled("forks", include_str!("../programs/deep_forks.c"));
    let program = dir.path().join("forks");
    agrees(
        "a forking server",
        &["cc"],
        &[program.to_str().unwrap()],
        60,
    );
}

#[test]
fn a_large_read_that_a_signal_handler_interrupts_is_whole() {
    let dir = compiled("signals", include_str!("../programs/deep_signals.c"));
    let program = dir.path().join("signals");
    agrees("signals", &["cc"], &[program.to_str().unwrap()], 100);
}

#[test]
fn sqlite_agrees_with_strace() {
    let script = "sqlite3 t.db 'create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<5000) insert into t select i, hex(randomblob(20)) from n; select count(*), sum(a) from t;'; sqlite3 t.db 'select * from t' | tail -n 3";
    agrees("sqlite3", &["sqlite3"], &["sh", "-c", script], 20);
}

#[test]
fn a_wait_is_recorded_with_the_timeout_that_the_program_gave() {
    if !needs("a program that waits", &["cc"]) {
        return;
    }
    let dir = compiled("timeouts", include_str!("../programs/deep_timeouts.c"));
    let program = dir.path().join("timeouts");
    let run = Run::new(&["--deep", "full"]);
    assert!(run.record(&[program.to_str().unwrap()]).status.success());
    run.log();
    let log = deep_log(&run);
    let calls = log.process_calls(log.processes()[0].epoch);
    let waits = calls.filter(|call| matches!(call.number, 7 | 23));
    let timeouts: Vec<i64> = waits.map(|call| call.b as i64).collect();
    assert_eq!(timeouts, [2_000_000, 3_000_000, i64::MAX]);
}

#[test]
fn a_wait_for_several_descriptors_has_none_of_its_own_in_the_log() {
    if !needs("a program that waits", &["cc"]) {
        return;
    }
    let dir = compiled("timeouts", include_str!("../programs/deep_timeouts.c"));
    let program = dir.path().join("timeouts");
    let run = Run::new(&["--deep", "full"]);
    assert!(run.record(&[program.to_str().unwrap()]).status.success());
    run.log();
    let log = deep_log(&run);
    let calls = log.process_calls(log.processes()[0].epoch);
    let waits = calls.filter(|call| matches!(call.number, 7 | 23));
    let waits: Vec<(u16, i32)> = waits.map(|call| (call.number, call.fd)).collect();
    assert_eq!(waits, [(7, -1), (23, -1), (7, -1)]);
}

#[test]
fn a_descriptor_that_came_with_a_message_is_described_once() {
    if !needs("a program that passes descriptors", &["python3"]) {
        return;
    }
    let script = "import os, socket\n\
        one, two = socket.socketpair()\n\
        sent = os.open('/etc/passwd', os.O_RDONLY)\n\
        socket.send_fds(one, [b'x'], [sent])\n\
        _, came, _, _ = socket.recv_fds(two, 1, 1)\n\
        os.read(came[0], 1)\n";
    let run = Run::new(&["--deep", "full"]);
    let words = ["/usr/bin/python3", "-S", "-c", script];
    assert!(run.record(&words).status.success());
    run.log();
    let log = deep_log(&run);
    let calls: Vec<_> = log.process_calls(log.processes()[0].epoch).collect();
    let received = calls.iter().position(|call| call.number == 47).unwrap();
    let behind = &calls[received..];
    let read = behind.iter().find(|call| call.number == 0).unwrap();
    let facts = behind.iter().filter(|call| call.number == DESCRIPTOR);
    let facts = facts.filter(|call| call.fd == read.fd);
    assert_eq!(facts.count(), 1, "{behind:?}");
}
