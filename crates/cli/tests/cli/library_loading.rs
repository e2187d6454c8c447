//! Functions of libraries that are loaded in unusual ways.
//!
//! They are loaded in a namespace of their own, have constructors, or choose functions at load.

use super::Place;
use backstory_testkit::need::needs;

/// Writes a file. Its functions have the calling conventions of C.
const LIBRARY: &str = r#"
#include <fcntl.h>
#include <unistd.h>
int put_file(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    write(fd, "1\n", 2);
    close(fd);
    return 7;
}
"#;

/// Calls the library from its constructor, and when it is asked to.
const CALLER: &str = r#"
int put_file(const char *path);
__attribute__((constructor)) static void begin(void) { put_file("constructed.txt"); }
int put_asked(const char *path) { return put_file(path); }
"#;

/// Opens the caller in a namespace of its own, and calls both libraries by pointers.
const APART: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    for (int i = 0; i < 2; i++) {
        void *caller = dlmopen(LM_ID_NEWLM, "./libcaller.so", RTLD_NOW);
        if (!caller)
            return puts(dlerror()), 3;
        int (*asked)(const char *) = (int (*)(const char *))dlsym(caller, "put_asked");
        int (*file)(const char *) = (int (*)(const char *))dlsym(caller, "put_file");
        Dl_info info;
        if (!asked || asked("asked.txt") != 7 || !file || file("apart.txt") != 7)
            return 1;
        if (!dladdr((void *)file, &info) || dlclose(caller))
            return 2;
    }
    return 0;
}
"#;

/// Opens the caller in the program's namespace.
const LATER: &str = r#"
#include <dlfcn.h>
int main(void) { return !dlopen("./libcaller.so", RTLD_NOW); }
"#;

/// Is linked with the caller.
const LINKED: &str = r#"
int put_asked(const char *path);
int main(void) { return put_asked("asked.txt") != 7; }
"#;

/// Functions that are chosen when they are loaded, and a usual one, which calls one of them.
const CHOSEN: &str = r#"
#include <fcntl.h>
#include <unistd.h>
static int put(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return (int)write(fd, "x", 1) + close(fd);
}
static int one(const char *path) { return put(path); }
static int two(const char *path) { return put(path) + 1; }
static int three(const char *path) { return put(path) + 2; }
static int (*choose_one(void))(const char *) { return one; }
static int (*choose_two(void))(const char *) { return two; }
static int (*choose_three(void))(const char *) { return three; }
int put_chosen(const char *path) __attribute__((ifunc("choose_one")));
int put_second(const char *path) __attribute__((ifunc("choose_two")));
int put_hidden(const char *path) __attribute__((ifunc("choose_three"), visibility("hidden")));
int put_usual(const char *path) { return put_second(path) - 1 + put_hidden(path) - 2; }
"#;

const CHOOSER: &str = r#"
int put_chosen(const char *path);
int put_usual(const char *path);
int main(void) {
    int (*volatile pointer)(const char *) = put_chosen;
    return put_chosen("direct.txt") + pointer("pointer.txt") + put_usual("inside.txt") != 4;
}
"#;

/// Compiles both libraries.
fn is_built(place: &Place) -> bool {
    if !needs("functions of libraries", &["gcc"]) {
        return false;
    }
    place.write("file.c", LIBRARY);
    place.write("caller.c", CALLER);
    let build = "gcc -O1 -g -shared -fPIC -o libfile.so file.c && \
                 gcc -O1 -g -shared -fPIC -o libcaller.so caller.c -L. -lfile -Wl,-rpath,\"$PWD\"";
    assert_eq!(place.shell(build).status, 0);
    true
}

fn program(place: &Place, text: &str, options: &str) {
    place.write("program.c", text);
    let build = format!("gcc -O1 -o program program.c {options} -Wl,-rpath,\"$PWD\"");
    let built = place.shell(&build);
    assert_eq!(built.status, 0, "{built:?}");
}

/// How often a function was called, and the functions that made a file.
fn calls(place: &Place, function: &str) -> Option<u64> {
    super::library_functions::counts(place)
        .get(function)
        .copied()
}

fn maker(place: &Place, file: &str) -> Vec<String> {
    super::library_functions::makers(place, file)
}

#[test]
fn a_function_of_a_library_in_a_namespace_of_its_own_is_named() {
    let place = Place::new();
    if !is_built(&place) {
        return;
    }
    program(&place, APART, "");
    place.keep("./program", &["--functions", "libfile.so:put_file"]);
    let show = place.json(&["show", "--json"]);
    assert_eq!(show["lost"], 0, "{show}");
    // Twice by a pointer, and twice by the other library. Constructors run before.
    assert_eq!(calls(&place, "put_file"), Some(4));
    // The namespace has a libc of its own. The guard sees its calls, and no function around them.
    for file in ["asked.txt", "apart.txt"] {
        let of = place.run(&["of", file]);
        assert!(
            of.out.contains("made asked.txt") || of.out.contains("made apart.txt"),
            "{of:?}"
        );
        assert_eq!(maker(&place, file), Vec::<String>::new(), "{file}");
    }
}

