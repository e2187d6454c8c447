//! `record --guard=auto`: a process gets the guard's filter before something that its recorder
//! would not see, and no sooner.

use super::Place;
use backstory_testkit::busybox::busybox;
use backstory_testkit::{need, program};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) const AUTO: [&str; 4] = ["record", "--guard=auto", "--contents=off", "--"];

/// Records a command, and returns its output. The run must be complete.
pub(super) fn recorded(place: &Place, command: &[&str]) -> String {
    let answer = place.run(&[&AUTO[..], command].concat());
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{command:?}");
    place.finalized();
    let shown = place.json(&["show", "--json"]);
    assert_eq!(shown["complete"], true, "{command:?}: {shown}");
    answer.out
}

/// A place for these tests. `None`, with a line that says so, if programs of this machine are not
/// plain, or have another filter already.
pub(super) fn place(test: &str) -> Option<Place> {
    let place = Place::new();
    let out = recorded(
        &place,
        &["sed", "-n", "s/^Seccomp:.//p", "/proc/self/status"],
    );
    if out != "0\n" {
        need::skipped(test, "the programs of this machine need the filter");
        return None;
    }
    Some(place)
}

/// The fixture `needs_filter`, as a file of this place alone. A link of it that another test makes
/// would change the state by which a run knows it.
fn needs_filter(place: &Place) -> Option<String> {
    let linked = place.fixture("needs_filter")?;
    let own = place.path("needs-filter");
    program::copy(linked.as_ref(), own.as_ref()).unwrap();
    Some(own)
}

#[test]
fn a_plain_command_runs_without_the_filter_and_is_recorded_completely() {
    let Some(place) = place("a plain command") else {
        return;
    };
    place.write("a", "1\n");
    let line = "cat a >b; (cd /; ls >/dev/null); sed -n 's/^Seccomp:.//p' /proc/self/status; cat none 2>/dev/null; exit 0";
    assert_eq!(recorded(&place, &["sh", "-c", line]), "0\n");
    let files = accesses(&place);
    let has = |path: &str, access: &str| files.get(path).is_some_and(|all| all.contains(access));
    assert!(
        has(&place.path("a"), "read") && has(&place.path("b"), "write"),
        "{files:?}"
    );
    assert!(
        has("/etc/ld.so.cache", "read") && has(&place.path("none"), "missing"),
        "{files:?}"
    );
    assert!(has("/", "dir"), "{files:?}");
    let libc = |path: &&String| path.contains("/libc.so.6");
    assert!(files.keys().any(|path| libc(&path)), "{files:?}");
    let programs = processes(&place);
    for program in ["cat a", "ls", "cat none"] {
        assert!(
            programs.keys().any(|one| one.starts_with(program)),
            "{programs:?}"
        );
    }
}

#[test]
fn a_program_that_is_not_plain_gets_the_filter_and_its_caller_does_not() {
    let Some(place) = place("a static program") else {
        return;
    };
    let Some(busybox) = busybox().and_then(std::path::Path::to_str) else {
        return need::skipped("a static program", "needs a static busybox");
    };
    place.write("a", "1\n");
    let look = "-n 's/^Seccomp:.//p' /proc/self/status";
    let line = format!(
        "sed {look}; {busybox} sed {look}; {busybox} cp a b; {busybox} sh -c 'sed {look}; cat b >c'; sed {look}"
    );
    assert_eq!(recorded(&place, &["sh", "-c", &line]), "0\n2\n2\n0\n");
    let files = accesses(&place);
    for (path, access) in [("a", "read"), ("b", "write"), ("b", "read"), ("c", "write")] {
        assert!(
            files[&place.path(path)].contains(access),
            "{path} {access}: {files:?}"
        );
    }
    let line = format!("LD_BIND_NOW=1 sed {look}; exec {busybox} sed {look}");
    assert_eq!(recorded(&place, &["sh", "-c", &line]), "2\n2\n");
}

