//! Paths that are longer than a system call takes. A program in a deep directory can name a file by
//! a short relative path whose absolute path is that long.

/// Bytes of the longest path that a call takes.
const LONGEST: usize = 4095;

/// Splits a path that is too long: into the path of a directory on the way, and the rest from
/// there. `None` if the path is short enough, or cannot be split.
pub fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let head = path.get(..LONGEST + 1)?;
    let slash = head
        .iter()
        .rposition(|byte| *byte == b'/')
        .filter(|at| *at > 0)?;
    let rest = &path[slash..];
    let start = rest.iter().position(|byte| *byte != b'/')?;
    Some((&path[..slash], &rest[start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_where_it_is_too_long() {
        let name = [b"/".as_slice(), &[b'd'; 200]].concat();
        let deep = name.repeat(45);
        let (first, rest) = split(&deep).unwrap();
        assert!(first.len() <= LONGEST && first.len() > LONGEST - 201 && !rest.starts_with(b"/"));
        assert_eq!([first, b"/", rest].concat(), deep);
        let (second, last) = split(rest).unwrap();
        assert_eq!([first, b"/", second, b"/", last].concat(), deep);
        assert_eq!(split(last), None);
        assert_eq!(split(&deep[..LONGEST]), None);
        assert_eq!(split(&[b'd'; 5000]), None, "the kernel's to refuse");
    }
}
