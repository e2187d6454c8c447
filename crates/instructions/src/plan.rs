//! Plans the bytes that redirect the instructions of an object.
//!
//! A jump takes 5 bytes, and the instruction has 2 or 3. So the instructions behind it move with
//! it, into the unused end of the last page of the code. They move only if nothing is known to jump
//! between them:
//!
//! - The function was decoded to its end, and takes no jump from a table.
//! - No direct branch of the object, and no address relative to an instruction, leads there.
//!
//! Absent: addresses in data, and tables of another function that lead into this one.

use crate::functions::{Decoded, Function};
use crate::stubs::{self, ENTRY_ROOM};
use backstory_plain::{Object, Segment};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Bytes of a jump.
const JUMP: usize = 5;
const PAGE: u64 = 4096;
/// Most bytes of code of an object that is decoded.
const MOST_CODE: usize = 256 << 20;
/// Most bytes of a function that has sites. All of its instructions are in memory at once.
const MOST_OF_FUNCTION: usize = 4 << 20;
/// Most segments of an object. Usual ones have 4 or 5.
const MOST_SEGMENTS: usize = 100;

/// The bytes to write, by address as the object was linked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Where the code that answers is written, at most [`ENTRY_ROOM`] bytes.
    pub entries: Vec<u64>,
    /// The code that calls it.
    pub stubs: Vec<(u64, Vec<u8>)>,
    /// The jumps to that. They are written last.
    pub jumps: Vec<Jump>,
    /// Instructions that stay as they are.
    pub left: usize,
}

/// A jump in the place of an instruction, and of those that move with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jump {
    /// Its address.
    pub at: u64,
    /// The bytes that are there before.
    pub before: Vec<u8>,
    /// As many bytes of code.
    pub code: Vec<u8>,
}

/// An instruction, and those that move with it.
struct Site<'a> {
    /// The number of the segment that has it.
    segment: usize,
    start: u64,
    end: u64,
    moved: Vec<Decoded<'a>>,
}

/// Plans the redirection of all instructions of an object.
pub fn plan(object: &Object<'_>) -> Plan {
    let mut plan = Plan::default();
    let code = || object.segments.iter().filter(|segment| segment.executable);
    let ends = |one: &Segment<'_>| one.address.checked_add(one.bytes.len() as u64 + 2 * PAGE);
    let is_unusual = code().map(|segment| segment.bytes.len()).sum::<usize>() > MOST_CODE
        || object.segments.len() > MOST_SEGMENTS
        || object.segments.iter().any(|one| ends(one).is_none());
    let mut functions: BTreeMap<usize, u64> = BTreeMap::new();
    for address in code().flat_map(occurrences) {
        match object.function_number(address).filter(|_| !is_unusual) {
            // The last one in the function.
            Some(number) => *functions.entry(number).or_default() = address,
            None => plan.left += 1,
        }
    }
    let mut sites = Vec::new();
    for (number, last) in functions {
        find_sites(object, (number, last), &mut sites, &mut plan.left);
    }
    if !sites.is_empty() {
        let entered = entered(object, &sites);
        plan.left += entered.len();
        sites.retain(|site| !entered.contains(&site.start));
    }
    place(object, sites, &mut plan);
    plan
}

/// The addresses at which the bytes of an instruction are. They may be part of another one.
fn occurrences(segment: &Segment<'_>) -> impl Iterator<Item = u64> {
    let (start, bytes) = (segment.address, segment.bytes);
    let escapes = memchr::memchr_iter(0x0f, bytes);
    let found = escapes.filter(move |at| {
        let rest = bytes.get(at + 1..).unwrap_or_default();
        matches!(rest, [0x31 | 0xa2, ..] | [0x01, 0xf9, ..])
    });
    found.map(move |at| start.wrapping_add(at as u64))
}

