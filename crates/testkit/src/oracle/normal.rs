//! The only list of permitted differences between two runs of a command.
//!
//! It has ten entries at most. The oracle prints the number of paths that each one touched.

/// The treatment of a path that a rule matches.
pub enum Effect {
    /// Leave it out of the comparison, on both sides.
    Ignore,
    /// Compare it under this name.
    Rewrite(Vec<u8>),
}

/// A rule of the list.
pub struct Rule {
    /// The pattern, as documentation.
    pub pattern: &'static str,
    /// The reason why two right accounts may differ here.
    pub reason: &'static str,
    /// Applies it to an absolute path.
    pub apply: fn(&[u8]) -> Option<Effect>,
}

/// The list.
pub const RULES: [Rule; 6] = [
    Rule {
        pattern: "/proc/PID/…, /proc/self/…, /proc/thread-self/…",
        reason: "process numbers differ from run to run, and `self` is one of them",
        apply: proc_pid,
    },
    Rule {
        pattern: "PREFIXrandom (tmp_obj_, sh-thd., pymp-, tmp., sort, tmp, sed, cc, Cu, XX; .git/t; valgrind_proc_, GMfifo)",
        reason: "names made by mkstemp and its kin are random, or have a process number",
        apply: random_name,
    },
    Rule {
        pattern: "….pyc.NUMBER",
        reason: "Python writes compiled modules under a random name before it renames them",
        apply: compiled_module,
    },
    Rule {
        pattern: "DIRECTORY/#INODE",
        reason: "the kernel's name for a file made with O_TMPFILE; it has none of its own",
        apply: nameless,
    },
    Rule {
        pattern: "/etc/ld.so.preload",
        reason: "the loader looks for it before any library, and so any recorder, is there",
        apply: loader_lookup,
    },
    Rule {
        pattern: "DIRECTORY/{glibc-hwcaps,tls,x86_64,haswell,…}…",
        reason: "directories that the loader tries for a library it was asked to load: its own look-ups, not the program's",
        apply: loader_directory,
    },
];

/// How often each rule was used.
pub type Counts = [u64; RULES.len()];

/// The path to compare. `None` if it is ignored.
pub fn normal(path: &[u8], counts: &mut Counts) -> Option<Vec<u8>> {
    for (rule, count) in RULES.iter().zip(counts.iter_mut()) {
        match (rule.apply)(path) {
            Some(Effect::Ignore) => {
                *count += 1;
                return None;
            }
            Some(Effect::Rewrite(other)) => {
                *count += 1;
                return Some(other);
            }
            None => {}
        }
    }
    Some(path.to_vec())
}

fn proc_pid(path: &[u8]) -> Option<Effect> {
    let rest = path.strip_prefix(b"/proc/")?;
    let end = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
    let who = &rest[..end];
    let numbered = !who.is_empty() && who.iter().all(u8::is_ascii_digit);
    let mut tail = &rest[end..];
    if numbered || who == b"self" || who == b"thread-self" {
        if let Some(thread) = tail.strip_prefix(b"/task/") {
            let skip = thread
                .iter()
                .position(|b| *b == b'/')
                .unwrap_or(thread.len());
            tail = &thread[skip..];
        }
        return Some(Effect::Rewrite([b"/proc/PID", tail].concat()));
    }
    None
}

/// Prefixes and lengths of names that mkstemp(3) and similar functions make, each with a program
/// that uses it.
const TEMPLATES: [(&[u8], usize); 10] = [
    (b"tmp_obj_", 6), // git
    (b"sh-thd.", 6),  // bash
    (b"pymp-", 8),    // python
    (b"tmp.", 10),    // mktemp
    (b"sort", 6),     // sort
    (b"tmp", 8),      // python
    (b"sed", 6),      // sed
    (b"cc", 6),       // gcc
    (b"Cu", 6),       // coreutils
    (b"XX", 6),       // perl
];

