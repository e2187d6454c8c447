//! The build systems and compilers of docs/howto/functions.md leave functions that are recorded.

use super::Place;
use super::functions::{LIBRARY, THROWS, functions_of_cpp_are_named, makers};
use backstory_testkit::need::{needs, skipped};
use std::process::Command;

/// Runs a compiler that belongs to the user of the tests: the stage may have another one.
fn build(place: &Place, compiler: &mut Command) {
    let built = compiler.current_dir(place.work()).output().unwrap();
    assert!(built.status.success(), "{built:?}");
}

#[test]
fn the_flags_for_cmake_instrument_programs_and_libraries() {
    if !needs("functions with CMake", &["g++", "cmake", "make"]) {
        return;
    }
    let place = Place::new();
    place.write("plot.cpp", THROWS);
    place.write("table.cpp", LIBRARY);
    place.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.10)\nproject(plot CXX)\n\
         add_library(table SHARED table.cpp)\nadd_executable(plot plot.cpp)\n\
         target_link_libraries(plot table)\n",
    );
    let build = "CXXFLAGS=-finstrument-functions cmake . >&2 && make >&2";
    assert_eq!(place.shell(build).status, 0);
    functions_of_cpp_are_named(&place);
}

#[test]
fn the_flags_for_meson_instrument_programs_and_libraries() {
    if !needs("functions with Meson", &["g++", "meson", "ninja"]) {
        return;
    }
    let place = Place::new();
    place.write("plot.cpp", THROWS);
    place.write("table.cpp", LIBRARY);
    place.write(
        "meson.build",
        "project('plot', 'cpp')\n\
         table = shared_library('table', 'table.cpp')\n\
         executable('plot', 'plot.cpp', link_with: table)\n",
    );
    let build = "meson setup build -Dcpp_args=-finstrument-functions >&2 && \
        ninja -C build >&2 && ln -s build/plot plot";
    assert_eq!(place.shell(build).status, 0);
    functions_of_cpp_are_named(&place);
}

#[test]
fn functions_of_rust_that_nightly_left_sleds_in_are_named() {
    let asked = Command::new("rustup")
        .args(["which", "--toolchain", "nightly", "rustc"])
        .output();
    let Some(asked) = asked.ok().filter(|asked| asked.status.success()) else {
        skipped("functions of Rust", "needs the nightly compiler");
        return;
    };
    let rustc = String::from_utf8(asked.stdout).unwrap();
    let place = Place::new();
    place.write(
        "plot.rs",
        "#[inline(never)]\nfn write_table() {\n    std::fs::write(\"table.csv\", \"1\").unwrap();\n}\n\
         fn main() {\n    write_table();\n    std::fs::write(\"main.csv\", \"2\").unwrap();\n}\n",
    );
    build(
        &place,
        Command::new(rustc.trim()).args(["-Z", "instrument-xray=always", "-g", "plot.rs"]),
    );
    place.keep("./plot", &["--functions", "*write_table"]);
    let table = makers(&place, "table.csv");
    assert!(table[0].contains("write_table() in plot.rs:"), "{table:?}");
    assert_eq!(makers(&place, "main.csv"), [""; 0]);
}

#[test]
fn functions_of_c_in_a_go_program_are_named() {
    if !needs("functions below Go", &["go", "gcc"]) {
        return;
    }
    let place = Place::new();
    place.write(
        "plot.go",
        "package main\n\n/*\n#include <stdio.h>\n\
         static void write_table(void) {\n    FILE *file = fopen(\"table.csv\", \"w\");\n    \
         fputs(\"1\", file);\n    fclose(file);\n}\n*/\nimport \"C\"\n\n\
         func main() {\n\tC.write_table()\n}\n",
    );
    place.write("go.mod", "module plot\n\ngo 1.18\n");
    let compiler = format!("{} cc", env!("CARGO_BIN_EXE_backstory"));
    build(
        &place,
        Command::new("go")
            .args(["build", "-o", "plot", "."])
            .env("GOCACHE", place.path("cache"))
            .env("GOTOOLCHAIN", "local")
            .env("CGO_ENABLED", "1")
            .env("CGO_CFLAGS", "-g")
            .env("CC", compiler),
    );
    place.keep("./plot", &["--functions", "write_*"]);
    let table = makers(&place, "table.csv");
    assert!(table[0].starts_with("write_table()"), "{table:?}");
}
