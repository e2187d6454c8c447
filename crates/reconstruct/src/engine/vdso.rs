//! The functions that the kernel gives each program to take the time without a system call.
//!
//! In: the kernel's shared object, as this process has it. Out: for each function the code that
//! makes the system call instead. A program with this code takes its time from the supervisor.
//! Invariant: other functions, and the memory of this process, stay as they are.
//!
//! These functions never fail with `EINTR`. But a signal that comes before the supervisor has
//! received the call lets the call fail so. The code then makes the call again. It does so a
//! limited number of times, because a timer may ring at each of them.

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

/// How often a call is made at most.
const MOST_TRIES: u32 = 10_000;

/// Type of the section of symbols in an ELF file.
const SHT_DYNSYM: u32 = 11;

/// The code to write, by offset in the shared object.
#[derive(Debug, Clone, Default)]
pub struct TimeFunctions {
    code: Vec<(u64, Vec<u8>)>,
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

/// The address of so many bytes of a program that nothing uses, and that can be executed. They lie
/// behind the end of the shared object, up to the end of its last page.
///
/// # Errors
/// The program has no such place, or its memory cannot be read.
pub fn free_place(tid: u32, length: usize) -> io::Result<u64> {
    const ALIGNED: usize = 16;
    let none = || io::Error::from(io::ErrorKind::NotFound);
    let (from, to) = object_of(&tid.to_string())?.ok_or_else(none)?;
    let mut object = vec![0; (to - from) as usize];
    File::open(format!("/proc/{tid}/mem"))?.read_exact_at(&mut object, from)?;
    let used = object.iter().rposition(|byte| *byte != 0);
    // A string at the end has its NUL.
    let place = used.map_or(0, |used| used + 2).next_multiple_of(ALIGNED);
    let fits = place + length <= object.len();
    fits.then_some(from + place as u64).ok_or_else(none)
}

/// The code of a function of this size. `None`: it would reach into another function.
fn code(number: libc::c_long, size: u64) -> Option<Vec<u8>> {
    let forms = [until_received(number), once(number)];
    forms.into_iter().find(|code| code.len() as u64 <= size)
}

/// `mov eax, number; syscall; ret`
fn once(number: libc::c_long) -> Vec<u8> {
    let [a, b, c, d] = (number as u32).to_le_bytes();
    vec![0xb8, a, b, c, d, 0x0f, 0x05, 0xc3]
}

/// The same, made again while it fails with `EINTR`. The kernel preserves `r8`, and a function may
/// change it.
///
/// ```text
///        mov r8d, MOST_TRIES
/// again: mov eax, number
///        syscall
///        cmp rax, -EINTR
///        jne done
///        dec r8d
///        jne again
/// done:  ret
/// ```
fn until_received(number: libc::c_long) -> Vec<u8> {
    let mut code = vec![0x41, 0xb8];
    code.extend(MOST_TRIES.to_le_bytes());
    code.push(0xb8);
    code.extend((number as u32).to_le_bytes());
    code.extend([0x0f, 0x05, 0x48, 0x83, 0xf8, 0xfc, 0x75, 0x05]);
    code.extend([0x41, 0xff, 0xc8, 0x75, 0xee, 0xc3]);
    code
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

fn functions(elf: &[u8]) -> Option<Vec<(u64, Vec<u8>)>> {
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
            let code = code(*call, number::<8>(symbol, 16)?);
            found.extend(code.filter(|_| offset != 0).map(|code| (offset, code)));
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
    }

    #[test]
    fn no_code_reaches_into_another_function() {
        let short = [0xb8, 228, 0, 0, 0, 0x0f, 0x05, 0xc3];
        for (size, length) in [(7, None), (8, Some(8)), (24, Some(8)), (25, Some(25))] {
            let found = code(228, size);
            assert_eq!(found.as_ref().map(Vec::len), length, "{size}");
            if length == Some(8) {
                assert_eq!(found.as_deref(), Some(short.as_slice()));
            }
        }
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
