//! Matches a file's name with a pattern of an inspector.

/// True if `pattern` matches all of `name`. `*` is any text, also with slashes, and `?` is any one
/// byte. Upper and lower case of ASCII letters are the same.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // The place in both after the last `*`, to which a failed match returns.
    let mut star: Option<(usize, usize)> = None;
    let (mut p, mut n) = (0, 0);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte.eq_ignore_ascii_case(&name[n]) => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((after, at)) => {
                    star = Some((after, at + 1));
                    (p, n) = (after, at + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_pattern_matches_whole_names() {
        for (pattern, name, wanted) in [
            ("*.csv", "a/b.CSV", true),
            ("*.csv", "a.csv.gz", false),
            ("*/.git/objects/??/*", "/w/.git/objects/ab/cdef", true),
            ("*/.git/objects/??/*", "/w/.git/objects/pack/x", false),
            ("*a*b", "xaxxbab", true),
            ("*a*b", "xaxxbac", false),
            ("*", "", true),
            ("?", "", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                wanted,
                "{pattern} {name}"
            );
        }
    }
}
