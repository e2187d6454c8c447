//! Which environment variables are secrets.
//!
//! Invariant: the value of a variable that matches never reaches the log, neither its header nor the environments that programs
//! were executed with.

use backstory_abi::{self as abi, Who, op};
use backstory_eventlog::chunk::{Skipped, View};
use backstory_eventlog::slot::Raw;
use std::collections::HashSet;

/// Names that are always secret.
const SECRETS: &[&str] = &[
    "*TOKEN*",
    "*SECRET*",
    "*PASSWORD*",
    "*PASSWD*",
    "*_KEY",
    "*CREDENTIAL*",
    "AWS_*",
];

/// What stands for a value that is long enough.
const REDACTED: &[u8] = b"<redacted>";

/// The patterns of one run, and the secrets that are being read.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    more: Vec<String>,
    /// Threads whose last `ENV` slot ended within the value of a secret.
    within: HashSet<(u32, u32)>,
}

impl Secrets {
    /// The built-in patterns and these.
    pub(crate) fn new(more: &[String]) -> Secrets {
        Secrets {
            more: more.to_vec(),
            within: HashSet::new(),
        }
    }

    /// The built-in patterns and the names that were secret when this environment was redacted.
    pub(crate) fn known_from(redacted: &[Vec<u8>]) -> Secrets {
        let name = |entry: &Vec<u8>| {
            let name = entry.strip_suffix(REDACTED)?.strip_suffix(b"=")?;
            std::str::from_utf8(name).ok().map(str::to_owned)
        };
        Secrets {
            more: redacted.iter().filter_map(name).collect(),
            within: HashSet::new(),
        }
    }

    /// An environment with the values of secrets replaced.
    pub(crate) fn environment(&self, all: &[Vec<u8>]) -> Vec<Vec<u8>> {
        all.iter().map(|entry| self.redact(entry)).collect()
    }

    /// Replaces the values of secrets in a chunk's `ENV` slots. No slot changes its place or size.
    pub(crate) fn scrub(&mut self, chunk: &mut [u8]) {
        let mut at = abi::Chunk::SIZE;
        loop {
            let Some((head, view)) = View::new(chunk) else {
                return;
            };
            let Some((found, slot)) = view.next(at, &mut Skipped::default()) else {
                blank(&mut chunk[at..]);
                return;
            };
            let end = found + usize::from(slot.size);
            blank(&mut chunk[at..found]);
            at = end;
            if slot.op == op::ENV {
                let owner = (head.pid, head.tid);
                self.scrub_slot(owner, &mut chunk[found..end]);
            }
        }
    }

    fn scrub_slot(&mut self, owner: (u32, u32), slot: &mut [u8]) {
        let Some(raw) = Raw::parse(slot) else { return };
        let owner = raw.who.map_or(owner, |who: Who| (who.pid, who.tid));
        let mut within = self.within.remove(&owner);
        let strings: Vec<&[u8]> = raw.list().collect();
        let mut clean = Vec::with_capacity(raw.body.len());
        for (index, string) in strings.iter().enumerate() {
            match within {
                true => {}
                false => clean.extend(self.redact(string)),
            }
            clean.push(0);
            let last = index + 1 == strings.len();
            if last && raw.more() && (within || self.is_secret(string)) {
                self.within.insert(owner);
            }
            within = false;
        }
        let body = slot.len() - raw.body.len();
        // A program that writes its slots itself may have left out the last NUL.
        clean.truncate(raw.body.len());
        let told = raw.head.aux != 0;
        slot[body..].fill(0);
        slot[body..body + clean.len()].copy_from_slice(&clean);
        if told {
            let mut head = abi::Slot::read(slot).unwrap_or_default();
            head.aux = clean.len() as u32;
            slot[..abi::Slot::SIZE].copy_from_slice(&head.to_bytes());
        }
    }

    /// True if an entry (or the beginning of one) names a secret.
    fn is_secret(&self, entry: &[u8]) -> bool {
        let Some(name) = name(entry) else { return false };
        let upper = name.to_ascii_uppercase();
        SECRETS.iter().any(|p| matches(p.as_bytes(), &upper))
            || self.more.iter().any(|p| matches(p.as_bytes(), name))
    }

