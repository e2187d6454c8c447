//! The byte engine follows bytes on every path that a program can take.
//!
//! Each program of `tests/programs` writes its input backwards, so that the source of each output
//! byte is known. Where it is not, a second engine is asked: clang's DataFlowSanitizer.
#![allow(clippy::unwrap_used)]
#![allow(clippy::expect_used)] // a test fails by a panic

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use backstory_bytes::{ByteFlow, Origins};
use backstory_testkit::byte_engine;
use backstory_testkit::need::{needs, skipped};

const SIZE: u64 = 256;

/// The built engine. `None`: this machine lacks what it is built from.
fn engine() -> Option<&'static Path> {
    static ENGINE: OnceLock<Option<PathBuf>> = OnceLock::new();
    ENGINE
        .get_or_init(|| byte_engine::built(Path::new(env!("CARGO_TARGET_TMPDIR"))))
        .as_deref()
}

/// Compiles a program. `None`: these flags do not work here.
fn compiled(compiler: &str, directory: &Path, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = directory.join("program");
    let made = Command::new(compiler)
        .args(["-O1", "-pthread", "-o"])
        .arg(&program)
        .args(flags)
        .arg(source.join(name).with_extension("c"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    if ["cannot find -l", "libclang_rt", "dfsan_interface.h"]
        .iter()
        .any(|what| said.contains(what))
    {
        skipped(name, &said);
        return None;
    }
    assert!(made.status.success(), "{said}");
    Some(program)
}

fn input() -> Vec<u8> {
    (0..SIZE).map(|at| (at * 7 + 3) as u8).collect()
}

/// A program that ran under the engine in its own directory.
struct Ran {
    directory: tempfile::TempDir,
    flow: ByteFlow,
}

impl Ran {
    /// Runs one of the programs that write their input backwards.
    fn start(name: &str, flags: &[&str], options: &[&str]) -> Option<Ran> {
        let ran = Ran::any(name, flags, options)?;
        let backwards: Vec<u8> = input().into_iter().rev().collect();
        let out = fs::read(ran.directory.path().join("out")).unwrap();
        assert_eq!(out, backwards, "{name}: the program's own output");
        Some(ran)
    }

    fn any(name: &str, flags: &[&str], options: &[&str]) -> Option<Ran> {
        Ran::of_input(name, flags, options, &input())
    }

    fn of_input(name: &str, flags: &[&str], options: &[&str], input: &[u8]) -> Option<Ran> {
        let engine = engine()?;
        let directory = tempfile::tempdir().unwrap();
        let program = compiled("gcc", directory.path(), name, flags)?;
        fs::write(directory.path().join("in"), input).unwrap();
        let record = directory.path().join("record");
        fs::create_dir(&record).unwrap();
        let done = Command::new("valgrind")
            .args(["-q", "--tool=bytes", "--trace-children=yes"])
            .arg(format!("--output={}", record.display()))
            .args(options)
            .arg(program)
            .env("VALGRIND_LIB", engine)
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{name}: {done:?}");
        let flow = ByteFlow::read(&record).unwrap();
        Some(Ran { directory, flow })
    }

    fn origins(&self, at: u64) -> Origins {
        let path = self.directory.path().join("out");
        let path = path.canonicalize().unwrap();
        let bytes = path.as_os_str().as_encoded_bytes();
        let answer = self.flow.origins(bytes, at..at + 1);
        answer.expect("the program wrote out")
    }

    /// The bytes of `in` that a byte of `out` came from.
    fn sources(&self, at: u64) -> Vec<u64> {
        let mut all = Vec::new();
        for source in self.origins(at).sources {
            assert!(source.entity.path.ends_with(b"/in"), "{source:?}");
            for set in [source.copied, source.computed] {
                all.extend(set.iter().flatten());
            }
        }
        all
    }
}

/// Each byte of the output has exactly its own source.
fn is_followed(name: &str, flags: &[&str]) {
    let Some(ran) = Ran::start(name, flags, &[]) else {
        return;
    };
    for at in 0..SIZE {
        assert_eq!(ran.sources(at), [SIZE - 1 - at], "{name}, byte {at}");
    }
}

#[test]
fn bytes_are_followed_in_one_thread_in_stripped_and_static_programs() {
    is_followed("plain", &[]);
    is_followed("plain", &["-s", "-static", "-O2"]);
}

#[test]
fn a_byte_that_is_stored_just_before_a_call_is_followed() {
    is_followed("last", &[]);
}

#[test]
fn bytes_are_followed_through_instructions_for_strings() {
    is_followed("strings", &[]);
}

#[test]
fn bytes_are_followed_through_threads_that_share_memory() {
    is_followed("threads", &[]);
}

#[test]
fn a_signal_handler_moves_bytes_and_leaves_the_registers_that_it_interrupts() {
    is_followed("signals", &[]);
    is_followed("jumps", &[]);
}

#[test]
fn bytes_are_followed_into_mapped_files() {
    is_followed("mapped", &[]);
}

#[test]
fn bytes_are_followed_where_the_kernel_moves_them() {
    is_followed("moves", &[]);
}

#[test]
fn bytes_are_followed_through_sockets_between_processes() {
    is_followed("sockets", &[]);
}

#[test]
fn a_child_has_the_bytes_of_its_parents_memory_and_passes_them_on() {
    is_followed("family", &[]);
}

#[test]
fn bytes_are_followed_through_code_that_the_program_wrote_and_through_vectors() {
    is_followed("code", &[]);
    is_followed("vectors", &["-mssse3"]);
}

/// The flags that compile for AVX-512, on a processor that has it.
fn wide_flags() -> Option<&'static [&'static str]> {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap();
    if ![" avx512bw ", " avx512_vbmi2 "]
        .iter()
        .all(|one| processors.contains(one))
    {
        skipped("AVX-512", "this processor does not have it");
        return None;
    }
    Some(&[
        "-mavx512f",
        "-mavx512bw",
        "-mavx512vl",
        "-mavx512dq",
        "-mprefer-vector-width=512",
    ])
}

#[test]
fn bytes_are_followed_through_instructions_that_valgrind_does_not_know() {
    if let Some(flags) = wide_flags() {
        is_followed("wide", flags);
    }
}

#[test]
fn unknown_instructions_that_a_program_replaces_are_followed_as_they_are_now() {
    if let Some(flags) = wide_flags() {
        is_followed("wide_code", flags);
    }
}

/// Part of a block of `in`: its number, and the bytes.
fn part(block: u64, bytes: std::ops::Range<u64>) -> Vec<u64> {
    bytes.map(|byte| 64 * block + byte).collect()
}

/// The element of each of these blocks that has a byte.
fn elements(blocks: &[u64], size: u64, byte: u64) -> Vec<u64> {
    let start = byte / size * size;
    let of_block = |&block: &u64| part(block, start..start + size);
    blocks.iter().flat_map(of_block).collect()
}

#[test]
fn each_kind_of_unknown_instruction_passes_the_sources_of_its_operands_on() {
    let Some(flags) = wide_flags() else {
        return;
    };
    let Some(ran) = Ran::any("wide_flows", flags, &[]) else {
        return;
    };
    let (a, b, c) = (0, 1, 2);
    for byte in 0..64 {
        let chosen = [a, b][usize::from(byte / 4 % 2 == 0)];
        let expected = [
            Some(elements(&[a, b], 4, byte)),
            Some(part(chosen, byte..byte + 1)),
            Some(elements(&[a], 8, byte)),
            None,
            None,
            Some(if byte < 16 { part(a, 0..4) } else { vec![] }),
            Some(if byte < 8 {
                vec![]
            } else {
                part(a, byte..byte + 1)
            }),
            Some(part(a, byte / 4..byte / 4 + 1)),
            Some(part(a, byte % 4..byte % 4 + 1)),
        ];
        for (case, expected) in (0..).zip(expected) {
            let found = ran.sources(64 * case + byte);
            if let Some(expected) = expected {
                assert_eq!(found, expected, "case {case}, byte {byte}");
            }
        }
        // These mix: at least the true sources are there. The third case empties what is behind 16.
        let moved = match byte {
            0..8 => part(c, byte..byte + 1),
            8..16 => part(a, byte % 8..byte % 8 + 1),
            _ => Vec::new(),
        };
        for (case, least) in [(3, moved), (4, elements(&[a, b, c], 2, byte))] {
            let found = ran.sources(64 * case + byte);
            let missing = least.iter().find(|one| !found.contains(one));
            assert!(missing.is_none(), "case {case}, byte {byte}: {found:?}");
        }
    }
}

#[test]
fn a_program_of_unknown_instructions_has_all_sources_of_the_same_one_without() {
    let Some(flags) = wide_flags() else {
        return;
    };
    let (input, flags) = (rows(), [flags, &["-O3"]].concat());
    let run = |flags: &[&str]| Ran::of_input("generators", flags, &[], &input);
    let (Some(plain), Some(wide)) = (run(&[]), run(&flags)) else {
        return;
    };
    let out = |ran: &Ran| fs::read(ran.directory.path().join("out")).unwrap();
    assert_eq!(out(&plain), out(&wide));
    for at in 0..out(&plain).len() as u64 {
        let found = wide.sources(at);
        for source in plain.sources(at) {
            assert!(found.contains(&source), "byte {at}: {source} of {found:?}");
        }
    }
}

#[test]
fn sets_that_nothing_refers_to_do_not_count_against_the_limit() {
    let Some(ran) = Ran::start("sums", &[], &["--sets=5000"]) else {
        return;
    };
    for at in 0..SIZE {
        let mut both = [at, SIZE - 1 - at];
        both.sort_unstable();
        assert_eq!(ran.sources(at), both, "byte {at}");
        assert!(!ran.origins(at).coarse);
    }
}

#[test]
fn a_program_with_more_sets_than_the_limit_goes_on_with_coarser_ranges() {
    let Some(ran) = Ran::start("sums", &["-DKEEP=1"], &["--sets=5000"]) else {
        return;
    };
    for at in 0..SIZE {
        let found = ran.sources(at);
        assert!(found.contains(&at) && found.contains(&(SIZE - 1 - at)));
        assert!(ran.origins(at).coarse);
    }
}

/// The bytes that decided about a byte of `out`, and the bytes that it was made of.
fn decided_and_made(ran: &Ran, at: u64) -> (Vec<u64>, Vec<u64>) {
    let (mut decided, mut made) = (Vec::new(), Vec::new());
    for source in ran.origins(at).sources {
        decided.extend(source.implicit.iter().flatten());
        made.extend(source.copied.iter().chain(source.computed.iter()).flatten());
    }
    (decided, made)
}

#[test]
fn what_branches_and_comparisons_decide_is_followed_if_it_is_asked_for() {
    for flags in [&["-O1"], &["-O2"]] {
        let options = ["--implicit=yes"];
        let (Some(plain), Some(ran)) = (
            Ran::any("decisions", flags, &[]),
            Ran::any("decisions", flags, &options),
        ) else {
            return;
        };
        let small: Vec<u64> = (0..SIZE).filter(|at| (at * 7 + 3) as u8 <= 3).collect();
        let expected = [small, vec![9, 10], vec![20], vec![], vec![], vec![40]];
        for (at, expected) in (0..).zip(expected) {
            assert_eq!(
                decided_and_made(&ran, at).0,
                expected,
                "{flags:?}, byte {at}"
            );
            let nothing: Vec<u64> = vec![];
            assert_eq!(decided_and_made(&plain, at).0, nothing, "byte {at}");
            // The explicit flows are those without the option.
            let made = decided_and_made(&plain, at).1;
            assert_eq!(decided_and_made(&ran, at).1, made, "{flags:?}, byte {at}");
        }
        assert_eq!(decided_and_made(&ran, 4).1, [30]);
    }
}

#[test]
fn programs_have_the_same_explicit_flows_if_decisions_are_followed() {
    for name in [
        "plain", "threads", "signals", "jumps", "mapped", "moves", "sockets", "family", "code",
    ] {
        let Some(ran) = Ran::start(name, &[], &["--implicit=yes"]) else {
            return;
        };
        for at in 0..SIZE {
            assert_eq!(
                decided_and_made(&ran, at).1,
                [SIZE - 1 - at],
                "{name}, byte {at}"
            );
        }
    }
}

#[test]
fn the_engine_agrees_with_the_data_flow_sanitizer() {
    let Some(ran) = Ran::any("oracle", &[], &[]) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let flags = ["-fsanitize=dataflow", "-DORACLE"];
    if !needs("the second engine", &["clang"]) {
        return;
    }
    let Some(oracle) = compiled("clang", directory.path(), "oracle", &flags) else {
        return;
    };
    fs::write(directory.path().join("in"), input()).unwrap();
    let mut command = Command::new(oracle);
    let done = command.current_dir(directory.path()).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let labels = fs::read(directory.path().join("out")).unwrap();
    assert_eq!(labels.len(), 20);
    for (at, label) in (0..).zip(labels) {
        let known: Vec<u64> = (0..8).filter(|bit| label >> bit & 1 == 1).collect();
        assert_eq!(ran.sources(at), known, "byte {at}");
    }
}

/// Rows as in the generators of the suite: key, letters, digits.
fn rows() -> Vec<u8> {
    let mut seed = 3u64;
    let mut next = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((seed >> 33) % below) as u8
    };
    let mut all = Vec::new();
    for _ in 0..8 {
        all.push(b'A' + next(26));
        all.extend((0..3).map(|_| b"abmnxyz"[usize::from(next(7))]));
        all.extend((0..4).map(|_| b'0' + next(10)));
    }
    all
}

