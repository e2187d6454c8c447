//! Calls of functions are recorded, and questions name the function that made a file.

use super::Place;
use backstory_testkit::need::{needs, skipped};
use std::path::Path;

/// Two functions that each make a file, one of which leaves by a longjmp and one of which calls
/// itself; and a thread.
const SOURCE: &str = r#"
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
static jmp_buf back;
static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    fputs(text, file); fclose(file);
}
void write_table(int depth) {
    if (depth)
        write_table(depth - 1);
    else
        put("table.csv", "1\n");
}
void write_and_leave(void) {
    put("left.csv", "2\n");
    longjmp(back, 1);
}
void *write_in_thread(void *unused) {
    put("thread.csv", "3\n");
    return unused;
}
int main(void) {
    pthread_t thread;
    write_table(3);
    if (!setjmp(back))
        write_and_leave();
    put("main.csv", "4\n");
    pthread_create(&thread, NULL, write_in_thread, NULL);
    pthread_join(thread, NULL);
    return 7;
}
"#;

/// Compiles the program with `backstory cc`. False if the compiler does not.
fn compiled(place: &Place, options: &[&str]) -> bool {
    place.write("plot.c", SOURCE);
    let built = place
        .command(&["cc"])
        .args(options)
        .args(["-pthread", "-o", "plot", "plot.c"])
        .status();
    let is_built = built.is_ok_and(|status| status.success());
    if !is_built {
        skipped(
            "functions",
            &format!("there is no compiler for {options:?}"),
        );
    }
    is_built
}

/// The functions that made a file, the innermost first.
pub(super) fn makers(place: &Place, file: &str) -> Vec<String> {
    let of = place.json(&["of", file, "--json", "--level", "process"]);
    let nodes = of["nodes"].as_array().unwrap();
    let texts = nodes.iter().filter_map(|node| node["argv"][0].as_str());
    let functions = texts.filter(|text| text.contains("()"));
    functions.map(str::to_owned).collect()
}

fn made_by(place: &Place, file: &str, function: &str) -> bool {
    let of = place.run(&["of", file]).out;
    of.contains(function) && of.contains(&format!("made {file}"))
}

fn functions_are_named(options: &[&str]) {
    let place = Place::new();
    if !compiled(&place, options) {
        return;
    }
    let mut alone = place.stage.command("./plot");
    let alone = alone.current_dir(place.work()).output().unwrap();
    assert_eq!((alone.status.code(), alone.stdout.len()), (Some(7), 0));
    place.keep("./plot; true", &["--functions", "write_*"]);
    for (file, function) in [
        ("table.csv", "write_table() in plot.c:10"),
        ("left.csv", "write_and_leave() in plot.c:16"),
        ("thread.csv", "write_in_thread() in plot.c:20"),
    ] {
        let of = place.run(&["of", file]).out;
        assert!(made_by(&place, file, function), "{options:?} {file}: {of}");
    }
    let main = place.run(&["of", "main.csv"]).out;
    assert!(main.contains("./plot\n      made main.csv"), "{main}");
    assert!(!main.contains("calls of"), "{main}");
    // The earlier functions read nothing.
    assert!(!main.contains("\n  write_"), "{main}");
    assert!(
        makers(&place, "table.csv").len() >= 4,
        "{:?}",
        makers(&place, "table.csv")
    );
    let processes = place.run(&["processes"]).out;
    assert!(
        processes.contains("calls of write_table() in plot.c:10=4"),
        "{processes}"
    );
    // Other functions are not recorded, and without the option none is.
    assert!(!processes.contains("calls of put()"), "{processes}");
    place.keep("./plot; true", &[]);
    let of = place.run(&["of", "table.csv"]).out;
    assert!(!of.contains("write_table"), "{of}");
}

/// Two functions use one descriptor each for reading and for writing.
const SHARED: &str = r#"
#include <fcntl.h>
#include <unistd.h>
static int in, out;
static char byte;
void copy_first(void) { if (read(in, &byte, 1) != 1 || write(out, &byte, 1) != 1) _exit(1); }
void copy_second(void) { if (read(in, &byte, 1) != 1 || write(out, &byte, 1) != 1) _exit(1); }
int main(void) {
    in = open("in.txt", O_RDONLY);
    out = open("out.txt", O_WRONLY | O_CREAT, 0600);
    copy_first();
    copy_second();
    return 0;
}
"#;

