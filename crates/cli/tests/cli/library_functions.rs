//! Calls of libraries that were not compiled with hooks are recorded, if a pattern names the
//! library.

use super::Place;
use backstory_eventlog::Log;
use backstory_eventlog::event::Op;
use backstory_testkit::need::{needs, skipped};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const LIBRARY: &str = include_str!("library_functions/library.cpp");
const PROGRAM: &str = include_str!("library_functions/program.cpp");
const BREAKPOINTS: &str = include_str!("library_functions/breakpoints.py");

/// Builds the library and the program with a plain compiler. `options` are those of the linker for
/// the program.
fn is_built(place: &Place, options: &str) -> bool {
    if !needs("functions of libraries", &["g++"]) {
        return false;
    }
    place.write("library.cpp", LIBRARY);
    place.write("program.cpp", PROGRAM);
    let build = format!(
        "g++ -O1 -g -shared -fPIC -pthread -o libput.so library.cpp && \
         g++ -O1 -pthread {options} -o program program.cpp -L. -lput -Wl,-rpath,\"$PWD\""
    );
    assert_eq!(place.shell(&build).status, 0);
    true
}

/// The functions that made a file, the innermost first. A function whose process did something else
/// meanwhile has several activities.
pub fn makers(place: &Place, file: &str) -> Vec<String> {
    let of = place.json(&["of", file, "--json", "--level", "process"]);
    let nodes = of["nodes"].as_array().unwrap();
    let texts = nodes.iter().filter_map(|node| node["argv"][0].as_str());
    let functions = texts.filter_map(|text| text.split_once("()"));
    functions.map(|(name, _)| name.to_owned()).collect()
}

/// How often each function was called in the latest run.
pub fn counts(place: &Place) -> BTreeMap<String, u64> {
    let processes = place.json(&["processes", "--json"]);
    let mut counts = BTreeMap::new();
    for process in processes.as_array().unwrap() {
        for (name, value) in process["attributes"].as_object().unwrap() {
            let function = name.strip_prefix("calls of ");
            let Some((function, _)) = function.and_then(|name| name.split_once("()")) else {
                continue;
            };
            let count: u64 = value.as_str().unwrap().parse().unwrap();
            *counts.entry(function.to_owned()).or_default() += count;
        }
    }
    counts
}

fn functions_are_named(options: &str) {
    let place = Place::new();
    if !is_built(&place, options) {
        return;
    }
    let wanted = ["--functions", "libput.so:*", "--arguments"];
    place.keep("./program", &wanted);
    let show = place.json(&["show", "--json"]);
    assert_eq!(show["lost"], 0, "{show}");
    for (file, expected) in [
        ("many.csv", &["put_many"][..]),
        ("thrown.csv", &["put_and_throw", "put_and_catch"]),
        ("caught.csv", &["put_and_catch"]),
        ("deep.csv", &["put_recursive"]),
        ("jumped.csv", &["put_and_jump"]),
        ("exited.csv", &["put_and_exit_thread"]),
        ("waiting.csv", &["put_and_wait"]),
    ] {
        let mut found = makers(&place, file);
        found.dedup();
        assert_eq!(found, expected, "{options} {file}");
    }
    let counts = counts(&place);
    // Calls inside the library go through its table, unless the compiler names the function.
    for (name, expected) in [
        ("put_varying", 8001),
        ("throw_alone", 6000),
        ("jump_alone", 6000),
        ("put_by_jump", 1),
        ("put_last", 3),
        ("put_switch", 8),
    ] {
        assert_eq!(counts.get(name), Some(&expected), "{options} {name}");
    }
    // Only this function calls itself without the table.
    for (file, is_unseen) in [("deep.csv", true), ("many.csv", false)] {
        let of = place.run(&["of", file]).out;
        assert_eq!(of.contains("(direct calls unseen)"), is_unseen, "{of}");
    }
    let many = place.run(&["of", "many.csv"]).out;
    for value in ["a=1", "h=8", "path=\"many.csv\""] {
        assert!(many.contains(value), "{options} {value}: {many}");
    }
    assert!(many.contains("return 204"), "{many}");
}

#[test]
fn a_function_of_a_library_that_was_not_compiled_anew_is_named() {
    functions_are_named("-Wl,-z,lazy");
    functions_are_named("-Wl,-z,now -Wl,-z,relro");
    functions_are_named("-fno-plt -no-pie");
}