#[test]
fn a_process_gets_the_filter_for_all_threads_before_it_needs_it() {
    let Some(place) = place("ways to need the filter") else {
        return;
    };
    let Some(program) = needs_filter(&place) else {
        return;
    };
    place.write_program("not-a-program", "text");
    let without = [
        "nothing",
        "gettid",
        "vfork",
        "vfork-static",
        "dlopen",
        "dlsym-recorder",
        "iconv",
        "unwind",
    ];
    for what in without {
        assert_eq!(recorded(&place, &[&program, what]), "00\n", "{what}");
    }
    for what in [
        "mprotect",
        "mmap",
        "dlopen-none",
        "deepbind",
        "dlsym",
        "dlsym-libc",
        "thread",
        "setrlimit",
        "tmpfile",
        "ftw",
        "syscall",
        "unshare",
        "clone",
        "clone-descriptors",
        "setuid",
        "personality",
        "ptrace",
        "seccomp",
    ] {
        assert_eq!(recorded(&place, &[&program, what]), "02\n", "{what}");
    }
}

/// Libraries that a program loads: by file, source, and further options of the compiler.
const LIBRARIES: [(&str, &str, &[&str]); 6] = [
    (
        "plain.so",
        "#include <stdio.h>\n\
         __attribute__((constructor)) static void f(void) { fclose(fopen(\"by-plain\", \"w\")); }",
        &[],
    ),
    (
        "raw.so",
        // `creat` and `close`
        "static long call(long number, const void *a, long b) { \
         __asm__ volatile(\"syscall\" : \"+a\"(number) : \"D\"(a), \"S\"(b) \
         : \"rcx\", \"r11\", \"memory\"); return number; }\n\
         __attribute__((constructor)) static void f(void) { \
         call(3, (void *)call(85, \"by-raw\", 0600), 0); }",
        &[],
    ),
    (
        "swaps.so",
        "#include <stdio.h>\n\
         __attribute__((constructor)) static void f(void) { rename(\"raw.so\", \"swaps.so\"); }",
        &[],
    ),
    (
        "leaves.so",
        "#include <unistd.h>\n\
         __attribute__((constructor)) static void f(void) { execl(\"/bin/true\", \"true\", NULL); }",
        &["-Wl,--no-as-needed", "-lm"],
    ),
    (
        "fails.so",
        "void nowhere(void); void f(void) { nowhere(); }",
        &["-Wl,--no-as-needed", "-lm"],
    ),
    (
        "needs.so",
        "double cos(double); double f(double a) { return cos(a); }",
        &["-lm", "-fno-builtin"],
    ),
];

/// A place with these libraries, and the fixture that loads them. `None`, with a line that says so:
/// the machine lacks something for this test.
fn place_with_libraries(test: &str) -> Option<(Place, String)> {
    let place = place(test)?;
    let program = needs_filter(&place)?;
    if !need::needs(test, &["cc"]) {
        return None;
    }
    for (name, text, options) in LIBRARIES {
        let source = format!("{name}.c");
        place.write(&source, text);
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o", &place.path(name)]);
        compiler.arg(place.path(&source)).args(options);
        assert!(compiler.status().unwrap().success(), "{name}");
    }
    Some((place, program))
}

/// Loads a library after which the run is not complete. Returns what the program printed.
fn loaded_in_an_incomplete_run(place: &Place, program: &str, library: &str) -> String {
    let line = format!("LIBRARY={} {program} load", place.path(library));
    let answer = place.run(&[&AUTO[..], &["sh", "-c", &line]].concat());
    assert_eq!(answer.status, 0, "{answer:?}");
    place.finalized();
    let shown = place.json(&["show", "--json"]);
    assert_eq!(shown["complete"], false, "{shown}");
    answer.out
}

#[test]
fn a_library_that_is_loaded_is_recorded_with_the_filter_only_if_it_is_not_plain() {
    let Some((place, program)) = place_with_libraries("libraries that a program loads") else {
        return;
    };
    for (library, mode) in [("plain", "00"), ("needs", "00"), ("raw", "02")] {
        let path = place.path(&format!("{library}.so"));
        // The second program finds the verdict in the table.
        let line = format!("for i in 1 2; do LIBRARY={path} {program} load; done");
        let out = recorded(&place, &["sh", "-c", &line]);
        assert_eq!(out, format!("{mode}\n{mode}\n"), "{library}");
        let files = accesses(&place);
        assert!(files[&path].contains("read"), "{library}: {files:?}");
        let made = place.path(&format!("by-{library}"));
        let is_made = files.get(&made).is_some_and(|all| all.contains("write"));
        assert_eq!(is_made, library != "needs", "{library}: {files:?}");
        let needed = files.keys().any(|path| path.ends_with("/libm.so.6"));
        assert_eq!(needed, library == "needs", "{library}: {files:?}");
    }
}