#[test]
fn the_engine_agrees_with_the_data_flow_sanitizer_on_all_generators() {
    let input = rows();
    let Some(ran) = Ran::of_input("generators", &[], &[], &input) else {
        return;
    };
    if !needs("the second engine", &["clang"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let flags = ["-fsanitize=dataflow", "-DORACLE"];
    let Some(oracle) = compiled("clang", directory.path(), "generators", &flags) else {
        return;
    };
    fs::write(directory.path().join("in"), &input).unwrap();
    let length = fs::read(ran.directory.path().join("out")).unwrap().len();
    let mut known = vec![Vec::new(); length];
    // The sanitizer has 8 labels, so that it follows 8 bytes at once.
    for first in (0..input.len() as u64).step_by(8) {
        let mut command = Command::new(&oracle);
        let command = command.current_dir(directory.path()).arg(first.to_string());
        let done = command.output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let labels = fs::read(directory.path().join("out")).unwrap();
        assert_eq!(labels.len(), length);
        for (known, label) in known.iter_mut().zip(labels) {
            known.extend(
                (0..8)
                    .filter(|bit| label >> bit & 1 == 1)
                    .map(|bit| first + bit),
            );
        }
    }
    assert!(known.iter().any(|known: &Vec<u64>| known.len() > 8));
    for (at, known) in (0..).zip(known) {
        assert_eq!(ran.sources(at), known, "byte {at}");
    }
}
