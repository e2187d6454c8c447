//! Programs of each kind, compiled here, and bytes that are no program.
#![allow(clippy::unwrap_used)]

use backstory_abi::{NO_PATH, path_hash};
use backstory_plain::{
    Classifier, ExaminedLoad, NotPlain, Object, Verdict, find_certain_entry, find_entry, is_go,
};
use proptest::prelude::*;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with programs, on a machine whose libc is known.
struct Workshop {
    dir: tempfile::TempDir,
    classifier: Classifier,
}

impl Workshop {
    /// `None` where no program is plain.
    fn open() -> Option<Workshop> {
        let dir = tempfile::tempdir().unwrap();
        let classifier = Classifier::of_machine();
        let mut shop = classifier.map(|classifier| Workshop { dir, classifier });
        let plain = shop.as_mut().is_some_and(|shop| {
            let made = shop.compile("plain", "int main(void) { return 0; }", &[]);
            shop.classifier.program(&made).is_ok()
        });
        if !plain {
            backstory_testkit::need::skipped("plain programs", "libc is not of a known release");
        }
        shop.filter(|_| plain)
    }

    fn compile(&self, name: &str, text: &str, options: &[&str]) -> PathBuf {
        let source = self.dir.path().join(format!("{name}.c"));
        fs::write(&source, text).unwrap();
        let made = self.dir.path().join(name);
        let status = Command::new("cc")
            .arg(&source)
            .arg("-o")
            .arg(&made)
            .args(options)
            .status()
            .unwrap();
        assert!(status.success(), "{name}");
        made
    }

    fn verdict(&mut self, name: &str, text: &str, options: &[&str]) -> Verdict {
        let made = self.compile(name, text, options);
        self.classifier.program(&made)
    }
}

#[test]
fn a_program_that_could_evade_the_recorder_is_not_plain() {
    let Some(mut shop) = Workshop::open() else {
        return;
    };
    let enters = |verdict| matches!(verdict, Err(NotPlain::EntersKernel { .. }));
    let call =
        "long a = 39; __asm__ volatile(\"syscall\" : \"+a\"(a) :: \"rcx\", \"r11\", \"memory\");";
    let raw = format!("int main(void) {{ {call} return a > 0; }}");
    assert!(enters(shop.verdict("raw", &raw, &[])));
    let int80 = "int main(void) { long a = 20; __asm__ volatile(\"int $0x80\" : \"+a\"(a)); return a > 0; }";
    assert!(enters(shop.verdict("int80", int80, &[])));
    // A byte that disassemblers take for a prefix hides nothing.
    let prefixed = raw.replace("\"syscall\"", "\".byte 0x48, 0x0f, 0x05\"");
    assert!(enters(shop.verdict("prefixed", &prefixed, &[])));
    let nothing = "int main(void) { return 0; }";
    let fixed = shop.verdict("static", nothing, &["-static"]);
    assert!(matches!(fixed, Err(NotPlain::OtherLoader(_))), "{fixed:?}");
    let path = shop.verdict("path", nothing, &["-Wl,-rpath,/nowhere"]);
    assert!(matches!(path, Err(NotPlain::Search(_))), "{path:?}");
    let early = "static void f(void) {} __attribute__((section(\".preinit_array\"), used)) \
        static void (*const p)(void) = f; int main(void) { return 0; }";
    let early = shop.verdict("early", early, &[]);
    assert!(matches!(early, Err(NotPlain::EarlyCode(_))), "{early:?}");
    let chosen = "static int g(void) { return 0; } static void *choose(void) { return g; } \
        int f(void) __attribute__((ifunc(\"choose\"))); int main(void) { return f(); }";
    let chosen = shop.verdict("chosen", chosen, &[]);
    assert!(matches!(chosen, Err(NotPlain::EarlyCode(_))), "{chosen:?}");
    let entry = "#include <stdlib.h>\nvoid first(void) { exit(0); } int main(void) { return 0; }";
    let entry = shop.verdict("entry", entry, &["-Wl,-e,first"]);
    assert!(matches!(entry, Err(NotPlain::EarlyCode(_))), "{entry:?}");
    let unseen = "#define _GNU_SOURCE\n#include <dlfcn.h>\n\
        int main(void) { return dlmopen(LM_ID_NEWLM, \"a\", RTLD_NOW) != 0; }";
    let unseen = shop.verdict("unseen", unseen, &[]);
    assert!(
        matches!(&unseen, Err(NotPlain::Unseen { function, .. }) if function == "dlmopen"),
        "{unseen:?}"
    );
}

