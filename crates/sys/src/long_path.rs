//! Paths that are longer than the kernel takes at once: where programs stand deep, what they name by a short name has one.

/// Bytes of the longest path that a call takes.
const LONGEST: usize = 4095;

/// A path that is too long, as the path of a directory on the way that is not, and the rest from there; none if it can be asked for as it is.
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