fn random_name(path: &[u8]) -> Option<Effect> {
    let mut in_git = false;
    let mut parts = Vec::new();
    for part in path.split(|b| *b == b'/') {
        if part.starts_with(b"valgrind_proc_") {
            // valgrind_proc_PID_WHAT_RANDOM
            let what = part.split(|b| *b == b'_').nth(3).unwrap_or_default();
            parts.push([b"valgrind_proc_".as_slice(), what].concat());
            continue;
        }
        // The jobserver of make, since version 4.4.
        if let Some(pid) = part.strip_prefix(b"GMfifo")
            && pid.iter().all(u8::is_ascii_digit)
        {
            parts.push(b"GMfifoPID".to_vec());
            continue;
        }
        let git: (&[u8], usize) = (b"t", 6);
        let templates = TEMPLATES.iter().chain(in_git.then_some(&git));
        parts.push(
            templates
                .copied()
                .find_map(|template| from_template(part, template))
                .unwrap_or_else(|| part.to_vec()),
        );
        in_git = part == b".git";
    }
    let rewritten = parts.join(&b'/');
    (rewritten != path).then_some(Effect::Rewrite(rewritten))
}

/// The name with its random part replaced, if it was made from this template. An extension may
/// follow.
fn from_template(name: &[u8], (prefix, length): (&[u8], usize)) -> Option<Vec<u8>> {
    let (random, rest) = name.strip_prefix(prefix)?.split_at_checked(length)?;
    let fits = random
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    (fits && (rest.is_empty() || rest.starts_with(b".")))
        .then(|| [prefix, b"RANDOM", rest].concat())
}

fn compiled_module(path: &[u8]) -> Option<Effect> {
    let dot = path.iter().rposition(|b| *b == b'.')?;
    let (stem, number) = (&path[..dot], &path[dot + 1..]);
    let random =
        stem.ends_with(b".pyc") && !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    random.then(|| Effect::Rewrite([stem, b".RANDOM"].concat()))
}

fn nameless(path: &[u8]) -> Option<Effect> {
    let slash = path.iter().rposition(|b| *b == b'/')?;
    let number = path[slash + 1..].strip_prefix(b"#")?;
    (!number.is_empty() && number.iter().all(u8::is_ascii_digit)).then_some(Effect::Ignore)
}

fn loader_lookup(path: &[u8]) -> Option<Effect> {
    (path == b"/etc/ld.so.preload").then_some(Effect::Ignore)
}

fn loader_directory(path: &[u8]) -> Option<Effect> {
    let rest = path
        .strip_prefix(b"/usr")
        .unwrap_or(path)
        .strip_prefix(b"/lib")?;
    let rest = rest.strip_prefix(b"/x86_64-linux-gnu").unwrap_or(rest);
    let first = rest.split(|b| *b == b'/').nth(1)?;
    // The parts after `x86_64` depend on the processor, and so on the machine.
    [
        b"glibc-hwcaps".as_slice(),
        b"tls",
        b"x86_64",
        b"haswell",
        b"xeon_phi",
        b"avx512_1",
    ]
    .contains(&first)
    .then_some(Effect::Ignore)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str) -> Option<String> {
        normal(path.as_bytes(), &mut Counts::default())
            .map(|p| String::from_utf8_lossy(&p).into_owned())
    }

    #[test]
    fn random_and_numbered_names_become_one() {
        assert_eq!(
            shown("/proc/812/task/813/stat").as_deref(),
            Some("/proc/PID/stat")
        );
        assert_eq!(shown("/tmp/ccAb12Cd.o").as_deref(), Some("/tmp/ccRANDOM.o"));
        assert_eq!(
            shown("/w/tmp.X9dkfjslw1/f").as_deref(),
            Some("/w/tmp.RANDOM/f")
        );
        assert_eq!(
            shown("/w/m.cpython-311.pyc.140002").as_deref(),
            Some("/w/m.cpython-311.pyc.RANDOM")
        );
        assert_eq!(shown("/w/#1234"), None);
    }

    #[test]
    fn a_loaders_hardware_variants_are_not_compared() {
        for path in [
            "/lib/haswell",
            "/usr/lib/x86_64-linux-gnu/avx512_1/x86_64",
            "/lib/x86_64-linux-gnu/tls",
        ] {
            assert_eq!(shown(path), None, "{path}");
        }
    }

    #[test]
    fn ordinary_names_stay_themselves() {
        for path in [
            "/proc/meminfo",
            "/w/sorted.txt",
            "/w/ccache",
            "/usr/bin/sed",
            "/w/tmpfile",
            "/w/a.pyc",
        ] {
            assert_eq!(shown(path).as_deref(), Some(path));
        }
    }
}
