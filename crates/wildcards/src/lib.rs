//! Compares a name with a pattern in which `*` is any bytes and `?` is any one byte.
//!
//! In: a pattern and a name, as bytes. Out: whether the pattern matches the whole name. `*` matches
//! slashes, too. No byte takes away the meaning of a wildcard.
//!
//! Invariant: a comparison allocates nothing, and takes at most as many steps as the product of the
//! two lengths. If a part between two `*` was found, no earlier part is looked for again.
//!
//! Absent: patterns with another syntax. Rules of `hunt` have escapes, and their time is linear in
//! the text. Patterns of paths in `query` have `**` and classes. In commands of the shell's policy,
//! `?` is a plain character.

/// True if the pattern matches all of the name.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    matches_by(pattern, name, |wanted, byte| wanted == byte)
}

/// True if the pattern matches all of the name, whatever the case of its ASCII letters.
pub fn matches_in_any_case(pattern: &[u8], name: &[u8]) -> bool {
    matches_by(pattern, name, |wanted, byte| {
        wanted.eq_ignore_ascii_case(&byte)
    })
}

fn matches_by(pattern: &[u8], name: &[u8], equals: impl Fn(u8, u8) -> bool) -> bool {
    let (mut p, mut n) = (0, 0);
    // The place in the pattern behind the last `*`, and that in the name behind its bytes.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                star = Some((p, n));
            }
            Some(&wanted) if wanted == b'?' || equals(wanted, name[n]) => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((after, taken)) => {
                    star = Some((after, taken + 1));
                    (p, n) = (after, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&rest| rest == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_pattern_matches_whole_names() {
        for (pattern, name, expected) in [
            ("parse_*", "parse_line", true),
            ("parse_*", "reparse_line", false),
            ("*_KEY", "A_KEYS", false),
            ("parse_lin?", "parse_line", true),
            ("parse_line?", "parse_line", false),
            ("*/.git/objects/??/*", "/w/.git/objects/ab/cdef", true),
            ("*/.git/objects/??/*", "/w/.git/objects/pack/x", false),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXbcd", false),
            ("**?", "x", true),
            ("*", "", true),
            ("?", "", false),
            ("", "x", false),
            (r"a\*", r"a\b", true),
        ] {
            let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
            assert_eq!(matches(pattern, name), expected, "{pattern:?} {name:?}");
        }
    }

    #[test]
    fn the_case_of_letters_matters_unless_it_is_ignored() {
        assert!(!matches(b"*.csv", b"a/b.CSV") && matches_in_any_case(b"*.csv", b"a/b.CSV"));
        assert!(matches_in_any_case(b"*.CSV", b"a.csv") && !matches_in_any_case(b"@", b"`"));
    }

    /// Compares by the definition of the wildcards, however long that takes.
    fn is_met(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, _) => name.is_empty(),
            (Some((b'*', rest)), _) => (0..=name.len()).any(|from| is_met(rest, &name[from..])),
            (Some((wanted, rest)), Some((byte, others))) => {
                (*wanted == b'?' || wanted == byte) && is_met(rest, others)
            }
            (Some(_), None) => false,
        }
    }

    /// All texts of at most so many of these characters.
    fn texts(characters: &[u8], longest: usize) -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..longest {
            let end = all.len();
            for at in from..end {
                for character in characters {
                    let mut longer: Vec<u8> = all[at].clone();
                    longer.push(*character);
                    all.push(longer);
                }
            }
            from = end;
        }
        all
    }

    #[test]
    fn every_short_pattern_matches_the_names_that_its_wildcards_mean() {
        let names = texts(b"ab", 6);
        for pattern in texts(b"ab*?", 5) {
            for name in &names {
                let expected = is_met(&pattern, name);
                assert_eq!(matches(&pattern, name), expected, "{pattern:?} {name:?}");
            }
        }
    }

    #[test]
    fn a_hostile_pattern_takes_at_most_the_product_of_the_lengths() {
        let name = b"a".repeat(2_000);
        let many = [b"*a".repeat(30), b"b".to_vec()].concat();
        let long = [b"*".to_vec(), b"a".repeat(1_000), b"b".to_vec()].concat();
        for pattern in [&many[..], &long, b"*a*a*a*a*b", b"*ab*ab*", b"*a?a?b*"] {
            let steps = Cell::new(0);
            let found = matches_by(pattern, &name, |wanted, byte| {
                steps.set(steps.get() + 1);
                wanted == byte
            });
            assert!(!found, "{pattern:?}");
            assert!(steps.get() <= pattern.len() * name.len(), "{pattern:?}");
        }
    }
}
