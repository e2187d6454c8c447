//! Contents are preserved in runs that start without the filter (`--guard=auto`). Here are all
//! tests of `preserve`, `own_links` and `overwritten`, and files that processes with the filter and
//! without share.

#![allow(clippy::unwrap_used, clippy::print_stderr)]
// Each of these files has its own copy of `harness`.
#![allow(clippy::duplicate_mod)]

mod harness;
#[path = "overwritten.rs"]
mod overwritten;
#[path = "own_links.rs"]
mod own_links;
#[path = "preserve.rs"]
mod preserve;

use harness::kept::kept;
use harness::{Run, text};
use std::collections::BTreeSet;
use std::fs;

const LOOK: &str = "sed -n 's/^Seccomp:.//p' /proc/self/status";
/// The same in Python, of the process itself.
const LOOK_AT_ITSELF: &str =
    "print(*[l[9:].strip() for l in open('/proc/self/status') if l.startswith('Seccomp:')])";

/// The answer of [`LOOK_AT_ITSELF`] with the filter.
const HAS_FILTER: &str = "2\n";

/// The Python of the distribution is mostly plain, others mostly are not.
fn python() -> &'static str {
    let own = "/usr/bin/python3";
    if fs::exists(own).unwrap() {
        own
    } else {
        "python3"
    }
}

/// False, with a line that says so, if programs of this machine need the filter.
fn starts_without_filter(test: &str) -> bool {
    let run = Run::new(&["--contents", "lazy"]);
    let plain = text(&run.shell(LOOK).stdout) == "0\n";
    if !plain {
        backstory_testkit::need::skipped(test, "the programs of this machine need the filter");
    }
    plain
}

/// Runs a script in which `~` is a static program. Asserts that it prints this, that the run is
/// complete, and that these contents were preserved.
#[track_caller]
fn keeps(script: &str, printed: &str, expected: &[&str]) {
    let Some(busybox) = backstory_testkit::busybox::busybox() else {
        return backstory_testkit::need::skipped("contents and filters", "needs a static busybox");
    };
    let run = Run::new(&["--contents", "lazy"]);
    for name in ["a", "b"] {
        fs::write(run.path(name), format!("{name}\n")).unwrap();
    }
    let script = script.replace('~', busybox.to_str().unwrap());
    let output = run.shell(&script);
    assert_eq!(text(&output.stderr), "", "{script}");
    assert_eq!(text(&output.stdout), printed, "{script}");
    let mut found: Vec<String> = kept(&run)
        .into_iter()
        .map(|k| text(&k.bytes.unwrap()))
        .collect();
    found.sort();
    assert_eq!(found, expected, "{script}");
    assert_eq!(run.reasons(), [""; 0], "{script}");
    run.assert_tidy();
}

#[test]
fn a_request_installs_no_filter() {
    if starts_without_filter("requests") {
        keeps(
            &format!("cat a; echo 1 >a; cat b; rm b; {LOOK}"),
            "a\nb\n0\n",
            &["a\n", "b\n"],
        );
    }
}

#[test]
fn readers_and_writers_with_the_filter_and_without_find_each_other() {
    if !starts_without_filter("readers and writers") {
        return;
    }
    keeps("~ cat a; echo 1 >a", "a\n", &["a\n"]);
    keeps("cat a; ~ sh -c 'echo 1 >a'", "a\n", &["a\n"]);
    keeps("~ cat a; ~ cp b a", "a\n", &["a\n"]);
    keeps("~ cat a; mv b a; cat a; ~ rm a", "a\nb\n", &["a\n", "b\n"]);
    keeps(
        "~ sh -c 'read x <a; echo $x'; (cd /; ~ true); echo 1 >>a",
        "a\n",
        &["a\n"],
    );
}

#[test]
fn a_program_and_a_script_that_were_executed_are_preserved() {
    if !starts_without_filter("executed files") {
        return;
    }
    let run = Run::new(&["--contents", "lazy"]);
    fs::copy("/usr/bin/env", run.path("program")).unwrap();
    let program = fs::read(run.path("program")).unwrap();
    let script = "#!/bin/sh\n./program echo 1\nrm program\necho 2 >script\n";
    backstory_testkit::program::write(&run.path("script"), script.as_bytes()).unwrap();
    let output = run.record(&["./script"]);
    assert_eq!(
        (text(&output.stdout).as_str(), text(&output.stderr).as_str()),
        ("1\n", "")
    );
    let found: Vec<Vec<u8>> = kept(&run).into_iter().map(|k| k.bytes.unwrap()).collect();
    assert!(found.contains(&program), "{}", found.len());
    assert!(
        found.contains(&script.as_bytes().to_vec()),
        "{}",
        found.len()
    );
    run.assert_tidy();
}

