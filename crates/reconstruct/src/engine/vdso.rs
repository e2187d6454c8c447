//! The functions that the kernel gives each program to take the time without a system call.
//!
//! In: the kernel's shared object, as this process has it. Out: for each function the code that
//! makes the system call instead. A program with this code takes its time from the supervisor.
//! Invariant: other functions, and the memory of this process, stay as they are.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The functions, and the system call that each of them stands for.
const FUNCTIONS: &[(&str, libc::c_long)] = &[
    ("__vdso_clock_gettime", libc::SYS_clock_gettime),
    ("__vdso_gettimeofday", libc::SYS_gettimeofday),
    ("__vdso_time", libc::SYS_time),
    ("__vdso_getcpu", libc::SYS_getcpu),
];

/// Type of the section of symbols in an ELF file.
const SHT_DYNSYM: u32 = 11;

/// The code to write, by offset in the shared object.
#[derive(Debug, Clone, Default)]
pub struct TimeFunctions {
    code: Vec<(u64, [u8; 8])>,
}

impl TimeFunctions {
    /// Finds the functions. None are found on a kernel whose shared object has another form.
    pub fn find() -> TimeFunctions {
        let code = own_object().ok().and_then(|object| functions(&object));
        TimeFunctions {
            code: code.unwrap_or_default(),
        }
    }

    /// Makes a process, which has just begun, take its time by system calls.
    ///
    /// # Errors
    /// The memory of the process cannot be written.
    pub fn replace(&self, tid: u32) -> io::Result<()> {
        if self.code.is_empty() {
            return Ok(());
        }
        let Some((start, _)) = object_of(&tid.to_string())? else {
            return Ok(());
        };
        let memory = File::options()
            .write(true)
            .open(format!("/proc/{tid}/mem"))?;
        for (offset, code) in &self.code {
            memory.write_all_at(code, start + offset)?;
        }
        Ok(())
    }
}

/// `mov eax, number; syscall; ret`
fn code(number: libc::c_long) -> [u8; 8] {
    let [a, b, c, d] = (number as u32).to_le_bytes();
    [0xb8, a, b, c, d, 0x0f, 0x05, 0xc3]
}

/// The addresses of the object in a process.
fn object_of(process: &str) -> io::Result<Option<(u64, u64)>> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    Ok(line.and_then(|line| {
        let (from, rest) = line.split_once('-')?;
        let (to, _) = rest.split_once(' ')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some((number(from)?, number(to)?))
    }))
}

fn own_object() -> io::Result<Vec<u8>> {
    let Some((from, to)) = object_of("self")? else {
        return Ok(Vec::new());
    };
    let mut object = vec![0; (to - from) as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut object, from)?;
    Ok(object)
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let found = bytes.get(at..at.checked_add(N)?)?;
    let mut whole = [0; 8];
    whole[..N].copy_from_slice(found);
    Some(u64::from_le_bytes(whole))
}

/// The section header with this number: type, offset, size, link.
fn section(elf: &[u8], index: u64) -> Option<(u32, usize, usize, u64)> {
    let (table, size) = (number::<8>(elf, 0x28)?, number::<2>(elf, 0x3a)?);
    let at = usize::try_from(table.checked_add(index.checked_mul(size)?)?).ok()?;
    Some((
        number::<4>(elf, at + 4)? as u32,
        number::<8>(elf, at + 0x18)? as usize,
        number::<8>(elf, at + 0x20)? as usize,
        number::<4>(elf, at + 0x28)?,
    ))
}

fn functions(elf: &[u8]) -> Option<Vec<(u64, [u8; 8])>> {
    let count = number::<2>(elf, 0x3c)?;
    let mut sections = (0..count).filter_map(|index| section(elf, index));
    let (_, at, size, strings) = sections.find(|(kind, ..)| *kind == SHT_DYNSYM)?;
    let (_, strings, ..) = section(elf, strings)?;
    let mut found = Vec::new();
    for symbol in elf.get(at..at.checked_add(size)?)?.chunks_exact(24) {
        let name = elf.get(strings.checked_add(number::<4>(symbol, 0)? as usize)?..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        let known = FUNCTIONS.iter().find(|(known, _)| known.as_bytes() == name);
        if let Some((_, call)) = known {
            let offset = number::<8>(symbol, 8)?;
            // Never into another function.
            if number::<8>(symbol, 16)? >= 8 && offset != 0 {
                found.push((offset, code(*call)));
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::{FUNCTIONS, code, functions, own_object};

    #[test]
    fn the_functions_of_this_kernel_are_found() {
        let object = own_object().unwrap();
        if object.is_empty() {
            return;
        }
        assert_eq!(
            functions(&object).map(|found| found.len()),
            Some(FUNCTIONS.len())
        );
        assert_eq!(code(228), [0xb8, 228, 0, 0, 0, 0x0f, 0x05, 0xc3]);
    }

    #[test]
    fn a_cut_object_has_no_functions() {
        let object = own_object().unwrap();
        for length in (0..object.len()).step_by(61) {
            let _ = functions(&object[..length]);
        }
        assert_eq!(functions(&[]), None);
    }
}