#[test]
fn a_library_that_was_replaced_while_it_was_loaded_makes_the_run_incomplete() {
    let Some((place, program)) = place_with_libraries("a replaced library") else {
        return;
    };
    let printed = loaded_in_an_incomplete_run(&place, &program, "swaps.so");
    assert_eq!(printed, "02\n");
}

/// Which libraries the loader took is not known then.
#[test]
fn a_library_that_ends_the_program_while_it_is_loaded_makes_the_run_incomplete() {
    let Some((place, program)) = place_with_libraries("a library that executes a program") else {
        return;
    };
    let printed = loaded_in_an_incomplete_run(&place, &program, "leaves.so");
    assert_eq!(printed, "");
}

/// Each line loads a library in another way, or fails to.
#[test]
fn loads_are_recorded_as_with_the_filter_and_report_the_same_errors() {
    let Some((place, program)) = place_with_libraries("ways to load a library") else {
        return;
    };
    for library in [
        "$PWD/plain.so",
        "$PWD/needs.so",
        "$PWD/fails.so",
        "$PWD/raw.so",
        "$PWD/../work/plain.so",
        "./plain.so",
        "$PWD/none.so",
        "$PWD/plain.so.c",
        "$PWD",
        "libm.so.6",
        "libc.so.6",
        "libnosuchlibrary.so.1",
    ] {
        let from = place.path("");
        let text = format!("cp {from}*.so {from}*.c .; LIBRARY={library} {program} load >said");
        let (on, auto) = (outcome(&text, "--guard=on"), outcome(&text, "--guard=auto"));
        assert_eq!(on, auto, "{library}");
        let load = format!("LIBRARY={library} {program} load");
        let native = place.shell(&load);
        let recorded = recorded(&place, &["sh", "-c", &load]);
        let without_mode = |text: &str| text.trim_end_matches(['0', '2', '\n']).to_owned();
        assert_eq!(
            without_mode(&native.out),
            without_mode(&recorded),
            "{library}"
        );
    }
    for what in ["dlsym-libc", "iconv", "unwind"] {
        let text = format!("{program} {what} >/dev/null; getent passwd root; id -un");
        let (on, auto) = (outcome(&text, "--guard=on"), outcome(&text, "--guard=auto"));
        assert_eq!(on, auto, "{what}");
    }
}

/// In the arena, the program overwrites an instruction of the filter. Then it loads a library.
#[test]
fn forged_and_damaged_instructions_in_the_arena_are_not_installed() {
    let Some(place) = place("forged instructions") else {
        return;
    };
    let Some(program) = needs_filter(&place) else {
        return;
    };
    for what in ["forged", "damaged"] {
        assert_eq!(recorded(&place, &[&program, what]), "02\n", "{what}");
    }
}

/// Locks a program, and executes it in its own place.
const LOCKER: &str = r#"
import fcntl, os
file = open("program"); os.set_inheritable(file.fileno(), True)
fcntl.lockf(file, fcntl.LOCK_SH)
os.execv("program", ["sh", "-c", "python3 look.py; :"])
"#;

/// Says whether another process holds a lock on the program.
const LOOKER: &str = r#"
import fcntl, struct
wanted = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)
found = fcntl.fcntl(open("program"), fcntl.F_GETLK, wanted)
print("free" if struct.unpack("hhqqi", found)[0] == fcntl.F_UNLCK else "locked")
"#;

#[test]
fn a_process_keeps_its_record_lock_on_the_program_that_it_executes() {
    if !need::needs("a lock on a program", &["python3"]) {
        return;
    }
    let place = Place::new();
    let program = place.work().join("program");
    backstory_testkit::program::copy("/bin/sh".as_ref(), &program).unwrap();
    place.write("locker.py", LOCKER);
    place.write("look.py", LOOKER);
    assert_eq!(place.shell("python3 locker.py").out, "locked\n");
    for guard in ["--guard=on", "--guard=auto", "--guard=off"] {
        let words = ["record", guard, "--contents=off", "--", "python3"];
        let answer = place.run(&[&words[..], &["locker.py"]].concat());
        assert_eq!(answer.out, "locked\n", "{guard}: {answer:?}");
    }
}

