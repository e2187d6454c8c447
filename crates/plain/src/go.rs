//! Whether Go's linker made a file. Go's runtime makes system calls by itself, whatever the C
//! library of the program is.
//!
//! In: a whole file. Out: true if it has a section that only Go's linker makes: the facts about the
//! build, or the table of functions. Both stay in a file without symbols (`strip`). A program can
//! lack the note with Go's build id (`-ldflags=-buildid=`), and has these sections all the same.
//!
//! Invariant: every number is checked, so any bytes are valid input.
//!
//! Absent on purpose: files without a table of sections (`sstrip`), those with 65,280 sections or
//! more, and 32-bit files. None of them counts as Go's.

use crate::elf::{is_wide, number, slice};

/// The sections that only Go's linker makes. The last one is in position-independent programs.
const SECTIONS: [&[u8]; 3] = [b".go.buildinfo", b".gopclntab", b".data.rel.ro.gopclntab"];

/// Bytes of a section's header.
const HEADER: u64 = 64;

/// True for a program or a library of x86-64 with a section of Go's linker.
pub fn is_go(file: &[u8]) -> bool {
    let names = section_names(file);
    names.is_some_and(|mut names| names.any(|name| SECTIONS.contains(&name)))
}

/// The names of a file's sections. `None`: it has no table of them.
fn section_names(file: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    if !is_wide(file) {
        return None;
    }
    let (table, size) = (number(file, 40, 8)?, number(file, 58, 2)?);
    let (count, of_names) = (number(file, 60, 2)?, number(file, 62, 2)?);
    let header = move |n: u64| slice(file, table.checked_add(n * size)?, HEADER);
    let strings = header(of_names)?;
    let strings = slice(file, number(strings, 24, 8)?, number(strings, 32, 8)?)?;
    let name = move |n: u64| {
        let at = usize::try_from(number(header(n)?, 0, 4)?).ok()?;
        strings.get(at..)?.split(|&byte| byte == 0).next()
    };
    Some((0..count).filter_map(name))
}

#[cfg(test)]
mod tests {
    use super::{HEADER, is_go};

    /// A file that has nothing but these sections, without content, and that of the names.
    fn with_sections(names: &[&str]) -> Vec<u8> {
        let mut strings = vec![0];
        let mut starts = Vec::new();
        for name in names.iter().copied().chain([".shstrtab"]) {
            starts.push(strings.len() as u32);
            strings.extend(name.as_bytes());
            strings.push(0);
        }
        let table = HEADER as usize + strings.len();
        let mut file = vec![0; HEADER as usize];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[18] = 62;
        file[40..48].copy_from_slice(&(table as u64).to_le_bytes());
        (file[58], file[60], file[62]) = (HEADER as u8, starts.len() as u8, names.len() as u8);
        file.extend(&strings);
        for start in starts {
            let mut header = [0; HEADER as usize];
            header[..4].copy_from_slice(&start.to_le_bytes());
            header[24..32].copy_from_slice(&HEADER.to_le_bytes());
            header[32..40].copy_from_slice(&(strings.len() as u64).to_le_bytes());
            file.extend(header);
        }
        file
    }

    #[test]
    fn a_file_with_a_section_of_go_is_go_s_and_one_with_like_names_is_not() {
        for name in [".go.buildinfo", ".gopclntab", ".data.rel.ro.gopclntab"] {
            assert!(is_go(&with_sections(&[".text", name, ".data"])), "{name}");
        }
        for name in [
            ".go",
            ".go.buildinfo.x",
            "x.gopclntab",
            ".note.gnu.build-id",
        ] {
            assert!(!is_go(&with_sections(&[".text", name])), "{name}");
        }
        assert!(!is_go(&with_sections(&[])));
    }

    #[test]
    fn a_file_that_is_cut_or_contradicts_itself_is_not_go_s() {
        let whole = with_sections(&[".go.buildinfo"]);
        for end in 0..whole.len() {
            // Without the last header, the names are gone.
            assert!(!is_go(&whole[..end]), "{end}");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] = 0xff;
            // Any answer is right. None may fail.
            let _ = is_go(&other);
        }
        // 32 bits, another machine, a table outside of the file.
        for (at, byte) in [(4, 1), (18, 3), (47, 0xff)] {
            let mut other = whole.clone();
            other[at] = byte;
            assert!(!is_go(&other), "{at}");
        }
    }
}
