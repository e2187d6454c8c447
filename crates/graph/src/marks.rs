//! Marks: statements of a recorded program about its own work.
//!
//! A mark is the attempt to open a path that cannot exist. Every process can make one, in any
//! language and without a library, and it costs a microsecond where nothing records. The log has it
//! in order with all other operations of the process. `docs/formats/marks.md` is for programmers.
//!
//! ```text
//! /dev/null/backstory/[for/PID/][in/HANDLE/…]VERB/WORD/WORD…
//! ```
//!
//! In a word, `%` and two digits stand for a byte; `%2f` is a slash. A word is never taken for the
//! truth about files: names of things are URIs, whose scheme is not one of [`RESERVED`].
//!
//! Invariant: a path that is no mark is never taken for one.

use std::collections::BTreeMap;

use backstory_eventlog::event::{Bytes, Pid, ResourceAccess};
use backstory_eventlog::percent::decoded;

use crate::parts::Part;

/// The schemes of names that backstory itself gives: to files, channels, and the things of sources
/// that it watches.
pub const RESERVED: &[&str] = &[
    "file", "mariadb", "memory", "mysql", "pipe", "postgres", "ssh", "tcp", "udp", "unix",
];

/// The extended record with an attribute of an activity: its name, a NUL, its value.
pub const ATTRIBUTE: &[u8] = b"attribute";

/// The begin of the name of an attribute that says how often a program called a recorded function.
pub const CALLS_OF: &[u8] = b"calls of ";

/// The name and the value of an attribute's record.
fn attribute(payload: &[u8]) -> (Bytes, Bytes) {
    let end = payload.iter().position(|&byte| byte == 0);
    let end = end.unwrap_or(payload.len());
    let value = payload.get(end + 1..).unwrap_or_default();
    (payload[..end].into(), value.into())
}

/// The extended record with what a schema says about the record before it, of the same activity. A
/// program cannot make one: the types of its records have a dot.
pub const JUDGEMENT: &[u8] = b"judgement";

/// The result of comparing an extended record with a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The schema: a type, `@`, a version.
    pub schema: Bytes,
    /// The verdict.
    pub state: SchemaState,
    /// The first violation, or why the record was not checked. Empty for one that conforms.
    pub why: Bytes,
}

/// The verdict about an extended record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaState {
    /// The payload is what the schema says.
    Conforms,
    /// It is not.
    Violates,
    /// Nothing could compare them.
    Unchecked,
}

impl SchemaState {
    const ALL: [SchemaState; 3] = [Self::Conforms, Self::Violates, Self::Unchecked];

    /// The word in the store and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            SchemaState::Conforms => "conforms",
            SchemaState::Violates => "violates",
            SchemaState::Unchecked => "unchecked",
        }
    }
}

impl Judgement {
    /// The payload of the record: the parts with a NUL between them.
    pub fn encode(&self) -> Vec<u8> {
        let parts: [&[u8]; 3] = [&self.schema, self.state.word().as_bytes(), &self.why];
        parts.join(&b"\0"[..])
    }

    fn decode(payload: &[u8]) -> Option<Judgement> {
        let mut parts = payload.splitn(3, |&byte| byte == 0);
        let (schema, word, why) = (parts.next()?, parts.next()?, parts.next()?);
        let mut states = SchemaState::ALL.into_iter();
        Some(Judgement {
            schema: schema.into(),
            state: states.find(|state| state.word().as_bytes() == word)?,
            why: why.into(),
        })
    }
}

/// An extended record that a program gave an activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedRecord {
    /// Its type, perhaps with `@` and a version.
    pub kind: Bytes,
    /// Its payload, as the program stated it.
    pub payload: Bytes,
    /// The judgement by its schema. `None` if its type has no schema.
    pub judgement: Option<Judgement>,
}

/// Attributes and extended records that a program gave an activity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// The attributes by name. Of one name the last value counts.
    pub attributes: BTreeMap<Bytes, Bytes>,
    /// The extended records, in the order of the statements.
    pub records: Vec<StatedRecord>,
}

