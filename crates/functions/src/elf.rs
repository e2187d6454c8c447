//! The functions of an ELF file, and the places that its compiler left for calls of hooks.

use std::collections::{BTreeMap, BTreeSet};

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SegmentFlags, SymbolKind};

use crate::exports::{Exports, PatternFinding, called_directly};
use crate::llvm_types::function_type;
use crate::mangled::qualified_name;
use crate::patterns::{FilePattern, FunctionPatterns, matches, names_of_file};
use crate::signatures::{FunctionSignature, signatures};
use crate::sources::{SourcePlace, source_places};

/// A function that is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The address that the file was linked for.
    pub address: u64,
    /// Its name: qualified as in the source if the file has debugging information, else the symbol.
    pub name: String,
    /// The source file's name and the line, as `plot.c:40`. Empty if the file does not say it.
    /// A redirected function then has its library. ` (direct calls unseen)` follows if the library
    /// calls it directly.
    pub location: String,
    /// Its type in words of LLVM, as `i32(ptr,?)`. Empty if arguments are not recorded.
    pub kind: String,
}

/// A sled of XRay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SledPlace {
    pub address: u64,
    pub function: u64,
    pub kind: u8,
}

/// The functions of an executable file or a library.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeFile {
    /// The lowest address of its code.
    pub low: u64,
    /// Bytes of its code.
    pub size: u64,
    /// The functions that match, by address.
    pub functions: Vec<Function>,
    /// The findings of the patterns that name this file.
    pub findings: Vec<PatternFinding>,
    /// The addresses of the functions whose calls are redirected, although the file has no hooks.
    pub targets: BTreeSet<u64>,
    /// Those of them at which the library chooses the function when it is loaded (IFUNC).
    pub chosen: BTreeSet<u64>,
    /// Indices of the patterns that match a function here, and whether calls of one are recorded.
    pub matched: BTreeMap<usize, bool>,
    pub(crate) sleds: Vec<SledPlace>,
    /// The parameters of the functions, by address. Empty unless they are recorded.
    pub(crate) signatures: BTreeMap<u64, FunctionSignature>,
}

/// Size of an entry in the section with XRay's sleds.
const SLED_ENTRY: usize = 32;
const PF_X: u32 = 1;
/// The most code of a file. The number of a function has 31 bits.
const MOST_CODE: u64 = 1 << 28;

impl CodeFile {
    /// Reads the functions of a file that match. `None` if it has no code that could be recorded.
    /// `file` is the last part of its path.
    pub fn read(bytes: &[u8], file: &str, patterns: &FunctionPatterns) -> Option<CodeFile> {
        let elf = object::File::parse(bytes).ok()?;
        let (low, size) = code(&elf)?;
        let exports = Exports::read(&elf);
        let files = names_of_file(file, exports.soname.as_deref());
        let wanted = patterns.of_file(&files);
        let mut code = CodeFile {
            low,
            size,
            ..CodeFile::default()
        };
        if wanted.is_empty() {
            return Some(code);
        }
        let mut names: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
            let lies = (low..low + size).contains(&symbol.address());
            // A function that is chosen at load is no definition. Hooks see the chosen one.
            let is_own = symbol.is_definition() || !symbol.is_undefined() && !exports.has_hooks;
            if symbol.kind() != SymbolKind::Text || !is_own || !lies {
                continue;
            }
            if let Ok(name) = symbol.name() {
                names.entry(symbol.address()).or_default().push(name);
            }
        }
        let symbols = names.keys().copied().collect();
        let places = source_places(&elf, &symbols);
        for &address in places.keys() {
            if (low..low + size).contains(&address) {
                names.entry(address).or_default();
            }
        }
        let found = functions(&names, &places, &wanted);
        code.functions = found.iter().map(|(function, _)| function.clone()).collect();
        let matched: BTreeSet<u64> = code.functions.iter().map(|one| one.address).collect();
        names.retain(|address, _| matched.contains(address));
        let redirections = exports.redirections(&files, &wanted, &names);
        code.findings = redirections.findings;
        code.targets = &redirections.targets & &matched;
        code.say_what_is_unseen(file, &called_directly(&elf, &code.targets));
        code.add_chosen(file, &redirections.chosen);
        code.sleds = sleds(&elf);
        code.sleds.retain(|sled| matched.contains(&sled.function));
        code.matched = code.recorded_patterns(&found, exports.has_hooks);
        if patterns.has_arguments() {
            // The parameters of the code that chooses are not those of the function.
            code.signatures = signatures(&elf, low, &(&matched - &code.chosen));
            for function in &mut code.functions {
                let signature = code.signatures.get(&function.address);
                function.kind = signature.map(function_type).unwrap_or_default();
            }
        }
        Some(code)
    }
}