#[test]
fn functions_that_use_one_descriptor_are_all_named() {
    let place = Place::new();
    place.write_aged("in.txt", "ab");
    place.write("shared.c", SHARED);
    let built = place.run(&["cc", "-g", "-o", "shared", "shared.c"]);
    if built.status != 0 {
        return skipped("functions", "there is no compiler");
    }
    let functions = ["--functions", "copy_*"];
    place.keep("./shared", &functions);
    let made = makers(&place, "out.txt");
    for function in ["copy_first() in shared.c:6", "copy_second() in shared.c:7"] {
        assert!(
            made.iter().any(|one| one == function),
            "{function}: {made:?}"
        );
    }
    let used = place.run(&["uses", "in.txt"]).out;
    assert!(
        used.contains("copy_first()") && used.contains("copy_second()"),
        "{used}"
    );
}

#[test]
fn a_function_that_made_a_file_is_named() {
    functions_are_named(&["-O1"]);
}

#[test]
fn a_function_that_clang_left_sleds_in_is_named() {
    functions_are_named(&["--compiler=clang", "-O1", "-fno-inline"]);
}

/// A function that leaves by an exception, and one of a shared library.
pub(super) const THROWS: &str = r#"
#include <cstdio>
#include <stdexcept>
void write_in_library(const char *path);
static void put(const char *path) {
    FILE *file = std::fopen(path, "w");
    std::fputs("2\n", file);
    std::fclose(file);
}
void write_and_throw() {
    put("thrown.csv");
    throw std::runtime_error("left");
}
void write_and_catch() {
    try {
        write_and_throw();
    } catch (const std::runtime_error &) {
        put("caught.csv");
    }
}
int main() {
    write_and_catch();
    put("main.csv");
    write_in_library("library.csv");
    return 0;
}
"#;

pub(super) const LIBRARY: &str = r#"
#include <cstdio>
void write_in_library(const char *path) {
    FILE *file = std::fopen(path, "w");
    std::fputs("1\n", file);
    std::fclose(file);
}
"#;

/// Records the program of [`THROWS`], and asks which function made each file.
pub(super) fn functions_of_cpp_are_named(place: &Place) {
    place.keep("./plot", &["--functions", "write_*"]);
    let thrown = makers(place, "thrown.csv");
    assert!(thrown[0].starts_with("write_and_throw()"), "{thrown:?}");
    assert!(
        thrown
            .iter()
            .any(|name| name.starts_with("write_and_catch()")),
        "{thrown:?}"
    );
    // The exception ended the inner function, and not the outer one.
    let caught = makers(place, "caught.csv");
    assert!(!caught.is_empty(), "caught.csv");
    assert!(
        caught
            .iter()
            .all(|name| name.starts_with("write_and_catch()")),
        "{caught:?}"
    );
    assert_eq!(makers(place, "main.csv"), [""; 0]);
    let library = makers(place, "library.csv");
    assert!(library[0].starts_with("write_in_library()"), "{library:?}");
}

#[test]
fn functions_that_leave_by_an_exception_or_are_in_a_library_are_named() {
    if !needs("functions of C++", &["g++"]) {
        return;
    }
    let place = Place::new();
    place.write("plot.cpp", THROWS);
    place.write("table.cpp", LIBRARY);
    let build = "$B c++ -O1 -shared -fPIC -o libtable.so table.cpp && \
        $B c++ -O1 -o plot plot.cpp -L. -ltable -Wl,-rpath,\"$PWD\"";
    assert_eq!(place.shell(build).status, 0);
    functions_of_cpp_are_named(&place);
}