/// The certain accesses of each file, by path. Those that are only possible differ between two runs
/// of one mode, too: they depend on the moment at which the guard looks.
fn accesses(place: &Place) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::<String, BTreeSet<String>>::new();
    let files = place.json(&["files", "--json"]);
    let files = files.as_array().unwrap().iter();
    for file in files.filter(|file| file["certainty"] != "possible") {
        let words = file["access"].as_array().unwrap().iter();
        let words = words.map(|word| word.as_str().unwrap().to_owned());
        let path = file["path"].as_str().unwrap().to_owned();
        found.entry(path).or_default().extend(words);
    }
    found
}

/// The programs that ran, by arguments and ends, and how often.
fn processes(place: &Place) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let processes = place.json(&["processes", "--json"]);
    for process in processes.as_array().unwrap() {
        let words = process["argv"].as_array().cloned().unwrap_or_default();
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        let end = (&process["exit"], &process["signal"]);
        *found
            .entry(format!("{} -> {end:?}", words.join(" ")))
            .or_default() += 1;
    }
    found
}

/// A generator of numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % end
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Steps of the generated programs. `@` and `%` stand for files, `~` for a static program.
const STEPS: &[&str] = &[
    "cat @ >%",
    "cp @ %",
    "cp -p @ %",
    "mv @ %",
    "ln -sf @ %",
    "ln -f @ %",
    "rm -f @",
    "touch %",
    "mkdir -p d/@; cat @ >d/@/x",
    "sort @ | uniq -c >%",
    "sed -i s/1/2/ @",
    "awk '{ print $1 >>\"%\" }' @",
    "head -c 3 @ | tee % >/dev/null",
    "(cd d && ls -l >../%)",
    "find . -name @ -newer %",
    "grep -r 1 . >/dev/null",
    "tar cf % @ d; tar tf % >/dev/null",
    "test -e @ && chmod 600 @",
    "perl -e 'open F, \">>\", \"%\"; print F 1; close F; unlink \"@\"'",
    "perl -e 'exec \"cp\", \"@\", \"%\"'",
    "perl -MPOSIX -e 'mkfifo \"p\", 0600; unlink \"p\"'",
    "python3 -c 'import os; open(\"%\", \"w\").write(open(\"@\").read())'",
    "python3 -c 'import subprocess; subprocess.run([\"cat\", \"@\"])'",
    "~ cat @ >%",
    "~ cp @ %",
    "~ sh -c 'cat @; ~ touch %'",
    "env -i /bin/cat @",
    "env -i ~ cat @",
    "env -u LD_PRELOAD cp @ %",
    "LD_BIND_NOW=1 cp @ %",
    "LC_ALL=C sort @ %",
    "timeout 900 cat @",
    "echo @ % | xargs cat",
    "printf '%: @\\n\\tcp @ %\\n' | make -s -f -",
    "nice cat @",
    "./script @ %",
    "./nothing @",
    "sh -c 'exec cat @'",
    "cat @ & wait",
    "(trap '' TERM; cat @) | cat",
    "bash -c 'shopt -s nullglob; for f in *; do [ -f $f ] && read x <$f; done; :'",
    "id -un; ls -l @",
    "exec 5>%; echo 1 >&5; exec 5>&-",
    "ulimit -c 0; cat @",
    "install -m 600 @ %",
    "diff @ %",
    "split -l 1 @ part",
    "iconv -f UTF-8 -t UTF-16 @ >%",
    "iconv -f EUC-JP -t UTF-8 @ >%",
    "getent passwd root",
    "perl -MList::Util=sum -e 'print sum 1, 2' >%",
    "perl -MSocket -MEncode -e 'print AF_UNIX' >%",
    "perl -MDynaLoader -e 'print DynaLoader::dl_load_file(\"libm.so.6\") ? 1 : 0'",
    "perl -MDynaLoader -e 'print DynaLoader::dl_load_file(\"libnone.so.1\") ? 1 : 0'",
    "perl -MDynaLoader -e 'print DynaLoader::dl_load_file(\"./@\") ? 1 : 0'",
    "python3 -c 'import json, zlib, sqlite3; open(\"%\", \"a\")'",
    "python3 -c 'import threading as t; t.Thread(target=open, args=(\"@\",)).start()'",
];