#[test]
fn bytes_of_an_entry_inside_of_other_instructions_do_not_count() {
    let Some(mut shop) = Workshop::open() else {
        return;
    };
    let text = "volatile int a; int main(void) { a = 0x90050f90; a = 0x9080cd90; return 0; }";
    let made = shop.compile("numbers", text, &[]);
    let bytes = fs::read(&made).unwrap();
    assert!(
        bytes
            .windows(4)
            .any(|four| four == [0x90, 0x0f, 0x05, 0x90])
    );
    assert_eq!(shop.classifier.program(&made), Ok(()));
    assert_eq!(certain_entry(&made), None);
}

fn certain_entry(program: &Path) -> Option<u64> {
    let bytes = fs::read(program).unwrap();
    find_certain_entry(&Object::parse(&bytes).unwrap())
}

#[test]
fn an_instruction_is_certain_in_a_described_function_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let compile = |name: &str, text: &str| {
        let made = dir.path().join(name);
        let source = made.with_extension("c");
        fs::write(&source, text).unwrap();
        let mut cc = Command::new("cc");
        cc.arg(&source).arg("-o").arg(&made);
        assert!(cc.status().unwrap().success(), "{name}");
        made
    };
    let call =
        "long a = 39; __asm__ volatile(\"syscall\" : \"+a\"(a) :: \"rcx\", \"r11\", \"memory\");";
    let raw = compile("raw", &format!("int main(void) {{ {call} return a < 0; }}"));
    assert!(certain_entry(&raw).is_some());
    // As a table that a library has among its code.
    let table = "__asm__(\".pushsection .text; .globl table; table: .byte 0x0f, 0x05; .skip 64; .popsection\"); \
        extern char table; int main(void) { return table == 0; }";
    assert_eq!(certain_entry(&compile("table", table)), None);
}

#[test]
fn a_library_decides_for_the_programs_that_need_it() {
    let Some(mut shop) = Workshop::open() else {
        return;
    };
    // The loader's cache does not have it, so the loader would look in directories.
    let library = shop.compile(
        "libown.so",
        "int own(void) { return 0; }",
        &["-shared", "-fPIC"],
    );
    let alone = shop.classifier.library(&library);
    assert!(alone.is_ok(), "{alone:?}");
    let text = "int own(void); int main(void) { return own(); }";
    let verdict = shop.verdict("user", text, &[library.to_str().unwrap()]);
    assert!(matches!(verdict, Err(NotPlain::Search(_))), "{verdict:?}");
}

/// Whether a process can load this library without the filter.
fn load(shop: &mut Workshop, library: &Path) -> ExaminedLoad {
    let mut file = File::open(library).unwrap();
    let path = library.as_os_str().as_bytes();
    shop.classifier.load(&mut file, library, path)
}

#[test]
fn a_library_is_loaded_plainly_only_if_all_that_it_needs_is_in_the_cache_and_plain() {
    let Some(mut shop) = Workshop::open() else {
        return;
    };
    let shared = ["-shared", "-fPIC"];
    let text = "#include <stdlib.h>\nvoid *own(void) { return malloc(1); }";
    let library = shop.compile("libown.so", text, &shared);
    let found = load(&mut shop, &library);
    assert!(found.verdict.plain.is_some(), "{found:?}");
    assert!(found.verdict.alone, "{found:?}");
    assert_eq!(found.verdict.path, NO_PATH, "the cache does not have it");
    let names = "#include <pwd.h>\nvoid *f(void) { return getpwnam(\"a\"); }";
    let names = shop.compile("libnames.so", names, &shared);
    let found = load(&mut shop, &names);
    assert!(
        found.verdict.plain.is_some_and(|acts| acts.connects),
        "{found:?}"
    );

    let user = [&shared[..], &[library.to_str().unwrap()]].concat();
    let calls = "void *own(void); void *f(void) { return own(); }";
    let user = shop.compile("libuser.so", calls, &user);
    let found = load(&mut shop, &user);
    assert!(
        matches!(found.reason, Some(NotPlain::Search(_))),
        "{found:?}"
    );
    let call = "void f(void) { __asm__ volatile(\"syscall\"); }";
    let raw = shop.compile("libraw.so", call, &shared);
    let found = load(&mut shop, &raw);
    let reason = found.reason;
    assert!(
        matches!(reason, Some(NotPlain::EntersKernel { .. })),
        "{reason:?}"
    );
    let program = shop.compile(
        "program",
        "int main(void) { return 0; }",
        &["-pie", "-fPIE"],
    );
    let found = load(&mut shop, &program);
    assert!(
        matches!(found.reason, Some(NotPlain::NotLoaded(_))),
        "{found:?}"
    );
}

