//! Redirects the instructions of a process.

use crate::plan::{Jump, Plan, plan};
use crate::stubs::Answering;
use backstory_plain::Object;
use backstory_sys::mappings::Mapping;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

const PAGE: u64 = 4096;
/// Bytes of the largest file that is read.
const LARGEST: u64 = 512 << 20;
/// Libraries that stay as they are: the loader runs before, and libc asks for the sizes of caches.
const LEFT_ALONE: &[&[u8]] = &[b"ld-linux-x86-64.so.2", b"libc.so.6"];

/// A segment of a file: its place in the file and in memory.
type Place = (u64, u64);

/// The plan for a file. `None`: it has no such instruction.
type FilePlan = Option<Arc<(Plan, Vec<Place>)>>;

/// The files of a process, by inode and path, each with its mappings that can be executed.
type ExecutableFiles<'m, 'a> = BTreeMap<(u64, &'a [u8]), Vec<&'m Mapping<'a>>>;

/// A process whose instructions are to be redirected.
pub struct Redirection<'a> {
    /// The process, which waits.
    pub pid: u32,
    /// The code that answers.
    pub answers: &'a Answering,
    /// The file that is mapped at this address stays as it is.
    pub except: Option<u64>,
    /// Otherwise the code stays as it is: several threads may execute it.
    pub may_write: bool,
    /// True while the process waits. Then its id is its own.
    pub still_waits: &'a dyn Fn() -> bool,
}

/// Redirects the instructions of processes, and remembers what it found out about their files.
#[derive(Debug, Default)]
pub struct Redirector {
    plans: HashMap<(u64, u64, u64, i64, i64), FilePlan>,
}

impl Redirector {
    /// Redirects the instructions of all files that a process has mapped as code. True if all
    /// instructions that were found are redirected.
    ///
    /// # Errors
    /// The process does not wait any more, has no file at the address that is excepted, or its
    /// memory cannot be used.
    pub fn redirect(&mut self, request: &Redirection<'_>) -> io::Result<bool> {
        let pid = request.pid;
        // This memory stays that of the process, even if another one gets the id.
        let memory = writable(pid);
        if !(request.still_waits)() {
            return Err(io::Error::other("the process does not wait any more"));
        }
        let maps = fs::read(format!("/proc/{pid}/maps"))?;
        let mappings: Vec<Mapping<'_>> = Mapping::of_files(&maps).collect();
        let excepted = match request.except {
            Some(address) => {
                let found = mappings.iter().find(|one| one.contains(address));
                let found = found.map(|one| (one.inode, one.name));
                Some(found.ok_or_else(|| io::Error::other("no file is mapped at the address"))?)
            }
            None => None,
        };
        let mut files = ExecutableFiles::new();
        let mut all = true;
        for mapping in mappings.iter().filter(|one| one.is_executable) {
            let file = (mapping.inode, mapping.name);
            // Bytes that are written to a shared mapping would reach the file.
            match mapping.is_private {
                _ if excepted == Some(file) => {}
                true => files.entry(file).or_default().push(mapping),
                false => all = false,
            }
        }
        for mappings in files.values().map(Vec::as_slice) {
            let Some(found) = self.plan_of(pid, mappings[0])? else {
                continue;
            };
            let (plan, places) = (&found.0, &found.1);
            all &= plan.left == 0;
            if plan.jumps.is_empty() {
                continue;
            }
            let memory = memory.as_ref().map_err(|error| error.kind())?;
            let (biases, is_whole) = biases(mappings, places);
            all &= is_whole;
            for bias in biases {
                all &= write(memory, (mappings, bias), plan, request)?;
            }
        }
        Ok(all)
    }

    fn plan_of(&mut self, pid: u32, mapping: &Mapping<'_>) -> io::Result<FilePlan> {
        let Some(mut file) = mapping.open(pid) else {
            return Ok(unknown());
        };
        let about = file.metadata()?;
        let key = (
            about.dev(),
            about.ino(),
            about.size(),
            about.mtime(),
            about.mtime_nsec(),
        );
        if let Some(known) = self.plans.get(&key) {
            return Ok(known.clone());
        }
        let found = plan_of_file(&mut file, about.size())?;
        self.plans.insert(key, found.clone());
        Ok(found)
    }
}

