//! Redirects the instructions of a process.

use crate::plan::{Plan, plan};
use crate::stubs::Answering;
use backstory_plain::Object;
use backstory_sys::mappings::FileMapping;
use std::collections::HashMap;
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

/// Redirects the instructions of processes, and remembers what it found out about their files.
#[derive(Debug, Default)]
pub struct Redirector {
    plans: HashMap<(u64, u64, u64, i64, i64), FilePlan>,
}

impl Redirector {
    /// Redirects the instructions of all files that a process has mapped as code. The process waits
    /// meanwhile. The file that is mapped at the address `except` is left out. Without `may_write`,
    /// the code stays as it is: several threads may execute it. True if all instructions that were
    /// found are redirected.
    ///
    /// # Errors
    /// The memory of the process cannot be used.
    pub fn redirect(
        &mut self,
        pid: u32,
        answers: &Answering,
        except: u64,
        may_write: bool,
    ) -> io::Result<bool> {
        let maps = fs::read(format!("/proc/{pid}/maps"))?;
        let mappings: Vec<FileMapping<'_>> = FileMapping::all(&maps).collect();
        let excepted = mappings.iter().find(|one| one.contains(except));
        let excepted = excepted.map(|one| (one.inode, one.path));
        let mut memory = None;
        let mut all = true;
        for mapping in mappings.iter().filter(|one| one.is_executable) {
            if excepted == Some((mapping.inode, mapping.path)) {
                continue;
            }
            let Some(found) = self.plan_of(pid, mapping)? else {
                continue;
            };
            all &= found.0.left == 0;
            let place = found.1.iter().find(|(offset, _)| *offset == mapping.offset);
            let Some((_, linked)) = place else {
                continue;
            };
            let memory = match &memory {
                Some(memory) => memory,
                None => memory.insert(writable(pid)?),
            };
            let bias = mapping.start.wrapping_sub(*linked);
            all &= write(memory, (mapping, bias), &found.0, answers, may_write)?;
        }
        Ok(all)
    }

    fn plan_of(&mut self, pid: u32, mapping: &FileMapping<'_>) -> io::Result<FilePlan> {
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

/// Writes the parts of a plan that lie in a mapping. `bias`: from linked addresses to those of the
/// process. True if all jumps are there. The place of a jump may have other bytes than the file, as
/// those of a debugger.
fn write(
    memory: &File,
    (mapping, bias): (&FileMapping<'_>, u64),
    plan: &Plan,
    answers: &Answering,
    may_write: bool,
) -> io::Result<bool> {
    let place = |linked: u64, length: usize| {
        let at = linked.wrapping_add(bias);
        let fits = mapping.contains(at) && mapping.contains(at + length as u64 - 1);
        fits.then_some(at)
    };
    let (mut all, mut missing) = (true, Vec::new());
    for jump in &plan.jumps {
        let Some(at) = place(jump.at, jump.code.len()) else {
            continue;
        };
        let mut present = vec![0; jump.code.len()];
        memory.read_exact_at(&mut present, at)?;
        match present == jump.before && may_write {
            true => missing.push((at, &jump.code)),
            false => all &= present == jump.code,
        }
    }
    if missing.is_empty() {
        return Ok(all);
    }
    let entries = plan.entries.iter().map(|at| (at, answers.code()));
    let stubs = plan.stubs.iter().map(|(at, code)| (at, code.as_slice()));
    for (linked, code) in entries.chain(stubs) {
        if let Some(at) = place(*linked, code.len()) {
            memory.write_all_at(code, at)?;
        }
    }
    for (at, code) in missing {
        memory.write_all_at(code, at)?;
    }
    Ok(all)
}