impl Notes {
    /// Takes in an extended record of the activity. Records of backstory itself are left out.
    pub fn add(&mut self, kind: &[u8], payload: &[u8]) {
        if kind == ATTRIBUTE {
            let (name, value) = attribute(payload);
            self.attributes.insert(name, value);
        } else if is_record_type(kind) {
            self.records.push(StatedRecord {
                kind: kind.into(),
                payload: payload.into(),
                judgement: None,
            });
        } else if kind == JUDGEMENT
            && let Some(last) = self.records.last_mut()
        {
            last.judgement = Judgement::decode(payload);
        }
    }

    /// Takes in those of another activity.
    pub fn extend(&mut self, other: Notes) {
        self.attributes.extend(other.attributes);
        self.records.extend(other.records);
    }
}

/// The extended record about a derivation: the names of the new thing, a NUL, and of the old one.
pub const DERIVATION: &[u8] = b"derivation";

const PREFIX: &[u8] = b"/dev/null/backstory/";

/// The most handles in a path: activities inside each other.
const MOST_HANDLES: usize = 2;

/// A statement of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// An activity begins inside the present one.
    Begin(Vec<Bytes>),
    /// The activity ends that the last mark began, and another begins.
    Next(Vec<Bytes>),
    /// The activity ends that the last mark began.
    End,
    /// The activity uses a thing.
    Use(ResourceAccess, Bytes),
    /// The activity uses a part of a thing: the name of the thing, and the part.
    UsePart(ResourceAccess, Bytes, Part),
    /// The activity made one thing from another. The first is the new one.
    Derive(Bytes, Bytes),
    /// An attribute of the activity: its name and its value.
    Note(Bytes, Bytes),
    /// An extended record of the activity: its type, which has a dot, and its payload.
    Record(Bytes, Bytes),
    /// The process is about to execute a program that connects to another machine. The name of the
    /// connection is the same in the run that it starts there.
    Connect(Bytes),
    /// A command on another machine is not recorded: the machine, and the reason.
    Unrecorded(Bytes, Bytes),
}

/// A mark, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The process that the mark is about, if it is the parent of the process that made the mark:
    /// a shell, whose child `backstory emit` is.
    pub parent: Option<Pid>,
    /// The activity that the statement is about, by the name that the program gave it. Such
    /// activities may overlap. `None`: the present activity of the process.
    pub handle: Option<Bytes>,
    /// The handle of the activity around it, for a begin.
    pub around: Option<Bytes>,
    /// The statement itself.
    pub statement: Statement,
}

/// The mark that a path is.
pub fn mark(path: &[u8]) -> Option<Mark> {
    let mut words = path.strip_prefix(PREFIX)?.split(|&byte| byte == b'/');
    let mut verb = words.next()?;
    let mut parent = None;
    if verb == b"for" {
        let number = std::str::from_utf8(words.next()?).ok()?;
        parent = Some(number.parse().ok()?);
        verb = words.next()?;
    }
    let mut handles: Vec<Bytes> = Vec::new();
    while verb == b"in" && handles.len() < MOST_HANDLES {
        handles.push(decoded(words.next()?).into());
        verb = words.next()?;
    }
    let words: Vec<Bytes> = words.map(|word| decoded(word).into()).collect();
    let handle = handles.pop();
    Some(Mark {
        parent,
        handle,
        around: handles.pop(),
        statement: statement(verb, words)?,
    })
}