/// A process that often changes what was read gets the filter, since a request is then cheaper.
#[test]
fn a_process_that_changes_many_files_preserves_each() {
    if !starts_without_filter("many files") {
        return;
    }
    let run = Run::new(&["--contents", "lazy"]);
    let script = format!(
        "i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo $i >f$i; done; cat f* >/dev/null; {LOOK}\n\
         i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo new >f$i; done; {LOOK}"
    );
    let output = run.shell(&script);
    assert_eq!(text(&output.stdout), "0\n2\n");
    let mut found: Vec<u32> = kept(&run)
        .into_iter()
        .map(|k| text(&k.bytes.unwrap()).trim().parse().unwrap())
        .collect();
    found.sort_unstable();
    assert_eq!(found, (1..=100).collect::<Vec<u32>>());
    run.assert_tidy();
}

#[test]
fn a_directory_is_known_in_each_kind_of_child() {
    if !starts_without_filter("directories of children") {
        return;
    }
    // A shell forks, and a last command replaces it; `xargs` and `env` execute in their own ways.
    keeps(
        "mkdir d; ln a d/x; (cd d; cat x); cd d; cat x; env cat x; sh -c 'cat x'; exec sh -c 'echo 1 >x'",
        "a\na\na\na\n",
        &["a\n"],
    );
    if !backstory_testkit::need::needs("children of Python", &["python3"]) {
        return;
    }
    for way in [
        "subprocess.run(['cat','x'],cwd='d')",
        "subprocess.run(['cat','x'],cwd='d',close_fds=False)",
        "subprocess.run('cd d; cat x',shell=True)",
        "os.system('cd d; cat x')",
        "os.popen('cd d; cat x').read()",
        "os.chdir('d'); os.waitpid(os.posix_spawn('/bin/cat',['cat','x'],os.environ),0); os.chdir('..')",
    ] {
        let run = Run::new(&["--contents", "lazy"]);
        fs::create_dir(run.path("d")).unwrap();
        for name in ["a", "d/x", "d/y"] {
            fs::write(run.path(name), name).unwrap();
        }
        let program = format!(
            "import os,subprocess\n{way}\nopen('d/y','w').write('1')\nopen('d/x','w').write('1')"
        );
        let output = run.record(&[python(), "-c", &program]);
        assert_eq!(text(&output.stderr), "", "{way}");
        let found: Vec<String> = kept(&run)
            .into_iter()
            .map(|k| text(&k.bytes.unwrap()))
            .collect();
        assert_eq!(found, ["d/x"], "{way}");
    }
}

/// A child that was just forked reads by a relative path, while its parent is elsewhere already.
#[test]
fn a_child_in_the_background_reads_where_its_parent_was() {
    if !starts_without_filter("children in the background") {
        return;
    }
    for _ in 0..10 {
        keeps(
            "mkdir d; echo 1 >d/a; cat a & cd d; wait; echo 1 >../a",
            "a\n",
            &["a\n"],
        );
        keeps(
            "mkdir d; { read x; echo $x; } <a & cd d; wait; rm ../a",
            "a\n",
            &["a\n"],
        );
    }
}

/// The output of a command, and the preserved contents that existed before it.
fn kept_of_before(guard: &str, words: &[&str]) -> (String, BTreeSet<String>) {
    let run = Run::new(&["--contents", "lazy", "--guard", guard]);
    for name in ["a", "b", "c", "d"] {
        fs::write(run.path(name), format!("{name} before\n")).unwrap();
    }
    let output = run.record(words);
    assert_eq!(text(&output.stderr), "", "{guard}: {words:?}");
    assert_eq!(run.reasons(), [""; 0], "{guard}: {words:?}");
    let found = kept(&run).into_iter().map(|k| text(&k.bytes.unwrap()));
    let before = found.filter(|content| content.ends_with("before\n"));
    let before = before.collect();
    run.assert_tidy();
    (text(&output.stdout), before)
}

/// Asserts that exactly the contents of these files are preserved without the filter at the start,
/// and at least these with it. Returns what the command printed without.
#[track_caller]
fn keeps_the_same(words: &[&str], names: &str) -> String {
    let content = |name: char| format!("{name} before\n");
    let expected: BTreeSet<String> = names.chars().map(content).collect();
    let (_, with) = kept_of_before("on", words);
    let (printed, without) = kept_of_before("auto", words);
    // With the filter, a content is preserved as a precaution while calls wait to be logged.
    assert!(with.is_superset(&expected), "{words:?}: {with:?}");
    match printed.starts_with(HAS_FILTER) {
        true => assert!(without.is_superset(&expected), "{words:?}: {without:?}"),
        false => assert_eq!(without, expected, "{words:?}"),
    }
    printed
}