#[test]
fn a_call_inside_of_very_many_open_calls_has_no_values() {
    let place = Place::new();
    if !is_built(&place, "") {
        return;
    }
    let deep = "#include <cstdio>\n\
                extern \"C\" int put_back(int (*)(int), int);\n\
                static int down(int n) {\n\
                if (n) return put_back(down, n - 1);\n\
                return std::fclose(std::fopen(\"bottom\", \"w\"));\n}\n\
                int main() { return down(300) != 300; }\n";
    place.write("deep.cpp", deep);
    let build = "g++ -O1 -o deep deep.cpp -L. -lput -Wl,-rpath,\"$PWD\"";
    assert_eq!(place.shell(build).status, 0);
    place.keep("./deep", &["--functions", "libput.so:*", "--arguments"]);
    assert_eq!(counts(&place).get("put_back"), Some(&300));
    let runs = std::fs::read_dir(place.stage.store().join("runs")).unwrap();
    let log = runs.map(|entry| entry.unwrap().path());
    let log = log.filter(|path| path.extension().is_some_and(|end| end == "log"));
    let log = Log::open(log.last().unwrap()).unwrap();
    let (mut arguments, mut results) = (0, 0);
    for event in log.events() {
        match event.op {
            Op::Values { returned: true, .. } => results += 1,
            Op::Values { .. } => arguments += 1,
            _ => (),
        }
    }
    assert_eq!((arguments, results), (256, 256));
}

/// A program of the machine with a library, the functions that are compared, and arguments.
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("libz.so.1", "*", &["./zipped"]),
    ("liblzma.so.5", "lzma_*", &["xz", "-k", "-c", "in.txt"]),
    (
        "libsqlite3.so.0",
        "sqlite3_*",
        &[
            "sqlite3",
            "a.db",
            "create table t(a, b); insert into t values (1, 2), (3, 4); select sum(a) from t;",
        ],
    ),
];

/// The functions that a library exports, as NAME=ADDRESS.
fn exported(place: &Place, library: &Path, prefix: &str) -> String {
    let names = place.shell(&format!("nm -D --defined-only {}", library.display()));
    let functions = names.out.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
        let name = name.split('@').next()?;
        (kind == "T" && name.starts_with(prefix)).then(|| format!("{name}={address}"))
    });
    functions.collect::<Vec<_>>().join(" ")
}