    /// What is kept of an entry: never longer than it was, so that it fits where it stood.
    fn redact(&self, entry: &[u8]) -> Vec<u8> {
        let Some(name) = name(entry).filter(|_| self.is_secret(entry)) else {
            return entry.to_vec();
        };
        let value = entry.len() - name.len() - 1;
        let mut kept = entry[..=name.len()].to_vec();
        match value < REDACTED.len() {
            true => kept.extend(std::iter::repeat_n(b'*', value)),
            false => kept.extend(REDACTED),
        }
        kept
    }
}

/// What lies between slots was being written by somebody who died: no reader understands it, but it may hold part of an environment.
/// Where slots begin is kept, so that what is torn is counted as before.
fn blank(torn: &mut [u8]) {
    let mut at = 0;
    while let Some(mut slot) = torn.get(at..).and_then(abi::Slot::read) {
        let size = usize::from(slot.size);
        let whole = size.is_multiple_of(8) && size >= abi::Slot::SIZE && at + size <= torn.len();
        if !whole {
            break;
        }
        (slot.fd, slot.arg, slot.result, slot.aux) = (0, 0, 0, 0);
        torn[at..at + abi::Slot::SIZE].copy_from_slice(&slot.to_bytes());
        torn[at + abi::Slot::SIZE..at + size].fill(0);
        at += size;
    }
    torn[at..].fill(0);
}

/// The name in `NAME=value`.
fn name(entry: &[u8]) -> Option<&[u8]> {
    entry.iter().position(|&b| b == b'=').map(|end| &entry[..end])
}