#[test]
fn the_compilers_wrapper_has_the_messages_and_the_status_of_the_compiler() {
    let place = Place::new();
    if !compiled(&place, &[]) {
        return;
    }
    place.write("wrong.c", "int main(void) { return wrong; }\n");
    let own = |arguments: &[&str]| {
        let mut command = place.stage.command("cc");
        let output = command.args(arguments).current_dir(place.work()).output();
        output.unwrap()
    };
    let wrapped = |arguments: &[&str]| {
        let output = place.command(&["cc"]).args(arguments).output();
        output.unwrap()
    };
    for arguments in [
        &["-c", "wrong.c"][..],
        &["--version"],
        &["-E", "-P", "wrong.c"],
        &["-M", "wrong.c"],
        &["-print-file-name=libc.so"],
        &["-c", "plot.c", "-o", "plot.o"],
        &["-pthread", "plot.o", "-o", "linked"],
        &["-no-such-option"],
        &[],
    ] {
        let (expected, found) = (own(arguments), wrapped(arguments));
        assert_eq!(found.status, expected.status, "{arguments:?}");
        assert_eq!(found.stdout, expected.stdout, "{arguments:?}");
        assert_eq!(found.stderr, expected.stderr, "{arguments:?}");
    }
}

/// The package's directory for user `.pth` files of the Python that `python3` is.
/// A thread calls a function of one library after the other for the first time, while the program
/// forks. Each child calls a function of the last library, and ends with the program's status.
const FORKS: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
int LIBRARIES;
static volatile int is_over;
static pid_t child;
static void end_child(int signal) {
    kill(child, SIGKILL);
}
static void *call_all(void *unused) {
    int (*const all[])(void) = {FUNCTIONS};
    for (unsigned at = 0; at < sizeof all / sizeof *all; at++)
        all[at]();
    is_over = 1;
    return unused;
}
int main(void) {
    pthread_t thread;
    int status = 0;
    signal(SIGALRM, end_child);
    pthread_create(&thread, NULL, call_all, NULL);
    while (!is_over && !status) {
        child = fork();
        if (!child) {
            LAST();
            _exit(0);
        }
        alarm(30);
        waitpid(child, &status, 0);
        alarm(0);
    }
    pthread_join(thread, NULL);
    return status ? 1 : 0;
}
"#;

#[test]
fn a_child_calls_functions_although_another_thread_asked_for_a_table_at_the_fork() {
    const LIBRARIES: usize = 40;
    let place = Place::new();
    let names: Vec<String> = (0..LIBRARIES).map(|at| format!("first_{at}")).collect();
    for name in &names {
        place.write(
            format!("{name}.c"),
            &format!("int {name}(void) {{ return 1; }}\n"),
        );
        let (library, source) = (format!("lib{name}.so"), format!("{name}.c"));
        let built = place
            .command(&["cc"])
            .args(["-fPIC", "-shared", "-o", &library, &source])
            .status();
        if !built.is_ok_and(|status| status.success()) {
            skipped("a fork while a table is asked for", "there is no compiler");
            return;
        }
    }
    let declared: Vec<String> = names.iter().map(|name| format!("{name}(void)")).collect();
    let source = FORKS
        .replace("LIBRARIES", &declared.join(", "))
        .replace("FUNCTIONS", &names.join(", "))
        .replace("LAST", &names[LIBRARIES - 1]);
    place.write("forks.c", &source);
    let mut command = place.command(&["cc"]);
    command.args([
        "-pthread",
        "-o",
        "forks",
        "forks.c",
        "-L.",
        "-Wl,-rpath,$ORIGIN",
    ]);
    command.args(names.iter().map(|name| format!("-l{name}")));
    assert!(command.status().unwrap().success());
    for _ in 0..5 {
        let run = place.run(&["record", "--functions", "first_*", "--", "./forks"]);
        assert_eq!(run.status, 0, "{run:?}");
    }
}

fn python_site(place: &Place) -> Option<std::path::PathBuf> {
    let code = "import site; print(site.getusersitepackages())";
    let mut python = place.stage.command("python3");
    let python = python.args(["-c", code]).current_dir(place.work());
    let output = python.env("PYTHONUSERBASE", place.path("base")).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        skipped("functions of Python", "there is no python3");
        return None;
    };
    Some(String::from_utf8(output.stdout).unwrap().trim().into())
}

