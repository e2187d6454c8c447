//! The functions of a library whose calls can be redirected, although it has no hooks.
//!
//! In: a library, and the patterns that name it. Out: the addresses of the functions that it
//! exports, and the reason why calls of another function cannot be redirected.
//!
//! Invariant: a function that returns twice, or that switches stacks, is never redirected: the
//! recorder replaces the address that a redirected function returns to.

use std::collections::{BTreeMap, BTreeSet};

use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolFlags};

use crate::patterns::{FilePattern, matches};

/// Why calls of functions are not redirected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnredirectedReason {
    /// The file has no such function.
    NoFunction,
    /// The function is not in the table of dynamic symbols.
    NotExported,
    /// The file has the function, and neither hooks nor sleds.
    NotInstrumented,
    /// The library chooses one of several functions when it is loaded (`STT_GNU_IFUNC`).
    ChosenAtLoad,
    /// The function returns twice, or to another stack.
    ReturnsElsewhere,
    /// The library is a part of the C library, of the unwinder, or of a sanitizer.
    OfTheRuntime,
}

/// The result of a pattern in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternFinding {
    /// Index of the pattern.
    pub index: usize,
    /// Number of functions whose calls are recorded.
    pub functions: usize,
    /// The reason if the number is 0.
    pub reason: UnredirectedReason,
}

/// Libraries that each process needs before and after its functions can be redirected.
const RUNTIMES: &[&str] = &[
    "ld-*",
    "libc.so*",
    "libc.musl*",
    "libpthread.so*",
    "libdl.so*",
    "librt.so*",
    "libgcc_s.so*",
    "libasan.so*",
    "libtsan.so*",
    "libubsan.so*",
    "liblsan.so*",
    "libhwasan.so*",
];
/// Functions that do not return as others do, or that have a convention of their own.
const ELSEWHERE: &[&str] = &[
    "setjmp",
    "_setjmp",
    "sigsetjmp",
    "__sigsetjmp",
    "vfork",
    "__vfork",
    "*getcontext",
    "*setcontext",
    "*swapcontext",
    "*makecontext",
    "mcount",
    "_mcount",
    "__fentry__",
    "__morestack*",
    "__tls_get_addr",
];
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const DT_SONAME: u64 = 14;
/// The hook of gcc: a library that calls it needs no redirection.
const HOOK: &str = "__cyg_profile_func_enter";

/// The dynamic symbols of a file that are functions.
#[derive(Debug, Default)]
pub(crate) struct Exports<'a> {
    pub soname: Option<String>,
    /// The code calls gcc's hooks.
    pub has_hooks: bool,
    functions: Vec<(&'a str, u64)>,
    /// Functions of which one is chosen at load, each with the address of the code that chooses.
    chosen_at_load: Vec<(&'a str, u64)>,
}

/// The meaning of the patterns for a library.
#[derive(Debug, Default)]
pub(crate) struct Redirections<'a> {
    /// Addresses of the functions whose calls are redirected.
    pub targets: BTreeSet<u64>,
    /// The same for functions that are chosen at load, by the code that chooses, with their names.
    pub chosen: BTreeMap<u64, &'a str>,
    pub findings: Vec<PatternFinding>,
}