/// A file may have such instructions, and nothing is known of them.
fn unknown() -> FilePlan {
    let plan = Plan {
        left: 1,
        ..Plan::default()
    };
    Some(Arc::new((plan, Vec::new())))
}

fn plan_of_file(file: &mut File, size: u64) -> io::Result<FilePlan> {
    if size > LARGEST {
        return Ok(unknown());
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    let Ok(object) = Object::parse(&bytes) else {
        return Ok(unknown());
    };
    if object.soname.is_some_and(|name| LEFT_ALONE.contains(&name)) {
        return Ok(None);
    }
    let plan = plan(&object);
    if plan.jumps.is_empty() && plan.left == 0 {
        return Ok(None);
    }
    let floor = |address: u64| address - address % PAGE;
    let code = object.segments.iter().filter(|segment| segment.executable);
    let places = code.map(|segment| (floor(segment.offset), floor(segment.address)));
    Ok(Some(Arc::new((plan, places.collect()))))
}

fn writable(pid: u32) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true);
    options.open(format!("/proc/{pid}/mem"))
}

/// The distances from linked addresses to those of the process, one for each time that the file was
/// loaded. True: each mapping belongs to one of these.
fn biases(mappings: &[&Mapping<'_>], places: &[Place]) -> (Vec<u64>, bool) {
    let place = |mapping: &Mapping<'_>| places.iter().find(|at| at.0 == mapping.offset);
    let mut biases = Vec::new();
    for mapping in mappings {
        biases.extend(place(mapping).map(|(_, linked)| mapping.start.wrapping_sub(*linked)));
    }
    biases.sort_unstable();
    biases.dedup();
    // A mapping that was split goes on where its first part ends.
    let distance = |mapping: &Mapping<'_>| mapping.start.wrapping_sub(mapping.offset);
    let belongs = |one: &&Mapping<'_>| {
        let mut starts = mappings.iter().filter(|start| place(start).is_some());
        starts.any(|start| distance(start) == distance(one))
    };
    let is_whole = mappings.iter().all(belongs);
    (biases, is_whole)
}

/// Writes a plan to a file's mappings. `bias`: from linked addresses to those of the process. True
/// if all jumps are there. If one of them has no room, nothing is written. The place of a jump may
/// have other bytes than the file, as those of a debugger.
fn write(
    memory: &File,
    (mappings, bias): (&[&Mapping<'_>], u64),
    plan: &Plan,
    request: &Redirection<'_>,
) -> io::Result<bool> {
    let place = |linked: u64, length: usize| {
        let at = linked.wrapping_add(bias);
        let last = at.wrapping_add(length as u64 - 1);
        let mut mappings = mappings.iter();
        let fits = mappings.any(|one| one.contains(at) && one.contains(last));
        fits.then_some(at)
    };
    let entry = request.answers.code();
    let entries = plan.entries.iter().map(|at| (*at, entry));
    let stubs = plan.stubs.iter().map(|(at, code)| (*at, code.as_slice()));
    let placed = |(at, code): (u64, &[u8])| Some((place(at, code.len())?, code.to_vec()));
    let code: Option<Vec<(u64, Vec<u8>)>> = entries.chain(stubs).map(placed).collect();
    let jumps = plan.jumps.iter();
    let jumps = jumps.map(|jump| Some((place(jump.at, jump.code.len())?, jump)));
    let jumps: Option<Vec<(u64, &Jump)>> = jumps.collect();
    let (Some(code), Some(jumps)) = (code, jumps) else {
        return Ok(false);
    };
    let (mut all, mut missing) = (true, Vec::new());
    for (at, jump) in jumps {
        let mut present = vec![0; jump.code.len()];
        memory.read_exact_at(&mut present, at)?;
        match present == jump.before && request.may_write {
            true => missing.push((at, jump.code.clone())),
            false => all &= present == jump.code,
        }
    }
    if missing.is_empty() {
        return Ok(all);
    }
    for (at, code) in code.into_iter().chain(missing) {
        memory.write_all_at(&code, at)?;
    }
    Ok(all)
}
