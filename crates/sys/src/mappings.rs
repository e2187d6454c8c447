//! The files that a process has mapped (`/proc/PID/maps`).

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A mapping that has a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMapping<'a> {
    /// Its first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// Its memory can be executed.
    pub is_executable: bool,
    /// Its memory is a copy: the file stays as it is when it is written to.
    pub is_private: bool,
    /// The position in the file.
    pub offset: u64,
    /// The inode of the file.
    pub inode: u64,
    /// The path of the file, as the process has it.
    pub path: &'a [u8],
}

impl FileMapping<'_> {
    /// All of them, in the order of addresses. `maps` is the content of the file in `/proc`.
    pub fn all(maps: &[u8]) -> impl Iterator<Item = FileMapping<'_>> {
        maps.split(|&byte| byte == b'\n')
            .filter_map(FileMapping::read)
    }

    fn read(line: &[u8]) -> Option<FileMapping<'_>> {
        let path = &line[line.iter().position(|&byte| byte == b'/')?..];
        let words = std::str::from_utf8(&line[..line.len() - path.len()]).ok()?;
        let mut words = words.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
        let access = words.next()?;
        Some(FileMapping {
            start: hexadecimal(start)?,
            end: hexadecimal(end)?,
            is_executable: access.contains('x'),
            is_private: access.ends_with('p'),
            offset: hexadecimal(words.next()?)?,
            inode: words.nth(1)?.parse().ok()?,
            path,
        })
    }

    /// True if the address lies in it.
    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Opens the file of a process's mapping. `None`: another file may have the path by now.
    pub fn open(&self, pid: u32) -> Option<File> {
        let path = Path::new(OsStr::from_bytes(self.path));
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
    use super::FileMapping;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn the_code_of_this_process_is_in_a_mapping_of_its_program() {
        let address = the_code_of_this_process_is_in_a_mapping_of_its_program as *const () as u64;
        let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
        let found = FileMapping::all(&maps).find(|one| one.contains(address));
        let own = std::env::current_exe().unwrap_or_default();
        assert!(found.is_some_and(|one| {
            let is_own = one.path == own.as_os_str().as_bytes();
            is_own && one.is_executable && one.is_private && one.open(std::process::id()).is_some()
        }));
        assert!(!FileMapping::all(&maps).any(|one| one.contains(0)));
    }
}
