//! Builds the recorder's C with the system's compiler: the 64-bit library at its fixed address, its
//! empty 32-bit twin, and the client of the broker. The library is built four times: for ordinary
//! recording, for deep recording, to record calls of functions, and for `--guard=auto`.
//!
//! Needs `$CC` (or `cc`) for x86-64 Linux, with binutils' linker. Warnings are errors.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiler's options: no libc, no start files, and nothing that would need either.
const COMPILE: &[&str] = &[
    "-std=gnu17",
    "-fPIC",
    "-ffreestanding",
    "-fno-builtin",
    "-fno-stack-protector",
    "-fno-strict-aliasing",
    "-fomit-frame-pointer",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fcf-protection=none",
    "-fno-plt",
    "-mno-red-zone",
    "-fno-align-functions",
    "-ffunction-sections",
    "-Wall",
    "-Wextra",
    "-Werror",
];

/// The files that every recorded call passes through. They are compiled for speed, the others for
/// size.
const HOT: &[&str] = &[
    "record.c",
    "text.c",
    "shape.c",
    "open.c",
    "hash.c",
    "instructions.c",
    "stream.c",
    "calls.c",
    "hooks.c",
    "returns.c",
];

/// Files that need no unwind tables. They call no function from which a cancelled or exiting thread
/// unwinds, and no code of the program.
const NEVER_UNWOUND: &[&str] = &[
    "attach.c",
    "begin.c",
    "broker.c",
    "calls.c",
    "chunks.c",
    "confined.c",
    "daemon.c",
    "durable.c",
    "entries.c",
    "environ.c",
    "exec.c",
    "files.c",
    "filter.c",
    "hash.c",
    "hooks.c",
    "instructions.c",
    "line.c",
    "load.c",
    "loader.c",
    "mark.c",
    "memory.c",
    "meta.c",
    "modules.c",
    "names.c",
    "number.c",
    "objects.c",
    "opaque.c",
    "peers.c",
    "private.c",
    "own_link.c",
    "preserve.c",
    "procfs.c",
    "repair.c",
    "shape.c",
    "sleds.c",
    "slots.c",
    "record.c",
    "result.c",
    "returns.c",
    "sandbox.c",
    "sanitizer.c",
    "starts.c",
    "stat.c",
    "stream.c",
    "streams.c",
    "symbols.c",
    "namespaces.c",
    "targets.c",
    "text.c",
    "values.c",
    "verdicts.c",
];

const LINK: &[&str] = &[
    "-shared",
    "-nostdlib",
    "-s",
    "-Wl,--hash-style=gnu",
    "-Wl,--build-id=none",
    "-Wl,--eh-frame-hdr",
    "-Wl,--gc-sections",
    "-Wl,-Bsymbolic",
    "-Wl,-z,norelro",
    "-Wl,-z,initfirst",
    "-Wl,-z,noexecstack",
    "-Wl,-z,max-page-size=4096",
];

const CLIENT: &[&str] = &[
    "-Os",
    "-fno-pic",
    "-fno-asynchronous-unwind-tables",
    "-static",
    "-no-pie",
    "-nostdlib",
    "-s",
    "-Wl,--build-id=none",
    "-Wl,--gc-sections",
    "-Wl,-z,noexecstack",
    "-Wl,-z,norelro",
    "-Wl,-z,max-page-size=4096",
];

fn main() {
    let source = Path::new("c");
    let out = PathBuf::from(need("OUT_DIR"));
    let include = PathBuf::from(need("DEP_BACKSTORY_ABI_INCLUDE"));
    println!("cargo:rerun-if-env-changed=CC");
    println!("cargo:rerun-if-changed={}", source.display());
    println!("cargo:rerun-if-changed={}", include.display());
    let arch = need("CARGO_CFG_TARGET_ARCH");
    assert!(
        arch == "x86_64",
        "the recorder knows x86_64 only, not {}",
        arch.to_string_lossy()
    );

    let script = out.join("home.ld");
    write(
        &script,
        &linker_script(&source.join("home.ld"), &include.join("backstory_abi.h")),
    );
    let plain = sources(source);
    library(&out.join("recorder.so"), &plain, &[], &include, &script);
    let functions = [plain.clone(), sources(&source.join("functions"))].concat();
    let defined = ["-DBS_FUNCTIONS"];
    let to = out.join("functions.so");
    library(&to, &functions, &defined, &include, &script);
    compress(&to);
    let auto = [plain.clone(), sources(&source.join("auto"))].concat();
    let to = out.join("auto.so");
    library(&to, &auto, &["-DBS_AUTO"], &include, &script);
    compress(&to);
    let deep = [plain, sources(&source.join("deep"))].concat();
    let defined = ["-DBS_DEEP"];
    let to = out.join("deep.so");
    library(&to, &deep, &defined, &include, &script);
    compress(&to);

    client(&out.join("client"), &include);
    let empty = out.join("empty.c");
    write(&empty, "");
    let twin = out.join("twin32.so");
    run(compiler()
        .args(["-m32", "-shared", "-nostdlib", "-s", "-Wl,--build-id=none"])
        .arg(&empty)
        .arg("-o")
        .arg(twin));
}