/// Finds the instructions of a function that can be replaced by a jump. `last`: where the bytes of
/// one are for the last time.
fn find_sites<'a>(
    object: &Object<'a>,
    (number, last): (usize, u64),
    sites: &mut Vec<Site<'a>>,
    left: &mut usize,
) {
    let function = Function::of(object, number);
    let Some(function) = function.filter(|one| one.length() <= MOST_OF_FUNCTION) else {
        *left += 1;
        return;
    };
    let end = function.end;
    let decoded: Vec<Decoded<'_>> = function.collect();
    let decoded_to = decoded.last().map_or(0, |one| one.instruction.next_ip());
    *left += usize::from(decoded_to <= last);
    // A branch behind bytes that are not known may lead anywhere.
    let is_known = decoded_to == end && !decoded.iter().any(Decoded::jumps_anywhere);
    let mut rest = decoded.into_iter().peekable();
    while let Some(first) = rest.next() {
        if first.question().is_none() {
            continue;
        }
        let start = first.instruction.ip();
        let mut end = first.instruction.next_ip();
        let mut moved = vec![first];
        while ((end - start) as usize) < JUMP {
            let Some(next) = rest.next_if(|next| next.moved(start).is_some()) else {
                break;
            };
            end = next.instruction.next_ip();
            moved.push(next);
        }
        let within = |segment: &Segment<'_>| {
            let at = start.wrapping_sub(segment.address);
            takes_jumps(segment) && at < segment.bytes.len() as u64
        };
        let is_long = (end - start) as usize >= JUMP;
        match object.segments.iter().position(within) {
            Some(segment) if is_long && is_known => sites.push(Site {
                segment,
                start,
                end,
                moved,
            }),
            _ => *left += questions(&moved),
        }
    }
}

/// Otherwise the bytes behind those of the file are no unused ones, but variables.
fn takes_jumps(segment: &Segment<'_>) -> bool {
    segment.executable && !segment.writable && !segment.has_zeros
}

/// The number of instructions among these that are to be redirected.
fn questions(all: &[Decoded<'_>]) -> usize {
    all.iter().filter(|one| one.question().is_some()).count()
}

/// The starts of sites that code or an address in the object leads into.
fn entered(object: &Object<'_>, sites: &[Site<'_>]) -> BTreeSet<u64> {
    let mut entered = BTreeSet::new();
    let mut look_at = |target: u64| {
        let before = sites.partition_point(|site| site.start < target);
        let site = before.checked_sub(1).and_then(|at| sites.get(at));
        entered.extend(site.filter(|site| target < site.end).map(|site| site.start));
    };
    for number in 0..object.functions.len() {
        for one in Function::of(object, number).into_iter().flatten() {
            one.names().into_iter().for_each(&mut look_at);
        }
    }
    object.functions.iter().copied().for_each(&mut look_at);
    entered
}

/// Gives each site its stub.
fn place(object: &Object<'_>, sites: Vec<Site<'_>>, plan: &mut Plan) {
    // By segment: the entry, and where the next stub may be.
    let mut free: HashMap<usize, (u64, u64)> = HashMap::new();
    for site in sites {
        let segment = &object.segments[site.segment];
        let code_ends = segment.address + segment.bytes.len() as u64;
        let page_ends = code_ends.next_multiple_of(PAGE);
        // The loader maps another segment over the rest of the page.
        let is_shared = |other: &Segment<'_>| (code_ends..page_ends).contains(&other.address);
        let page_ends = match object.segments.iter().any(is_shared) {
            true => code_ends,
            false => page_ends,
        };
        let fresh = code_ends.next_multiple_of(16);
        let known = free.get(&site.segment).copied();
        let (entry, at) = known.unwrap_or((fresh, fresh + ENTRY_ROOM));
        let stub = stub(&site, at, entry).filter(|stub| at + stub.len() as u64 <= page_ends);
        let Some(stub) = stub else {
            plan.left += questions(&site.moved);
            continue;
        };
        if known.is_none() {
            plan.entries.push(entry);
        }
        free.insert(site.segment, (entry, at + stub.len() as u64));
        plan.stubs.push((at, stub));
        let before: Vec<u8> = site
            .moved
            .iter()
            .flat_map(|one| one.bytes)
            .copied()
            .collect();
        let mut code = stubs::jump(site.start, at);
        // The bytes behind the jump are never executed.
        code.resize(before.len(), 0x90);
        plan.jumps.push(Jump {
            at: site.start,
            before,
            code,
        });
    }
}

/// The code for a site, at this address.
fn stub(site: &Site<'_>, at: u64, entry: u64) -> Option<Vec<u8>> {
    let mut code = Vec::new();
    for one in &site.moved {
        let here = at + code.len() as u64;
        code.extend(match one.question() {
            Some(kind) => stubs::call(here, kind, entry),
            None => one.moved(here)?,
        });
    }
    code.extend(stubs::jump(at + code.len() as u64, site.end));
    Some(code)
}