/// A copy beside the C library of the process would make its calls where no redirection is.
#[test]
fn the_c_library_is_loaded_by_no_process_a_second_time() {
    let Some(mut shop) = Workshop::open() else {
        return;
    };
    let own = shop.classifier.load_by_name(b"libc.so.6").unwrap();
    assert!(
        matches!(own.reason, Some(NotPlain::Independent(_))),
        "{own:?}"
    );
    let copy = shop.dir.path().join("libother.so");
    fs::copy(OsStr::from_bytes(&own.paths[0]), &copy).unwrap();
    let found = load(&mut shop, &copy);
    assert!(
        matches!(found.reason, Some(NotPlain::Independent(_))),
        "{found:?}"
    );
    assert!(shop.classifier.load_by_name(b"libnone.so.1").is_none());
}

#[test]
fn a_name_in_the_cache_leads_to_a_library_and_its_path() {
    let Some(mut shop) = Workshop::open() else {
        return;
    };
    let found = shop.classifier.load_by_name(b"libm.so.6").unwrap();
    assert!(
        found.verdict.plain.is_some() && found.verdict.alone,
        "{found:?}"
    );
    assert_eq!(found.verdict.path, path_hash(&found.paths[0]));
    let again = load(
        &mut shop,
        Path::new("/usr/lib/../lib/x86_64-linux-gnu/libm.so.6"),
    );
    assert_eq!(again.verdict, found.verdict);
}

#[test]
fn a_script_is_as_plain_as_its_interpreter_and_privileges_are_never_plain() {
    let Some(mut shop) = Workshop::open() else {
        return;
    };
    let made = shop.dir.path().join("plain");
    let script = |name: &str, line: &str| {
        let path = shop.dir.path().join(name);
        fs::write(&path, line).unwrap();
        path
    };
    let first = script("first", &format!("#!{}\n", made.display()));
    let second = script("second", &format!("#! {} -x\n", first.display()));
    let none = script("none", "#!\n");
    let endless = shop.dir.path().join("endless");
    script("endless", &format!("#!{}\n", endless.display()));
    let text = script("text", "echo\n");
    assert_eq!(shop.classifier.program(&second), Ok(()));
    for path in [&none, &endless, &text] {
        let verdict = shop.classifier.program(path);
        assert!(
            matches!(verdict, Err(NotPlain::Foreign(_))),
            "{path:?}: {verdict:?}"
        );
    }
    fs::set_permissions(&made, Permissions::from_mode(0o4755)).unwrap();
    let raised = shop.classifier.program(&made);
    assert!(matches!(raised, Err(NotPlain::Privileged(_))), "{raised:?}");
    let absent = shop.classifier.program(Path::new("/nowhere"));
    assert!(matches!(absent, Err(NotPlain::Unreadable(_))), "{absent:?}");
}

/// This test's own executable, with a few bytes changed.
fn own() -> Vec<u8> {
    fs::read(std::env::current_exe().unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_read_without_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = Object::parse(&bytes).map(|object| find_entry(&object));
        let _ = Object::parse(&bytes).map(|object| find_certain_entry(&object));
        is_go(&bytes);
        let head = [0x7f, b'E', b'L', b'F', 2, 1];
        if bytes.len() > 64 {
            bytes[..6].copy_from_slice(&head);
            (bytes[18], bytes[19], bytes[54], bytes[55]) = (62, 0, 56, 0);
            let _ = Object::parse(&bytes).map(|object| find_entry(&object));
            is_go(&bytes);
        }
    }
}

#[test]
fn a_damaged_program_is_read_without_harm() {
    let whole = own();
    let step = whole.len() / 40 + 1;
    for length in (0..whole.len()).step_by(step) {
        let _ = Object::parse(&whole[..length]);
    }
    let mut damaged = whole;
    for at in (0..4096.min(damaged.len())).step_by(7) {
        let before = std::mem::replace(&mut damaged[at], 0xff);
        let _ = Object::parse(&damaged);
        damaged[at] = before;
    }
}
