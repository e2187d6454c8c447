//! Tests of the library file: its parts, and that it wraps every function of libc that it must
//! wrap.

use backstory_abi as abi;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

fn tool(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn library() -> &'static str {
    crate::harness::library().to_str().unwrap()
}

#[test]
fn the_gate_is_where_the_guard_looks_for_it() {
    let end = (backstory_recorder::GATE - abi::HOME) as usize;
    assert_eq!(
        backstory_recorder::LIBRARY[end - 2..end],
        [0x0f, 0x05],
        "syscall"
    );
}

#[test]
fn the_library_needs_no_other_and_hardly_any_relocation() {
    let dynamic = tool("readelf", &["-dW", library()]);
    assert!(!dynamic.contains("(NEEDED)"), "{dynamic}");
    assert!(dynamic.contains("INITFIRST"), "{dynamic}");
    let segments = tool("readelf", &["-lW", library()]);
    assert_eq!(
        segments
            .lines()
            .filter(|l| l.trim_start().starts_with("LOAD"))
            .count(),
        2,
        "{segments}"
    );
    assert!(segments.contains("0x0000550000010000"), "{segments}");
    let relocations = tool("readelf", &["-rW", library()]);
    assert!(
        relocations
            .lines()
            .filter(|l| l.contains("R_X86_64"))
            .count()
            <= 12,
        "{relocations}"
    );
    assert!(!relocations.contains("JUMP_SLO"), "{relocations}");
}

#[test]
fn the_recorder_needs_no_symbol_of_libc() {
    let undefined = tool("nm", &["-D", "--undefined-only", library()]);
    let asked: BTreeSet<_> = undefined.lines().map(|l| l.trim()).collect();
    let allowed = BTreeSet::from([
        "w __errno_location",
        "w dlsym",
        "w environ",
        "w gnu_get_libc_version",
    ]);
    assert_eq!(asked, allowed);
}

#[test]
fn a_programs_start_maps_the_library_with_two_calls() {
    let segments = tool("readelf", &["-lW", library()]);
    let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    let written = segments
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|words| words.first() == Some(&"LOAD") && words.contains(&"RW"))
        .unwrap();
    let (start, in_file, in_memory) = (number(written[2]), number(written[4]), number(written[5]));
    let page = |address: u64| (address - 1) / 4096;
    assert_eq!(
        page(start + in_file),
        page(start + in_memory),
        "what reaches beyond the file's last page is a third mapping: {segments}"
    );
}

#[test]
fn the_library_is_small() {
    let size = backstory_recorder::LIBRARY.len();
    // 24 pages. Programs share them.
    assert!(size <= 96 * 1024, "{size} bytes");
    assert!(backstory_recorder::TWIN32.len() < 16 * 1024);
    assert_eq!(backstory_recorder::TWIN32[4], 1, "32-bit");
}

/// The public names in a library's dynamic symbol table.
fn defined(path: &str) -> BTreeSet<String> {
    let table = tool(
        "nm",
        &["-D", "--defined-only", "--with-symbol-versions", path],
    );
    let mut names = BTreeSet::new();
    for line in table.lines() {
        let mut words = line.split_whitespace().skip(1);
        let (Some(kind), Some(name)) = (words.next(), words.next()) else {
            continue;
        };
        if "TWi".contains(kind) && !name.contains("GLIBC_PRIVATE") {
            names.insert(name.split('@').next().unwrap().to_owned());
        }
    }
    names
}

/// Content of `symbols.txt`: families of names, and the names in them that are not wrapped, with
/// the reason.
fn symbols() -> (Vec<String>, BTreeMap<String, String>) {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("symbols.txt")).unwrap();
    let mut families = Vec::new();
    let mut excused = BTreeMap::new();
    for line in text
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        if let Some(words) = line.strip_prefix("family ") {
            families.extend(words.split_whitespace().map(str::to_owned));
            continue;
        }
        let (names, reason) = line
            .split_once(": ")
            .unwrap_or_else(|| panic!("no reason: {line}"));
        for name in names.split_whitespace() {
            assert!(
                excused.insert(name.to_owned(), reason.to_owned()).is_none(),
                "{name} stands there twice"
            );
        }
    }
    (families, excused)
}

fn is_excused(name: &str, excused: &BTreeMap<String, String>) -> bool {
    excused.keys().any(|k| {
        k.strip_suffix('*')
            .map_or(k == name, |prefix| name.starts_with(prefix))
    })
}

#[test]
fn every_function_of_libc_is_wrapped_or_excused() {
    let libc = tool("cc", &["-print-file-name=libc.so.6"]);
    let libc = defined(libc.trim());
    let ours = defined(library());
    let (families, excused) = symbols();
    let concerns = |name: &&String| families.iter().any(|f| name.contains(f.as_str()));
    let forgotten: Vec<_> = libc
        .iter()
        .filter(concerns)
        .filter(|n| !ours.contains(*n) && !is_excused(n, &excused))
        .collect();
    assert!(
        forgotten.is_empty(),
        "neither wrapped nor listed in symbols.txt: {forgotten:?}"
    );
    let both: Vec<_> = ours.iter().filter(|n| excused.contains_key(*n)).collect();
    assert!(both.is_empty(), "wrapped, yet listed: {both:?}");
    let unknown: Vec<_> = ours
        .iter()
        .filter(|n| !libc.contains(*n) && !n.starts_with("__exec") && *n != "backstory_mark")
        .collect();
    assert!(
        unknown.is_empty(),
        "wrapped, but no function of libc: {unknown:?}"
    );
}

#[test]
fn every_function_that_a_sanitizer_intercepts_leaves_room_for_a_jump() {
    let room: BTreeSet<_> = rooms().into_iter().collect();
    for runtime in ["libasan.so", "libtsan.so", "liblsan.so", "libubsan.so"] {
        let path = tool("gcc", &[&format!("-print-file-name={runtime}")]);
        if !path.trim().starts_with('/') {
            backstory_testkit::need::skipped(
                "functions of sanitizers",
                &format!("needs {runtime}"),
            );
            continue;
        }
        let without: Vec<_> = defined(path.trim())
            .intersection(&defined(library()))
            .filter(|name| !room.contains(*name))
            .cloned()
            .collect();
        assert!(without.is_empty(), "{runtime}: {without:?}");
    }
}

/// The library's functions that begin with two instructions without effect.
fn rooms() -> Vec<String> {
    let code = backstory_recorder::LIBRARY;
    let symbols = tool("nm", &["-D", "--defined-only", library()]);
    let lines = symbols
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>());
    lines
        .filter_map(|words| {
            let at = u64::from_str_radix(words.first()?, 16).ok()? - abi::HOME;
            let entry = code.get(at as usize..at as usize + 2)?;
            (entry == [0x90, 0x90]).then(|| words.last().map(|name| name.to_string()))?
        })
        .collect()
}