/// `*` stands for anything, `?` for one byte. Time is at most the product of the lengths: of several `*`, only the last is ever tried again.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(&wanted) if wanted == b'?' || wanted == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((after, taken)) => {
                    star = Some((after, taken + 1));
                    (p, t) = (after, taken + 1);
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

    fn one(entry: &str, more: &[&str]) -> String {
        let more: Vec<String> = more.iter().map(|&m| m.into()).collect();
        String::from_utf8(Secrets::new(&more).redact(entry.as_bytes())).unwrap()
    }

    #[test]
    fn the_values_of_secrets_are_replaced() {
        for name in [
            "GITHUB_TOKEN",
            "my_secret_x",
            "PGPASSWORD",
            "API_KEY",
            "AWS_REGION",
            "npm_config_credentials",
        ] {
            assert_eq!(
                one(&format!("{name}=a long=value"), &[]),
                format!("{name}=<redacted>")
            );
            assert_eq!(one(&format!("{name}=v=w"), &[]), format!("{name}=***"));
        }
    }

    #[test]
    fn other_variables_are_kept_as_they_are() {
        for entry in ["PATH=/bin", "KEYBOARD=de", "MONKEY=1", "no equals sign", "=odd"] {
            assert_eq!(one(entry, &[]), entry);
        }
    }

    #[test]
    fn the_user_can_name_more() {
        assert_eq!(one("MY_DSN=user:pass@host", &["MY_?SN"]), "MY_DSN=<redacted>");
        assert_eq!(one("MY_DSN=u:p@h", &["OTHER*"]), "MY_DSN=u:p@h");
    }

    #[test]
    fn patterns_match_as_in_a_shell_and_in_no_time() {
        let cases: [(&str, &str, bool); 8] = [
            ("*", "", true),
            ("*_KEY", "A_KEY", true),
            ("*_KEY", "A_KEYS", false),
            ("A*B*C", "AxBxBxC", true),
            ("A*B*C", "AxBxB", false),
            ("?", "", false),
            ("**?", "x", true),
            ("", "x", false),
        ];
        for (pattern, text, wanted) in cases {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                wanted,
                "{pattern} {text}"
            );
        }
        // Trying every `*` at every place would take longer than the universe is old.
        assert!(!matches(
            &[b"*a".repeat(30), b"b".to_vec()].concat(),
            &b"a".repeat(60_000)
        ));
    }

    #[test]
    fn a_slot_that_a_program_wrote_without_its_last_nul_is_no_reason_to_die() {
        let mut chunk = chunk(&[(&["MY_TOKEN=short"], false)], false);
        let end = chunk.len();
        let start = end - 16;
        chunk[start..].fill(b'=');
        Secrets::default().scrub(&mut chunk);
        assert_eq!(strings(&chunk).len(), 1);
        let secret = b"MY_TOKEN=";
        chunk[start..start + secret.len()].copy_from_slice(secret);
        chunk[start + secret.len()..].fill(b'x');
        Secrets::default().scrub(&mut chunk);
        assert!(!chunk.ends_with(b"xxx"), "the value is gone");
    }

    /// A chunk of `ENV` slots with these strings; true: the last goes on in the next.
    fn chunk(slots: &[(&[&str], bool)], told: bool) -> Vec<u8> {
        let head = abi::Chunk {
            magic: abi::CHUNK_MAGIC,
            pid: 7,
            tid: 7,
            ..abi::Chunk::default()
        };
        let mut chunk = backstory_eventlog::chunk::Builder::new(head);
        let mut builder = backstory_eventlog::slot::Builder::new();
        for (strings, more) in slots {
            let bytes: usize = strings.iter().map(|s| s.len() + 1).sum();
            builder
                .start(op::ENV, 1)
                .aux(if told { bytes as u32 } else { 0 })
                .result(0);
            for string in *strings {
                builder.string(string.as_bytes());
            }
            if *more {
                builder.more();
            }
            assert!(chunk.push(builder.finish()));
        }
        chunk.bytes().to_vec()
    }

    #[test]
    fn what_a_dying_program_left_half_written_holds_no_secret() {
        let whole = chunk(
            &[(&["A=1", "MY_TOKEN=0123456789abcdef"], false), (&["B=2"], false)],
            true,
        );
        let size = abi::Slot::read(&whole[abi::Chunk::SIZE..]).unwrap().size;
        // The state was not written yet; nor the operation; nor the size.
        for (torn, kept) in [(0..2, 1), (0..4, 1), (0..8, 1)] {
            let mut bytes = whole.clone();
            bytes[abi::Chunk::SIZE..][torn.clone()].fill(0);
            if torn.end < 8 {
                bytes[abi::Chunk::SIZE + 4..][..2].copy_from_slice(&size.to_le_bytes());
            }
            Secrets::default().scrub(&mut bytes);
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("0123456789"), "{torn:?}: {text:?}");
            assert_eq!(strings(&bytes).len(), kept, "{torn:?}");
        }
    }

    fn strings(chunk: &[u8]) -> Vec<Vec<String>> {
        let (_, view) = View::new(chunk).unwrap();
        let (mut at, mut all) = (abi::Chunk::SIZE, Vec::new());
        while let Some((found, slot)) = view.next(at, &mut Skipped::default()) {
            let raw = Raw::parse(view.from(found)).unwrap();
            all.push(
                raw.list()
                    .map(|s| String::from_utf8(s.to_vec()).unwrap())
                    .collect(),
            );
            at = found + usize::from(slot.size);
        }
        all
    }

    #[test]
    fn secrets_in_a_chunk_are_replaced_in_their_place() {
        for told in [true, false] {
            let mut bytes = chunk(
                &[
                    (&["A=1", "MY_TOKEN=0123456789abcdef", "B=", "C=3"], false),
                    (&["D=4"], false),
                ],
                told,
            );
            Secrets::default().scrub(&mut bytes);
            let wanted = vec![vec!["A=1", "MY_TOKEN=<redacted>", "B=", "C=3"], vec!["D=4"]];
            assert_eq!(strings(&bytes), wanted, "told {told}");
        }
    }

    #[test]
    fn a_secret_that_goes_on_in_the_next_slots_is_replaced_in_all() {
        let mut secrets = Secrets::default();
        let mut first = chunk(
            &[(&["A=1", "MY_TOKEN=0123456789abcdef"], true), (&["ghijkl"], true)],
            true,
        );
        let mut second = chunk(&[(&["mnopqr", "Z=9"], false)], true);
        secrets.scrub(&mut first);
        secrets.scrub(&mut second);
        assert_eq!(strings(&first), [vec!["A=1", "MY_TOKEN=<redacted>"], vec![""]]);
        assert_eq!(strings(&second), [vec!["", "Z=9"]]);
    }
}