/// The counts of a debugger.
fn counted_by_breakpoints(
    place: &Place,
    library: &Path,
    pattern: &str,
    command: &[&str],
) -> BTreeMap<String, u64> {
    let functions = exported(place, library, pattern.trim_end_matches('*'));
    let gdb = ["-nx", "-batch", "-x", "breakpoints.py", "--args"];
    let counted = place
        .stage
        .command("gdb")
        .args(gdb)
        .args(command)
        .current_dir(place.work())
        .env("LIBRARY", library.file_name().unwrap())
        .env("FUNCTIONS", functions)
        .env("OUT", place.path("counts.txt"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let Ok(text) = std::fs::read_to_string(place.path("counts.txt")) else {
        skipped("breakpoints", &String::from_utf8_lossy(&counted.stderr));
        return BTreeMap::new();
    };
    let counts = text.lines().filter_map(|line| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    counts.collect()
}

#[test]
fn calls_of_the_libraries_of_the_machine_agree_with_a_debuggers_breakpoints() {
    if !needs("breakpoints", &["gdb", "nm", "cc", "xz", "sqlite3"]) {
        return;
    }
    let place = Place::new();
    place.write("breakpoints.py", BREAKPOINTS);
    place.write("in.txt", &"to be compressed\n".repeat(9000));
    place.write(
        "zipped.c",
        "#include <stdio.h>\n#include <zlib.h>\nint main(void) { char text[100];\n\
         gzFile file = gzopen(\"in.gz\", \"wb\"); gzputs(file, \"text\\n\"); gzclose(file);\n\
         file = gzopen(\"in.gz\", \"rb\"); int n = gzread(file, text, 100); gzclose(file);\n\
         return n != 5 || crc32(0, (void *)\"abc\", 3) != 0x352441c2; }\n",
    );
    if place.shell("cc -o zipped zipped.c -lz").status != 0 {
        return skipped("breakpoints", "no headers of zlib");
    }
    for (library, pattern, command) in PROGRAMS {
        let Some(file) = library_file(library) else {
            skipped("breakpoints", &format!("no {library}"));
            continue;
        };
        let clean = || {
            for made in ["a.db", "in.gz", "counts.txt"] {
                let _ = std::fs::remove_file(place.path(made));
            }
        };
        clean();
        let expected = counted_by_breakpoints(&place, &file, pattern, command);
        if expected.is_empty() {
            continue;
        }
        clean();
        let option = format!("{library}:{pattern}");
        let mut recorded = vec!["record", "--functions", &option, "--"];
        recorded.extend(*command);
        let recorded = place.run(&recorded);
        assert_eq!(
            (recorded.status, recorded.err.as_str()),
            (0, ""),
            "{library}"
        );
        assert_eq!(place.run(&["index", "--wait"]).status, 0);
        assert!(expected.len() > 15, "{expected:?}");
        assert_eq!(counts(&place), expected, "{library}");
    }
}

/// The file of a library of the machine.
fn library_file(name: &str) -> Option<PathBuf> {
    let directories = [
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib64",
    ];
    let files = directories
        .iter()
        .map(|directory| Path::new(directory).join(name));
    files.into_iter().find_map(|file| file.canonicalize().ok())
}

/// Loads the library while it runs, twice, and calls it by pointers.
const LOADS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(void) {
    for (int i = 0; i < 2; i++) {
        void *library = dlopen("./libput.so", RTLD_NOW);
        int (*put)(int) = (int (*)(int))dlsym(library, "put_last");
        Dl_info info;
        if (!put || put(5) != 5 || !dladdr((void *)put, &info) || strcmp(info.dli_sname, "put_last"))
            return 1;
        if (dlclose(library))
            return 2;
    }
    return dlopen("./no-such-library.so", RTLD_NOW) || !dlerror();
}
"#;

#[test]
fn a_function_of_a_library_that_is_loaded_later_is_named() {
    let place = Place::new();
    if !is_built(&place, "") {
        return;
    }
    place.write("loads.c", LOADS);
    assert_eq!(place.shell("cc -o loads loads.c").status, 0);
    place.keep("./loads", &["--functions", "libput*:put_last"]);
    assert_eq!(makers(&place, "last.csv"), ["put_last"]);
    assert_eq!(counts(&place).get("put_last"), Some(&2));
    let program = "/usr/bin/python3";
    if !Path::new(program).exists() {
        return skipped("functions of zlib in Python", "no python3");
    }
    let code = "import zlib; assert zlib.decompress(zlib.compress(b'abc')) == b'abc'";
    let line = format!("{program} -c \"{code}\"");
    place.keep(&line, &["--functions", "libz.so:*flate*"]);
    let counts = counts(&place);
    for name in ["deflate", "deflateEnd", "inflate", "inflateEnd"] {
        assert_eq!(counts.get(name), Some(&1), "{name}: {counts:?}");
    }
}

#[test]
fn a_pattern_without_a_library_redirects_nothing_and_hooks_are_not_counted_twice() {
    let place = Place::new();
    if !is_built(&place, "") {
        return;
    }
    let recorded = place.run(&["record", "--functions", "put_*", "--", "./program"]);
    assert!(
        recorded.err.contains("name its library"),
        "{}",
        recorded.err
    );
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    assert_eq!(counts(&place), BTreeMap::new());
    let build = "$B c++ -O1 -shared -fPIC -pthread -o libput.so library.cpp";
    assert_eq!(place.shell(build).status, 0);
    place.keep("./program", &["--functions", "libput.so:put_many"]);
    assert_eq!(counts(&place).get("put_many"), Some(&1));
}

#[test]
fn a_pattern_that_records_nothing_is_reported_with_the_remedy() {
    if !needs("libraries", &["xz"]) || library_file("liblzma.so.5").is_none() {
        return;
    }
    let place = Place::new();
    for (pattern, words) in [
        (
            "libabsent.so:f*",
            &["no dynamically linked program loaded", "backstory files"][..],
        ),
        (
            "liblzma.so:inflat*",
            &["has no such function", "nm -D --defined-only /"],
        ),
        ("libc.so.6:qsort", &["part of every process", "ltrace"]),
    ] {
        let recorded = place.run(&["record", "--functions", pattern, "--", "xz", "--version"]);
        assert_eq!(recorded.status, 0, "{pattern}");
        for word in words {
            assert!(recorded.err.contains(word), "{pattern}: {}", recorded.err);
        }
        assert!(
            recorded
                .err
                .contains(&format!("--functions {pattern} recorded nothing"))
        );
        assert_eq!(recorded.err.lines().count(), 1, "{}", recorded.err);
    }
}
