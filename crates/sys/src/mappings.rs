//! The memory that a process has mapped (`/proc/PID/maps`).
//!
//! In: the content of the file in `/proc`. Out: all mappings, or those of files. A line that is no
//! mapping is left out.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A mapping, of a file or of other memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// Its first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// Its memory can be executed.
    pub is_executable: bool,
    /// Its memory is a copy: the file stays as it is when it is written to.
    pub is_private: bool,
    /// The position in the file, or 0.
    pub offset: u64,
    /// The inode of the file, or 0.
    pub inode: u64,
    /// The path of the file, as the process has it, or a name such as `[vdso]`. It may be empty.
    pub name: &'a [u8],
}

impl<'a> Mapping<'a> {
    /// All of them, in the order of addresses. `maps` is the content of the file in `/proc`.
    pub fn all(maps: &'a [u8]) -> impl Iterator<Item = Mapping<'a>> {
        maps.split(|&byte| byte == b'\n').filter_map(Mapping::read)
    }

    fn read(line: &'a [u8]) -> Option<Mapping<'a>> {
        // Addresses, rights, position, device, inode, name. The kernel aligns names by spaces.
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let mut word = || std::str::from_utf8(fields.next()?).ok();
        let (start, end) = word()?.split_once('-')?;
        let (access, offset, _, inode) = (word()?, word()?, word()?, word()?);
        let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
        Some(Mapping {
            start: hexadecimal(start)?,
            end: hexadecimal(end)?,
            is_executable: access.contains('x'),
            is_private: access.ends_with('p'),
            offset: hexadecimal(offset)?,
            inode: inode.parse().ok()?,
            name: fields.next().unwrap_or_default().trim_ascii_start(),
        })
    }

    /// Those of files. The name of each is a path.
    pub fn of_files(maps: &'a [u8]) -> impl Iterator<Item = Mapping<'a>> {
        Mapping::all(maps).filter(|mapping| mapping.name.starts_with(b"/"))
    }

    /// True if the address lies in it.
    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Opens the file of a process's mapping. `None`: another file may have the path by now.
    pub fn open(&self, pid: u32) -> Option<File> {
        let path = Path::new(OsStr::from_bytes(self.name));
        let seen = Path::new("/proc")
            .join(pid.to_string())
            .join("root")
            .join(path.strip_prefix("/").ok()?);
        let file = File::open(seen).ok()?;
        let facts = file.metadata().ok()?;
        (facts.is_file() && facts.ino() == self.inode).then_some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::Mapping;
    use std::os::unix::ffi::OsStrExt;

    const MAPS: &[u8] = b"\
555555554000-555555556000 r-xp 00001000 fe:00 77                         /w/a  program (deleted)
555555556000-555555557000 rw-s 00000000 fe:0a 78                         /w/\xff.data
7ffff7d00000-7ffff7d01000 rw-p 00000000 00:00 0                          [anon:arena /of/it]
7ffff7fa0000-7ffff7fa1000 rwxp 00000000 00:00 0\x20
7ffff7fa1000-7ffff7fa2000 ---p 00000000 00:00 0
7ffff7fc9000-7ffff7fcb000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn mappings_of_files_and_of_other_memory_have_their_names() {
        let names: Vec<&[u8]> = Mapping::all(MAPS).map(|one| one.name).collect();
        let expected: [&[u8]; 6] = [
            b"/w/a  program (deleted)",
            b"/w/\xff.data",
            b"[anon:arena /of/it]",
            b"",
            b"",
            b"[vdso]",
        ];
        assert_eq!(names, expected);
        let code = Mapping::all(MAPS).filter(|one| one.is_executable);
        let starts: Vec<u64> = code.map(|one| one.start).collect();
        let expected = [0x5555_5555_4000, 0x7fff_f7fa_0000, 0x7fff_f7fc_9000];
        assert_eq!(starts, expected);
    }

    #[test]
    fn only_a_mapping_whose_name_is_a_path_is_one_of_a_file() {
        let files: Vec<Mapping<'_>> = Mapping::of_files(MAPS).collect();
        let program = Mapping {
            start: 0x5555_5555_4000,
            end: 0x5555_5555_6000,
            is_executable: true,
            is_private: true,
            offset: 0x1000,
            inode: 77,
            name: b"/w/a  program (deleted)",
        };
        let data = Mapping {
            start: 0x5555_5555_6000,
            end: 0x5555_5555_7000,
            is_executable: false,
            is_private: false,
            offset: 0,
            inode: 78,
            name: b"/w/\xff.data",
        };
        assert_eq!(files, [program, data]);
    }

    #[test]
    fn lines_that_are_no_mappings_are_left_out() {
        for line in [
            "",
            "no list",
            "1-2 r-xp",
            "1-2 r-xp 0 00:00",
            "1-g r-xp 0 00:00 7 /w/program",
            "1-2 r-xp 0 00:00 seven /w/program",
        ] {
            let maps = [line.as_bytes(), b"\n", MAPS].concat();
            assert!(Mapping::all(&maps).eq(Mapping::all(MAPS)), "{line}");
        }
    }

    #[test]
    fn the_stack_of_this_process_is_in_a_mapping_without_a_file() {
        let local = 0_u8;
        let address = std::ptr::from_ref(&local) as u64;
        let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
        let found = Mapping::all(&maps).find(|one| (one.start..one.end).contains(&address));
        assert!(
            found.is_some_and(|one| one.is_private && one.inode == 0),
            "{found:?}"
        );
        assert!(!Mapping::of_files(&maps).any(|one| one.contains(address)));
    }

    #[test]
    fn the_code_of_this_process_is_in_a_mapping_of_its_program() {
        let address = the_code_of_this_process_is_in_a_mapping_of_its_program as *const () as u64;
        let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
        let found = Mapping::of_files(&maps).find(|one| one.contains(address));
        let own = std::env::current_exe().unwrap_or_default();
        assert!(found.is_some_and(|one| {
            let is_own = one.name == own.as_os_str().as_bytes();
            is_own && one.is_executable && one.is_private && one.open(std::process::id()).is_some()
        }));
        assert!(!Mapping::of_files(&maps).any(|one| one.contains(0)));
    }
}
