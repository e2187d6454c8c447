//! Python pickles: instructions and the names that they import. No instruction is executed.
//!
//! The instructions are those of Python's `pickletools`, protocols 0 to 5.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use super::pickle_opcodes::{Argument, OPCODES};
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct PickleFile;

/// The most instructions that are read.
const INSTRUCTIONS: usize = 200_000;

/// The most characters of an argument that are shown.
const SHOWN: usize = 80;

/// One instruction.
struct Instruction<'p> {
    name: &'static str,
    argument: Option<Value>,
    /// The argument if it is a string.
    text: Option<&'p [u8]>,
}

impl Inspector for PickleFile {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let mut facts = FileFacts::default();
        let mut protocol = 0;
        let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
        let mut lines = Vec::new();
        let mut names = ImportedNames::default();
        let mut bytes = content.bytes;
        loop {
            let at = content.bytes.len() - bytes.len();
            let place = |why: &str| UnreadableContent(format!("{why} at byte {at}"));
            let instruction = next(&mut bytes).map_err(place)?;
            if lines.len() == INSTRUCTIONS {
                let why = format!("it has more than {INSTRUCTIONS} instructions");
                return Err(UnreadableContent(why));
            }
            let name = instruction.name;
            *counts.entry(name).or_default() += 1;
            if name == "PROTO" {
                let argument = instruction.argument.as_ref();
                protocol = argument.and_then(Value::as_u64).unwrap_or(0);
            }
            names.follow(&instruction);
            lines.push(match &instruction.argument {
                Some(argument) => format!("{name} {argument}"),
                None => name.to_owned(),
            });
            if name == "STOP" {
                break;
            }
        }
        facts.value("protocol", protocol);
        if !bytes.is_empty() {
            facts.value("bytes_after_the_end", bytes.len());
        }
        let imported = names.imported.into_iter();
        facts.parts(
            ("imported name", "imported names"),
            imported.map(|name| (name, Value::Null)),
        );
        facts.value("opcodes", json!(counts));
        facts.text(("instruction", "instructions"), lines);
        Ok(facts)
    }
}

/// Finds the names that a pickle imports: `GLOBAL` and `INST` name them, `STACK_GLOBAL` takes them
/// from the two strings before it.
#[derive(Default)]
struct ImportedNames {
    imported: BTreeSet<String>,
    /// The last two objects on the stack, if they are strings.
    last: [Option<String>; 2],
    memo: HashMap<u64, Option<String>>,
}

impl ImportedNames {
    fn follow(&mut self, instruction: &Instruction<'_>) {
        let number = instruction.argument.as_ref().and_then(Value::as_u64);
        let text = || {
            instruction
                .text
                .map(|text| String::from_utf8_lossy(text).into_owned())
        };
        match instruction.name {
            "GLOBAL" | "INST" => {
                let name = text().unwrap_or_default().replacen('\n', ".", 1);
                self.imported.insert(name);
                self.push(None);
            }
            "STACK_GLOBAL" => {
                let [module, name] = std::mem::take(&mut self.last);
                let word = |part: Option<String>| part.unwrap_or_else(|| "?".to_owned());
                self.imported
                    .insert(format!("{}.{}", word(module), word(name)));
                self.push(None);
            }
            "MEMOIZE" => {
                let at = self.memo.len() as u64;
                self.memo.insert(at, self.last[1].clone());
            }
            "PUT" | "BINPUT" | "LONG_BINPUT" => {
                if let Some(at) = number {
                    self.memo.insert(at, self.last[1].clone());
                }
            }
            "GET" | "BINGET" | "LONG_BINGET" => {
                let known = number.and_then(|at| self.memo.get(&at).cloned());
                self.push(known.flatten());
            }
            "PROTO" | "FRAME" => {}
            _ => self.push(text()),
        }
    }

    fn push(&mut self, object: Option<String>) {
        self.last.swap(0, 1);
        self.last[1] = object;
    }
}

/// Takes the next instruction.
fn next<'p>(bytes: &mut &'p [u8]) -> Result<Instruction<'p>, &'static str> {
    const CUT: &str = "the pickle ends within an instruction";
    let (&code, _) = bytes.split_first().ok_or(CUT)?;
    let row = OPCODES.iter().find(|row| row.0 == code);
    let &(_, name, kind) = row.ok_or("there is no such instruction")?;
    *bytes = &bytes[1..];
    let mut take = |count: u64| -> Result<&'p [u8], &'static str> {
        let count = usize::try_from(count).map_err(|_| CUT)?;
        let (taken, rest) = bytes.split_at_checked(count).ok_or(CUT)?;
        *bytes = rest;
        Ok(taken)
    };
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0u64, |sum, &byte| sum << 8 | u64::from(byte))
    };
    let mut instruction = Instruction {
        name,
        argument: None,
        text: None,
    };
    match kind {
        Argument::None => {}
        Argument::Number(width) => instruction.argument = Some(json!(number(take(width)?))),
        Argument::Signed => {
            let value = number(take(4)?) as u32 as i32;
            instruction.argument = Some(json!(value));
        }
        Argument::Float => {
            let bits = take(8)?
                .iter()
                .fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
            instruction.argument = Some(json!(f64::from_bits(bits).to_string()));
        }
        Argument::Counted(width) => {
            let length = number(take(width)?);
            let text = take(length)?;
            instruction.argument = Some(shown(text));
            instruction.text = Some(text);
        }
        Argument::Integer(width) => {
            let length = number(take(width)?);
            instruction.argument = Some(json!(format!("{} bytes", take(length)?.len())));
        }
        Argument::Lines(count) => {
            let mut end = 0;
            for _ in 0..count {
                let found = bytes[end..].iter().position(|&byte| byte == b'\n');
                end += found.ok_or(CUT)? + 1;
            }
            let text = &bytes[..end - 1];
            *bytes = &bytes[end..];
            let is_number = std::str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse::<u64>().ok());
            instruction.argument =
                Some(is_number.map_or_else(|| shown(text), |number| json!(number)));
            instruction.text = Some(text);
        }
    }
    Ok(instruction)
}

fn shown(text: &[u8]) -> Value {
    match std::str::from_utf8(text) {
        Ok(text) => json!(text.chars().take(SHOWN).collect::<String>()),
        Err(_) => json!(format!("{} bytes", text.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(bytes: &[u8]) -> Read<FileFacts> {
        PickleFile.facts(NamedContent {
            name: "x.pkl",
            bytes,
            key: &[],
        })
    }

    #[test]
    fn a_name_that_a_pickle_imports_is_found_and_nothing_is_executed() {
        let bytes =
            b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R\x94.";
        let facts = facts(bytes).unwrap().json();
        assert_eq!(facts["imported_names"][0]["name"], "os.system");
        assert_eq!(facts["protocol"], 4);
    }

    #[test]
    fn a_pickle_cut_anywhere_is_an_error_that_names_the_place() {
        let whole = b"\x80\x02c__builtin__\nset\nq\x00]q\x01(K\x01K\x02e\x85q\x02Rq\x03.";
        assert!(facts(whole).is_ok());
        for cut in 0..whole.len() {
            let error = facts(&whole[..cut]).unwrap_err();
            assert!(error.0.contains("at byte"), "{cut}: {error}");
        }
    }
}