impl CodeFile {
    /// The patterns that match a function, and whether calls of one of these are recorded.
    fn recorded_patterns(
        &self,
        found: &[(Function, Vec<usize>)],
        has_hooks: bool,
    ) -> BTreeMap<usize, bool> {
        let sleds: BTreeSet<u64> = self.sleds.iter().map(|sled| sled.function).collect();
        let mut patterns = BTreeMap::new();
        for (function, indices) in found {
            let address = function.address;
            let recorded = has_hooks || sleds.contains(&address) || self.targets.contains(&address);
            for &index in indices {
                *patterns.entry(index).or_insert(false) |= recorded;
            }
        }
        patterns
    }

    /// Adds the functions that are chosen at load. The code that chooses has another name in the
    /// debugging information.
    fn add_chosen(&mut self, file: &str, chosen: &BTreeMap<u64, &str>) {
        for function in &mut self.functions {
            if let Some(&name) = chosen.get(&function.address) {
                function.name = name.to_owned();
                function.location = file.to_owned();
                self.targets.insert(function.address);
                self.chosen.insert(function.address);
            }
        }
    }

    /// Completes the locations of redirected functions. One without a line has the library.
    /// `direct` are those that the library calls without a table.
    fn say_what_is_unseen(&mut self, file: &str, direct: &BTreeSet<u64>) {
        let targets = &self.targets;
        let functions = self.functions.iter_mut();
        for function in functions.filter(|one| targets.contains(&one.address)) {
            if function.location.is_empty() {
                function.location = file.to_owned();
            }
            if direct.contains(&function.address) {
                function.location.push_str(" (direct calls unseen)");
            }
        }
    }
}

/// The functions one of whose names matches, each with the indices of the patterns that match it.
fn functions(
    names: &BTreeMap<u64, Vec<&str>>,
    places: &BTreeMap<u64, SourcePlace>,
    wanted: &[FilePattern<'_>],
) -> Vec<(Function, Vec<usize>)> {
    let found = names.iter().filter_map(|(&address, symbols)| {
        let place = places.get(&address);
        let qualified = place.map(|place| place.name.as_str());
        let qualified = qualified.filter(|name| !name.is_empty()).map(str::to_owned);
        // Debugging information may have the name without its class.
        let is_plain = qualified.as_ref().is_none_or(|name| !name.contains("::"));
        let demangled = symbols.iter().find_map(|symbol| qualified_name(symbol));
        let name = demangled.filter(|_| is_plain).or(qualified);
        let name = name.or_else(|| symbols.first().map(|&symbol| symbol.to_owned()))?;
        let is_wanted = |pattern: &&FilePattern<'_>| {
            matches(pattern.name, &name) || symbols.iter().any(|one| matches(pattern.name, one))
        };
        let patterns: Vec<usize> = wanted
            .iter()
            .filter(is_wanted)
            .map(|one| one.index)
            .collect();
        let location = place.map(|place| place.location.clone());
        (!patterns.is_empty()).then(|| {
            let function = Function {
                address,
                name,
                location: location.unwrap_or_default(),
                kind: String::new(),
            };
            (function, patterns)
        })
    });
    found.collect()
}

/// The lowest address and the size of the executable segments.
fn code(elf: &object::File<'_>) -> Option<(u64, u64)> {
    let mut range: Option<(u64, u64)> = None;
    for segment in elf.segments() {
        let is_code = match segment.flags() {
            SegmentFlags::Elf { p_flags, .. } => p_flags.0 & PF_X != 0,
            _ => false,
        };
        let end = segment.address().checked_add(segment.size())?;
        if is_code {
            let (low, high) = range.unwrap_or((segment.address(), end));
            range = Some((low.min(segment.address()), high.max(end)));
        }
    }
    let (low, high) = range?;
    (high - low <= MOST_CODE).then_some((low, high - low))
}

/// The sleds of XRay. Each entry of the section has two distances from itself.
fn sleds(elf: &object::File<'_>) -> Vec<SledPlace> {
    let Some(section) = elf.section_by_name("xray_instr_map") else {
        return Vec::new();
    };
    let Ok(bytes) = section.data() else {
        return Vec::new();
    };
    let entries = bytes.chunks_exact(SLED_ENTRY).zip(0u64..);
    let read = entries.filter_map(|(entry, index)| {
        let own = section.address().wrapping_add(index * SLED_ENTRY as u64);
        let number = |at: usize| Some(u64::from_le_bytes(*entry.get(at..)?.first_chunk()?));
        // The only version that clang has made since 2020.
        (entry[18] == 2).then_some(SledPlace {
            address: own.wrapping_add(number(0)?),
            function: own.wrapping_add(8).wrapping_add(number(8)?),
            kind: entry[16],
        })
    });
    read.collect()
}