/// Compiles and links a library. `defined` are further options of the compiler.
fn library(to: &Path, files: &[PathBuf], defined: &[&str], include: &Path, script: &Path) {
    let objects = to.with_extension("objects");
    fs::create_dir_all(&objects)
        .unwrap_or_else(|e| panic!("can't make {}: {e}", objects.display()));
    let mut built = Vec::new();
    for file in files {
        let object = objects
            .join(file.file_name().unwrap_or_default())
            .with_extension("o");
        let is_one_of = |list: &[&str]| list.iter().any(|name| file.ends_with(name));
        let unwound = !is_one_of(NEVER_UNWOUND);
        run(compiler()
            .args(COMPILE)
            .args(defined)
            .arg(if is_one_of(HOT) { "-O2" } else { "-Os" })
            .arg(if unwound {
                "-fasynchronous-unwind-tables"
            } else {
                "-fno-asynchronous-unwind-tables"
            })
            .arg("-I")
            .arg(include)
            .arg("-c")
            .arg(file)
            .arg("-o")
            .arg(&object));
        built.push(object);
    }
    let mut at_home = OsString::from("-Wl,-T,");
    at_home.push(script);
    run(compiler()
        .args(LINK)
        .arg(at_home)
        .arg("-o")
        .arg(to)
        .args(&built));
}

/// Compiles and links the broker's client: a static program. Its strings are those of the recorder.
fn client(to: &Path, include: &Path) {
    println!("cargo:rerun-if-changed=client");
    run(compiler()
        .args(COMPILE)
        .args(CLIENT)
        .arg("-I")
        .arg(include)
        .args(["client/client.c", "c/text.c", "-o"])
        .arg(to));
}

/// Writes a file as gzip beside it. Equal files give equal bytes.
fn compress(file: &Path) {
    let content = fs::read(file).unwrap_or_else(|e| panic!("can't read {}: {e}", file.display()));
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let written = to.write_all(&content).and_then(|()| to.finish());
    let packed = file.with_extension("so.gz");
    let done = written.and_then(|bytes| fs::write(&packed, bytes));
    done.unwrap_or_else(|e| panic!("can't write {}: {e}", packed.display()));
}

fn need(name: &str) -> OsString {
    match env::var_os(name) {
        Some(value) => value,
        None => panic!("cargo did not set {name}"),
    }
}

/// Returns the linker script with the address from the header.
fn linker_script(script: &Path, header: &Path) -> String {
    let header = read(header);
    let define = header
        .lines()
        .find_map(|line| line.strip_prefix("#define BS_HOME "));
    let Some(address) = define.and_then(|rest| rest.split("ull").next()) else {
        panic!("the header has no BS_HOME");
    };
    read(script).replace("BS_HOME", address)
}

/// Returns all sources in a fixed order, so that each build gives the same library.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) => panic!("can't list {}: {e}", folder.display()),
    };
    let is_source = |p: &PathBuf| p.extension().is_some_and(|e| e == "c" || e == "S");
    let mut files: Vec<_> = entries
        .flatten()
        .map(|e| e.path())
        .filter(is_source)
        .collect();
    files.sort();
    files
}

fn compiler() -> Command {
    Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

fn run(command: &mut Command) {
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{command:?} failed: {status}"),
        Err(e) => panic!(
            "can't run {:?} (a C compiler is needed; set CC): {e}",
            command.get_program()
        ),
    }
}

fn read(path: &Path) -> String {
    match fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) => panic!("can't read {}: {e}", path.display()),
    }
}

fn write(path: &Path, text: &str) {
    if let Err(e) = fs::write(path, text) {
        panic!("can't write {}: {e}", path.display());
    }
}