/// A program of up to ten steps, as a script of a shell.
fn program(chance: &mut Chance, busybox: &str) -> String {
    const FILES: [&str; 4] = ["a", "b", "c", "e"];
    let mut text = String::new();
    for _ in 0..=chance.below(9) {
        let step = chance.of(STEPS).replace('~', busybox);
        let first = chance.of(&FILES);
        let mut second = chance.of(&FILES);
        // The programs of a pipeline would race for one file: one empties it, another reads it.
        if step.contains('|') && first == second {
            let next = FILES
                .iter()
                .cycle()
                .skip_while(|file| **file != first)
                .nth(1);
            second = next.unwrap();
        }
        let mut words = String::new();
        for letter in step.chars() {
            match letter {
                '@' => words.push_str(first),
                '%' => words.push_str(second),
                other => words.push(other),
            }
        }
        let around = match chance.below(6) {
            0 => format!("( {words} )"),
            1 => format!("sh -c '{}'", words.replace('\'', "'\\''")),
            _ => words,
        };
        writeln!(text, "{around} >>out 2>&1").unwrap();
    }
    text
}

/// The end, the files and the processes of a program that runs in a fresh directory.
fn outcome(
    text: &str,
    guard: &str,
) -> (
    String,
    BTreeMap<String, BTreeSet<String>>,
    BTreeMap<String, usize>,
) {
    let place = Place::new();
    for (name, text) in [
        ("a", "1 x\n2 y\n"),
        ("b", "3\n1\n"),
        ("c", "1\n"),
        ("e", ""),
    ] {
        place.write_aged(name, text);
    }
    place.write_program("script", "#!/bin/sh\ncat \"$1\" >\"$2\"\n");
    place.write("program", text);
    let answer = place.run(&["record", guard, "--contents=off", "--", "sh", "program"]);
    place.finalized();
    let shown = place.json(&["show", "--json"]);
    let end = format!(
        "{} {} {}",
        answer.status, shown["complete"], shown["incomplete_because"]
    );
    let work = place.path("");
    let general = |text: &str| text.replace(work.trim_end_matches('/'), "WORK");
    let files = accesses(&place)
        .into_iter()
        .map(|(path, words)| (general(&path), words));
    let files = files.filter(|(path, _)| !is_of_one_run(path)).collect();
    let processes = processes(&place);
    (end, files, processes)
}

/// True for a path that names a process, or is another one in each run.
fn is_of_one_run(path: &str) -> bool {
    let random = ["/proc/", "/tmp/", "WORK/sed", "WORK/C", "WORK/d/C"];
    random.iter().any(|prefix| path.starts_with(prefix))
}

/// Compares `programs` generated programs, from this seed on, in several threads. It prints a
/// difference at once, and after each hundred programs how far it is.
fn compare(seed: u64, programs: u64, threads: usize) {
    if place("generated programs").is_none() {
        return;
    }
    let busybox = busybox()
        .and_then(std::path::Path::to_str)
        .unwrap_or("cat /dev/null; :");
    let (next, different) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                for number in numbers.take_while(|number| *number < programs) {
                    if number > 0 && number.is_multiple_of(100) {
                        need::say(&format!("generated programs: {number} of {programs}"));
                    }
                    if let Some(found) = difference(seed + number, busybox) {
                        need::say(&found);
                        different.lock().unwrap().push(seed + number);
                    }
                }
            });
        }
    });
    let different = different.into_inner().unwrap();
    assert!(different.is_empty(), "seeds {different:?}");
}

/// The program of a seed and both records, if they differ.
fn difference(seed: u64, busybox: &str) -> Option<String> {
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let text = program(&mut chance, busybox);
    let (on, auto) = (outcome(&text, "--guard=on"), outcome(&text, "--guard=auto"));
    (on != auto).then(|| format!("seed {seed}:\n{text}\non: {on:?}\nauto: {auto:?}"))
}

#[test]
fn generated_programs_are_recorded_as_with_the_filter() {
    compare(1, 12, 1);
}

/// `BACKSTORY_SEED` is the first seed, and `BACKSTORY_PROGRAMS` the number of programs.
#[test]
#[ignore = "takes hours"]
fn thousands_of_generated_programs_are_recorded_as_with_the_filter() {
    let number = |name, usual| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    compare(
        number("BACKSTORY_SEED", 1000),
        number("BACKSTORY_PROGRAMS", 10_000),
        std::thread::available_parallelism().map_or(1, usize::from),
    );
}