#[test]
fn plain_programs_keep_the_same_contents_as_with_the_filter() {
    if !starts_without_filter("the same contents") {
        return;
    }
    for (script, names) in [
        (
            "cat a >e; echo 1 >a; cp b a; rm b; sort -o c c; echo 1 >d",
            "abc",
        ),
        // A file that gets another name counts as read.
        (
            "mv a e; cat e >f; echo 1 >e; cat b >>f; mv c b; rm b; rm d",
            "abc",
        ),
        (
            "ln -s a l; cat l >e; rm l; echo 1 >a; read x <b; echo $x >b; rm c",
            "ab",
        ),
        (
            "exec 3<a; cat <&3 >e; rm a; { rm b; cat <&4 >e; } 4<b; echo 1 >c",
            "ab",
        ),
        ("tar cf e a b; rm a b; tar xf e; rm e c", "ab"),
        (
            "cat a b >e; tr a-z A-Z <e | tee a >b; head -c 1 c >f; truncate -s 0 c",
            "abc",
        ),
    ] {
        keeps_the_same(&["sh", "-c", script], names);
    }
}

#[test]
fn a_killed_program_keeps_the_same_contents_as_with_the_filter() {
    if !starts_without_filter("killed programs") {
        return;
    }
    for (script, names) in [
        ("sh -c 'read x <a; kill -9 $$'; echo 1 >a; echo 1 >b", "a"),
        (
            "sh -c 'exec 3>>a; kill -9 $$'; cat b >e; sh -c 'echo 1 >b; kill -9 $$'; rm b c",
            "ab",
        ),
    ] {
        // The message of the shell about the killed program is not part of this.
        let quiet = format!("exec 2>/dev/null; {script}");
        keeps_the_same(&["sh", "-c", &quiet], names);
    }
    if !backstory_testkit::need::needs("a killed child that nobody waits for", &["python3"]) {
        return;
    }
    let program = format!(
        "import os,signal,time\n\
         {LOOK_AT_ITSELF}\n\
         signal.signal(signal.SIGCHLD,signal.SIG_IGN)\n\
         p=os.fork()\n\
         if not p: open('a').read(); os.kill(os.getpid(),9)\n\
         try:\n\
         \x20   while True: os.kill(p,0); time.sleep(.001)\n\
         except ProcessLookupError: pass\n\
         open('a','w').write('1')\n\
         open('b','w').write('1')"
    );
    keeps_the_same(&[python(), "-c", &program], "a");
}

/// Python loads a library that is plain.
const PLAIN_LOAD: &str = "import ctypes; ctypes.CDLL('libm.so.6')";

#[test]
fn a_program_that_stops_being_plain_keeps_the_same_contents_as_with_the_filter() {
    if !starts_without_filter("programs that stop being plain")
        || !backstory_testkit::need::needs("a program that stops being plain", &["python3"])
    {
        return;
    }
    for stop in [
        // A library that is found before the recorder (`RTLD_DEEPBIND`).
        "import ctypes; ctypes.CDLL('libm.so.6', mode=8)",
        // This one is plain.
        PLAIN_LOAD,
        "import mmap; mmap.mmap(-1,4096,prot=mmap.PROT_READ|mmap.PROT_EXEC)",
        // libcrypto is not plain.
        "import hashlib; hashlib.sha256(b'')",
        // A process with threads gets the filter at its next request.
        "import threading; t=threading.Thread(target=lambda: open('c').read()); t.start(); t.join()",
        "import resource; resource.setrlimit(resource.RLIMIT_CORE,(0,0))",
    ] {
        let program = format!(
            "import os\n\
             for name in 'ab': open(name).read()\n\
             open('a','w').write('1')\n\
             {LOOK_AT_ITSELF}\n\
             {stop}\n\
             open('b','w').write('1')\n\
             open('c').read()\n\
             os.unlink('c')\n\
             {LOOK_AT_ITSELF}\n\
             open('d','w').write('1')\n"
        );
        let printed = keeps_the_same(&[python(), "-c", &program], "abc");
        if printed == "2\n2\n" {
            return backstory_testkit::need::skipped(
                "programs that stop being plain",
                "Python needs the filter from its start",
            );
        }
        let wanted = match stop == PLAIN_LOAD {
            true => "0\n0\n",
            false => "0\n2\n",
        };
        assert_eq!(printed, wanted, "{stop}");
    }
}
