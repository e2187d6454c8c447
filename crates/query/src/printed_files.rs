//! The regular files that a run's command began with as standard output and standard errors: its
//! caller redirected them, as in `backstory record make > log`.
//!
//! In: the header of a run. Out: absolute paths.

use backstory_eventlog::run::RunHeader;

/// Standard output and standard errors.
const PRINTED: [i32; 2] = [1, 2];

/// The regular files of standard output and standard errors.
pub fn printed_files(header: &RunHeader) -> Vec<Vec<u8>> {
    let printed = PRINTED.iter().filter_map(|fd| regular_file(header, *fd));
    printed.map(<[u8]>::to_vec).collect()
}

/// Those that were empty when the command began: the shell made or truncated them (`> FILE`).
pub fn emptied_files(header: &RunHeader) -> Vec<Vec<u8>> {
    let is_empty = |path: &Vec<u8>| {
        let mut all = header.descriptors.iter().zip(&header.descriptor_files);
        all.any(|((_, at), file)| at == path && file.is_some_and(|file| file.size == 0))
    };
    let mut files = printed_files(header);
    files.retain(is_empty);
    files
}

/// The regular file of standard output.
pub(crate) fn output_file(header: &RunHeader) -> Option<&[u8]> {
    regular_file(header, PRINTED[0])
}

/// The path of a descriptor's regular file.
fn regular_file(header: &RunHeader, wanted: i32) -> Option<&[u8]> {
    let mut descriptors = header.descriptors.iter();
    let at = descriptors.position(|(fd, _)| *fd == wanted)?;
    // Old logs do not say which descriptors are regular files.
    let is_file = match header.descriptor_files.get(at) {
        Some(file) => file.is_some(),
        None => true,
    };
    let path = &header.descriptors[at].1;
    (is_file && path.starts_with(b"/")).then_some(path)
}