#[test]
fn calls_inside_of_very_many_open_calls_are_counted() {
    let place = Place::new();
    let deep = "#include <stdio.h>\n\
                void down(int depth) {\n\
                if (depth) down(depth - 1); else fclose(fopen(\"bottom\", \"w\"));\n}\n\
                int main(void) { down(1000); down(2); return 0; }\n";
    place.write("deep.c", deep);
    let mut built = place.command(&["cc"]);
    let built = built.args(["-O0", "-o", "deep", "deep.c"]).status();
    if !built.is_ok_and(|status| status.success()) {
        return skipped("functions", "there is no compiler");
    }
    place.keep("./deep", &["--functions", "down"]);
    let processes = place.run(&["processes"]).out;
    assert!(
        processes.contains("calls of down() in deep.c:2=1004"),
        "{processes}"
    );
    assert!(made_by(&place, "bottom", "down() in deep.c:2"));
}

#[test]
fn a_python_function_that_made_a_file_is_named() {
    let place = Place::new();
    let Some(site) = python_site(&place) else {
        return;
    };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python");
    std::fs::create_dir_all(site.join("backstory")).unwrap();
    std::fs::write(site.join("backstory/__init__.py"), "").unwrap();
    for (from, to) in [
        ("python/backstory/functions.py", "backstory/functions.py"),
        ("backstory_functions.pth", "backstory_functions.pth"),
    ] {
        std::fs::copy(package.join(from), site.join(to)).unwrap();
    }
    place.write(
        "plot.py",
        "def write_table(path):\n    with open(path, 'w') as out:\n        out.write('1')\n\n\
         def fail():\n    open('failed.csv', 'w').close()\n    raise ValueError\n\n\
         def lines():\n    yield 1\n    open('yielded.csv', 'w').close()\n    yield 2\n\n\
         write_table('table.csv')\n\
         try:\n    fail()\nexcept ValueError:\n    pass\n\
         list(lines())\nopen('main.csv', 'w').close()\n",
    );
    let command = format!("PYTHONUSERBASE={} python3 plot.py", place.path("base"));
    place.keep(
        &command,
        &[
            "--functions",
            "plot:write_*",
            "--functions",
            "plot:fail",
            "--functions",
            "lines",
        ],
    );
    for (file, function) in [
        ("table.csv", "write_table() in plot.py:1"),
        ("failed.csv", "fail() in plot.py:5"),
        ("yielded.csv", "lines() in plot.py:9"),
    ] {
        let of = place.run(&["of", file]).out;
        assert!(made_by(&place, file, function), "{file}: {of}");
    }
    let main = place.run(&["of", "main.csv"]).out;
    assert!(
        main.contains("python3 plot.py\n      made main.csv"),
        "{main}"
    );
    let wanted = ["--functions", "plot:write_*", "--functions", "plot:absent"];
    let record = [&["record"], &wanted[..], &["--", "sh", "-c", &command]].concat();
    let said = place.run(&record).err;
    assert!(said.contains("plot:absent recorded nothing"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_pattern_that_recorded_no_function_says_how_functions_are_recorded() {
    let place = Place::new();
    let recorded = place.run(&["record", "--functions", "absent_*", "--", "true"]);
    assert_eq!(recorded.status, 0);
    for words in ["--functions absent_* recorded nothing", "`backstory cc`"] {
        assert!(recorded.err.contains(words), "{}", recorded.err);
    }
    if !compiled(&place, &[]) {
        return;
    }
    let wanted = ["--functions", "write_table", "--functions", "absent_*"];
    let record = [&["record"], &wanted[..], &["--", "./plot"]].concat();
    let said = place.run(&record).err;
    assert!(said.contains("absent_* recorded nothing"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn functions_need_the_guard_and_a_name() {
    let place = Place::new();
    for (arguments, word) in [
        (
            &["record", "--functions", "f", "--guard=off", "--", "true"][..],
            "--guard=off",
        ),
        (
            &["record", "--functions", "f", "--deep", "--", "true"],
            "--deep",
        ),
        (
            &["record", "--functions", "plot:", "--", "true"],
            "names no function",
        ),
    ] {
        place.run(arguments).is_error(125, &[word]);
    }
}