fn statement(verb: &[u8], words: Vec<Bytes>) -> Option<Statement> {
    let pair = |words: Vec<Bytes>| <[Bytes; 2]>::try_from(words).ok();
    match verb {
        b"begin" | b"next" if words.is_empty() => None,
        b"begin" => Some(Statement::Begin(words)),
        b"next" => Some(Statement::Next(words)),
        b"end" => words.is_empty().then_some(Statement::End),
        b"read" | b"write" | b"change" | b"delete" => {
            let mut words = words.into_iter();
            let (name, part) = (words.next()?, words.next());
            if words.next().is_some() || !is_name(&name) {
                return None;
            }
            let access = match verb {
                b"read" => ResourceAccess::Read,
                b"write" => ResourceAccess::Write,
                b"change" => ResourceAccess::Change,
                _ => ResourceAccess::Delete,
            };
            let Some(part) = part else {
                return Some(Statement::Use(access, name));
            };
            let part = std::str::from_utf8(&part).ok()?.parse().ok()?;
            Some(Statement::UsePart(access, name, part))
        }
        b"derive" => {
            let [new, old] = pair(words)?;
            (is_name(&new) && is_name(&old)).then_some(Statement::Derive(new, old))
        }
        b"note" => {
            let [key, value] = pair(words)?;
            (!key.is_empty()).then_some(Statement::Note(key, value))
        }
        b"record" => {
            let [kind, payload] = pair(words)?;
            is_record_type(&kind).then_some(Statement::Record(kind, payload))
        }
        b"connect" => {
            let [name] = <[Bytes; 1]>::try_from(words).ok()?;
            (!name.is_empty()).then_some(Statement::Connect(name))
        }
        b"unrecorded" => {
            let [machine, why] = pair(words)?;
            Some(Statement::Unrecorded(machine, why))
        }
        _ => None,
    }
}

/// True for the name of a thing of a program's own: a URI with a scheme that is not reserved.
pub fn is_name(name: &[u8]) -> bool {
    let Some(end) = name.iter().position(|&byte| byte == b':') else {
        return false;
    };
    let (scheme, rest) = (&name[..end], &name[end + 1..]);
    let begins = scheme.first().is_some_and(u8::is_ascii_lowercase);
    let goes_on = |byte: &u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || [b'+', b'-', b'.'].contains(byte)
    };
    let is_free = RESERVED.iter().all(|one| one.as_bytes() != scheme);
    begins && scheme.iter().all(goes_on) && is_free && !rest.is_empty()
}

/// True for the type of a program's own record: words with dots between them, perhaps with `@` and
/// a version. The first word is not reserved. The records of backstory itself have no dot, or a
/// reserved word.
pub fn is_record_type(kind: &[u8]) -> bool {
    record_type(kind).is_some()
}

/// True for the kind of the fact about a transaction that the watch of a database recorded: a
/// reserved word. Facts about rows have `.row` behind it.
pub fn is_transaction_fact(kind: &[u8]) -> bool {
    RESERVED.iter().any(|one| one.as_bytes() == kind)
}

/// The type of a program's own record without its version, and the version.
pub fn record_type(kind: &[u8]) -> Option<(&[u8], Option<u32>)> {
    let (name, version) = match kind.iter().position(|&byte| byte == b'@') {
        Some(at) => (&kind[..at], Some(version(&kind[at + 1..])?)),
        None => (kind, None),
    };
    is_dotted(name).then_some((name, version))
}

/// A version: digits, of which the first is not 0.
fn version(digits: &[u8]) -> Option<u32> {
    let is_number = digits.iter().all(u8::is_ascii_digit) && digits.first() != Some(&b'0');
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    text.parse().ok()
}