impl<'a> Exports<'a> {
    pub(crate) fn read(elf: &object::File<'a>) -> Exports<'a> {
        let mut exports = Exports {
            soname: soname(elf),
            ..Exports::default()
        };
        for symbol in elf.dynamic_symbols() {
            let (Ok(name), SymbolFlags::Elf { st_info, .. }) = (symbol.name(), symbol.flags())
            else {
                continue;
            };
            match (symbol.is_undefined(), st_info.0 & 15) {
                (true, _) => exports.has_hooks |= name == HOOK,
                (false, STT_FUNC) => exports.functions.push((name, symbol.address())),
                (false, STT_GNU_IFUNC) => exports.chosen_at_load.push((name, symbol.address())),
                _ => {}
            }
        }
        exports
    }

    /// Applies the patterns that name the file. `functions` are the functions of the file that
    /// match any pattern, exported or not, each with its names.
    pub(crate) fn redirections(
        &self,
        files: &[String],
        patterns: &[FilePattern<'_>],
        functions: &BTreeMap<u64, Vec<&str>>,
    ) -> Redirections<'a> {
        let is_one_of = |list: &[&str], name: &str| list.iter().any(|one| matches(one, name));
        let of_runtime = files.iter().any(|file| is_one_of(RUNTIMES, file));
        let mut all = Redirections::default();
        for pattern in patterns.iter().filter(|pattern| pattern.names_file) {
            let fits = |name: &str| matches(pattern.name, name);
            let exported = self.functions.iter().filter(|(name, _)| fits(name));
            let (elsewhere, usual): (Vec<_>, Vec<_>) =
                exported.partition(|(name, _)| is_one_of(ELSEWHERE, name));
            let chosen = self.chosen_at_load.iter().filter(|(name, _)| fits(name));
            let mut inside = functions.values().flatten();
            let reason = if of_runtime {
                UnredirectedReason::OfTheRuntime
            } else if !elsewhere.is_empty() {
                UnredirectedReason::ReturnsElsewhere
            } else if chosen.clone().next().is_some() {
                UnredirectedReason::ChosenAtLoad
            } else if inside.any(|name| fits(name)) {
                UnredirectedReason::NotExported
            } else {
                UnredirectedReason::NoFunction
            };
            let mut found: BTreeSet<u64> = usual.iter().map(|(_, address)| *address).collect();
            match (self.has_hooks, of_runtime) {
                (true, _) => found = functions.keys().copied().collect(),
                (false, true) => found.clear(),
                (false, false) => {
                    let elsewhere = elsewhere.iter().map(|(_, address)| *address);
                    let elsewhere: BTreeSet<u64> = elsewhere.collect();
                    found.retain(|address| !elsewhere.contains(address));
                    all.targets.extend(&found);
                    let chosen = chosen.filter(|(_, address)| functions.contains_key(address));
                    for &(name, address) in chosen {
                        found.insert(address);
                        let known = all.chosen.entry(address).or_insert(name);
                        // `sin` has also the name `sinf64`.
                        if (name.len(), name) < (known.len(), *known) {
                            *known = name;
                        }
                    }
                }
            }
            all.findings.push(PatternFinding {
                index: pattern.index,
                functions: found.len(),
                reason,
            });
        }
        all
    }
}

/// Those of the functions that the code of the library calls or jumps to directly. Such a call does
/// not go through a table, so it is not redirected.
pub(crate) fn called_directly(elf: &object::File<'_>, functions: &BTreeSet<u64>) -> BTreeSet<u64> {
    /// `call` and `jmp` with a distance of 32 bits.
    const OPCODES: [u8; 2] = [0xe8, 0xe9];
    const SIZE: usize = 5;
    let mut found = BTreeSet::new();
    let code = elf.sections().filter(|one| one.kind() == SectionKind::Text);
    for (section, bytes) in code.filter_map(|one| Some((one.address(), one.data().ok()?))) {
        for (at, instruction) in bytes.windows(SIZE).enumerate() {
            let Some((opcode, distance)) = instruction.split_first() else {
                continue;
            };
            if OPCODES.contains(opcode)
                && let Some(distance) = distance.first_chunk()
            {
                let next = section.wrapping_add((at + SIZE) as u64);
                let distance = i64::from(i32::from_le_bytes(*distance));
                let to = next.wrapping_add_signed(distance);
                if functions.contains(&to) {
                    found.insert(to);
                }
            }
        }
    }
    found
}

/// The SONAME of a library.
fn soname(elf: &object::File<'_>) -> Option<String> {
    let dynamic = elf.section_by_name(".dynamic")?.data().ok()?;
    let texts = elf.section_by_name(".dynstr")?.data().ok()?;
    let number = |bytes: &[u8]| Some(u64::from_le_bytes(*bytes.first_chunk()?));
    let at = dynamic.chunks_exact(16).find_map(|entry| {
        let is_name = number(entry)? == DT_SONAME;
        is_name.then(|| number(&entry[8..]))?
    })?;
    let text = texts.get(usize::try_from(at).ok()?..)?;
    let end = text.iter().position(|&byte| byte == 0)?;
    Some(String::from_utf8_lossy(&text[..end]).into_owned())
}