#[test]
fn calls_by_constructors_are_named_if_the_program_begins_with_their_library() {
    let place = Place::new();
    if !is_built(&place) {
        return;
    }
    program(&place, LINKED, "-L. -lcaller -lfile");
    place.keep("./program", &["--functions", "libfile.so:put_file"]);
    assert_eq!(calls(&place, "put_file"), Some(2));
    assert_eq!(maker(&place, "constructed.txt"), ["put_file"]);
    // While `dlopen` loads a library, its slots are not known yet.
    program(&place, LATER, "-L. -Wl,--no-as-needed -lfile");
    place.keep("./program", &["--functions", "libfile.so:put_file"]);
    assert_eq!(calls(&place, "put_file"), None);
    assert_eq!(maker(&place, "constructed.txt"), Vec::<String>::new());
}

/// Builds the library whose function is chosen when it is loaded.
fn build_chosen(place: &Place) {
    place.write("chosen.c", CHOSEN);
    let built = place.shell("gcc -O1 -g -shared -fPIC -o libchosen.so chosen.c");
    assert_eq!(built.status, 0, "{built:?}");
}

#[test]
fn a_function_that_is_chosen_when_it_is_loaded_is_named() {
    let place = Place::new();
    if !is_built(&place) {
        return;
    }
    build_chosen(&place);
    for linking in ["-Wl,-z,lazy", "-Wl,-z,now"] {
        program(&place, CHOOSER, &format!("-L. -lchosen {linking}"));
        let pattern = ["--functions", "libchosen.so:put_*", "--arguments"];
        place.keep("./program", &pattern);
        assert_eq!(calls(&place, "put_chosen"), Some(2), "{linking}");
        assert_eq!(calls(&place, "put_second"), Some(1), "{linking}");
        assert_eq!(calls(&place, "put_usual"), Some(1), "{linking}");
        assert_eq!(maker(&place, "direct.txt"), ["put_chosen"], "{linking}");
        assert_eq!(maker(&place, "pointer.txt"), ["put_chosen"], "{linking}");
    }
}

/// Loads the library twice, at other addresses the second time, and calls a function by a pointer.
const CHOOSER_BY_NAME: &str = r#"
#include <dlfcn.h>
#include <sys/mman.h>
int main(void) {
    for (int i = 0; i < 2; i++) {
        void *library = dlopen("./libchosen.so", RTLD_NOW);
        int (*put)(const char *) = library ? (int (*)(const char *))dlsym(library, "put_chosen") : 0;
        if (!put || put("found.txt") != 1 || dlclose(library))
            return 1;
        void *there = (void *)((unsigned long)put & ~4095ul);
        mmap(there, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return 0;
}
"#;

#[test]
fn a_chosen_function_of_a_library_that_is_loaded_later_is_named() {
    let place = Place::new();
    if !is_built(&place) {
        return;
    }
    build_chosen(&place);
    for linking in ["", "-L. -Wl,--no-as-needed -lchosen"] {
        program(&place, CHOOSER_BY_NAME, linking);
        place.keep("./program", &["--functions", "libchosen.so:put_*"]);
        assert_eq!(calls(&place, "put_chosen"), Some(2), "{linking}");
        assert_eq!(maker(&place, "found.txt"), ["put_chosen"], "{linking}");
    }
}

/// Calls the chosen functions of another library.
const PLUGIN: &str = r#"
int put_chosen(const char *path);
int put_usual(const char *path);
int begin(void) { return put_chosen("plugged.txt") + put_usual("usual.txt"); }
"#;

const HOST: &str = r#"
#include <dlfcn.h>
int main(void) {
    void *plugin = dlopen("./libplugin.so", MODE);
    int (*begin)(void) = plugin ? (int (*)(void))dlsym(plugin, "begin") : 0;
    return begin ? begin() != 3 : 2;
}
"#;

#[test]
fn chosen_functions_that_a_plugin_calls_are_named() {
    let place = Place::new();
    if !is_built(&place) {
        return;
    }
    build_chosen(&place);
    place.write("plugin.c", PLUGIN);
    for (linking, mode) in [
        ("-Wl,-z,lazy", "RTLD_LAZY"),
        ("-Wl,-z,lazy", "RTLD_NOW"),
        ("-Wl,-z,now", "RTLD_LAZY"),
        ("-fno-plt", "RTLD_NOW"),
    ] {
        let build = format!(
            "gcc -O1 -shared -fPIC {linking} -o libplugin.so plugin.c -L. -lchosen -Wl,-rpath,\"$PWD\""
        );
        assert_eq!(place.shell(&build).status, 0);
        program(&place, HOST, &format!("-DMODE={mode}"));
        place.keep("./program", &["--functions", "libchosen.so:put_*"]);
        for name in ["put_chosen", "put_second", "put_usual"] {
            assert_eq!(calls(&place, name), Some(1), "{linking} {mode} {name}");
        }
        assert_eq!(maker(&place, "plugged.txt"), ["put_chosen"], "{linking}");
    }
}