fn is_dotted(kind: &[u8]) -> bool {
    let mut words = kind.split(|&byte| byte == b'.');
    let is_free = |word: &[u8]| RESERVED.iter().all(|one| one.as_bytes() != word);
    let is_word = |word: &[u8]| {
        let fits = |byte: &u8| byte.is_ascii_alphanumeric() || [b'-', b'_'].contains(byte);
        !word.is_empty() && word.iter().all(fits)
    };
    words
        .next()
        .is_some_and(|first| is_word(first) && is_free(first))
        && words.clone().next().is_some()
        && words.all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str) -> Option<Statement> {
        let mark = mark(&[PREFIX, path.as_bytes()].concat())?;
        Some(mark.statement)
    }

    #[test]
    fn a_mark_has_the_words_of_the_activity() {
        let words = |words: &[&[u8]]| words.iter().map(|&word| word.into()).collect();
        assert_eq!(
            said("begin/In [3]/a%2fb%0a100%/"),
            Some(Statement::Begin(words(&[b"In [3]", b"a/b\n100%", b""])))
        );
        assert_eq!(said("end"), Some(Statement::End));
        for other in [
            "begin",
            "end/x",
            "",
            "begins/x",
            "in/a",
            "for/x/end",
            "in/a/in/b/in/c/end",
        ] {
            assert_eq!(said(other), None, "{other}");
        }
        assert_eq!(mark(b"/dev/null"), None);
    }

    #[test]
    fn a_second_word_is_a_part_whose_value_fits_its_kind() {
        let name: Bytes = b"bank:accounts".as_slice().into();
        let part: Part = "row=42".parse().unwrap();
        let used = Statement::UsePart(ResourceAccess::Write, name, part);
        assert_eq!(said("write/bank:accounts/row=42"), Some(used));
        for other in [
            "write/bank:accounts/",
            "write/bank:accounts/bytes=9-3",
            "write/bank:accounts/row=42/row=43",
            "write/tcp:1/row=42",
        ] {
            assert_eq!(said(other), None, "{other}");
        }
    }

    #[test]
    fn a_thing_has_a_uri_that_no_source_of_backstory_gives() {
        let used = said("change/sqlite:%2f%2f%2fbank.db%2faccounts?id=42");
        let name: Bytes = b"sqlite:///bank.db/accounts?id=42".as_slice().into();
        assert_eq!(used, Some(Statement::Use(ResourceAccess::Change, name)));
        for claimed in [
            "write/postgres:%2f%2flocalhost%2fbank",
            "write/tcp:127.0.0.1:80",
            "write/%2fetc%2fpasswd",
            "write/file:%2f%2f%2fetc%2fpasswd",
            "write/Model:3",
            "write/:x",
            "write/model:",
            "derive/model:3/file:x",
            "record/nested/nested",
            "record/postgres.row/x",
            "record/a./x",
            "note//x",
        ] {
            assert_eq!(said(claimed), None, "{claimed}");
        }
        assert!(said("record/org.example.epoch/%7b%7d").is_some());
    }

    #[test]
    fn the_type_of_a_record_may_have_a_version() {
        let name: &[u8] = b"org.example.epoch";
        assert_eq!(record_type(name), Some((name, None)));
        assert_eq!(record_type(b"org.example.epoch@12"), Some((name, Some(12))));
        for wrong in ["@", "@0", "@01", "@-1", "@x", "@1@2", "@99999999999"] {
            let kind = format!("org.example.epoch{wrong}");
            assert_eq!(record_type(kind.as_bytes()), None, "{kind}");
        }
    }

    #[test]
    fn a_judgement_is_about_the_record_before_it() {
        let judgement = Judgement {
            schema: b"org.example.epoch@2".as_slice().into(),
            state: SchemaState::Violates,
            why: b"loss\0is missing".as_slice().into(),
        };
        let mut notes = Notes::default();
        notes.add(JUDGEMENT, &judgement.encode());
        notes.add(b"org.example.epoch@2", b"{}");
        notes.add(JUDGEMENT, &judgement.encode());
        notes.add(b"org.example.other", b"");
        let judged: Vec<_> = notes.records.into_iter().map(|one| one.judgement).collect();
        assert_eq!(judged, [Some(judgement), None]);
    }

    #[test]
    fn a_mark_names_the_parent_and_the_activity_that_it_is_about() {
        let path = [PREFIX, b"for/17/in/a%2f1/in/b/begin/GET"].concat();
        let mark = mark(&path).unwrap();
        assert_eq!(mark.parent, Some(17));
        assert_eq!(mark.handle.as_deref(), Some(&b"b"[..]));
        assert_eq!(mark.around.as_deref(), Some(&b"a/1"[..]));
    }
}
