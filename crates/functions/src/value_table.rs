//! Signatures of functions in the form with which recorders fetch values.
//!
//! The values of a function lie one after the other, and so do the members of a structure.

use std::collections::BTreeMap;

use backstory_abi as abi;
use backstory_abi::{Place, Signature, Value};

use crate::shapes::{Member, PointerTarget, Shape};
use crate::signatures::FunctionSignature;

/// The name of a result, which no parameter has.
const RESULT: &str = "return";
/// The most bytes of a parameter's name.
const NAME: usize = 64;

/// The four parts of the table.
#[derive(Debug, Default)]
pub(crate) struct ValueTable {
    pub signatures: Vec<Signature>,
    values: Vec<Value>,
    places: Vec<Place>,
    names: Vec<u8>,
    known: BTreeMap<String, u32>,
}

impl ValueTable {
    /// The table of functions, by their numbers.
    pub(crate) fn of<'a>(
        functions: impl Iterator<Item = (u32, &'a FunctionSignature)>,
    ) -> ValueTable {
        let mut table = ValueTable::default();
        for (number, signature) in functions {
            table.add(number, signature);
        }
        table.signatures.sort_by_key(|one| one.number);
        table
    }

    /// The bytes of the parts after `start`, and where they begin: signatures, values, places,
    /// names.
    pub(crate) fn bytes(&self, start: usize) -> ([u64; 4], Vec<u8>) {
        let mut bytes: Vec<u8> = Vec::new();
        let mut at = [0; 4];
        at[0] = start as u64;
        bytes.extend(self.signatures.iter().flat_map(Signature::to_bytes));
        at[1] = (start + bytes.len()) as u64;
        bytes.extend(self.values.iter().flat_map(Value::to_bytes));
        at[2] = (start + bytes.len()) as u64;
        bytes.extend(self.places.iter().flat_map(Place::to_bytes));
        at[3] = (start + bytes.len()) as u64;
        bytes.extend_from_slice(&self.names);
        (at, bytes)
    }

    fn add(&mut self, number: u32, signature: &FunctionSignature) {
        let (parameters, result) = (&signature.parameters, &signature.result);
        let result = result.as_ref().filter(|shape| shape.bytes() > 0);
        if parameters.is_empty() && result.is_none() {
            return;
        }
        let all = parameters.len() + usize::from(result.is_some());
        let first = self.room(all);
        self.signatures.push(Signature {
            number,
            count: parameters.len() as u16,
            result: result.is_some().into(),
            first: first as u32,
        });
        for (at, parameter) in parameters.iter().enumerate() {
            self.fill(first + at, &parameter.name, &parameter.shape);
            let value = &mut self.values[first + at];
            value.offset = parameter.target.map_or(0, PointerTarget::signed_bytes);
            value.place = self.places.len() as u32;
            value.places = parameter.places.len() as u8;
            self.places.extend(&parameter.places);
        }
        if let Some(shape) = result {
            self.fill(first + all - 1, RESULT, shape);
            let value = &mut self.values[first + all - 1];
            value.places = matches!(shape, Shape::Float(_)).into();
            let target = signature.result_target;
            value.offset = target.map_or(0, PointerTarget::signed_bytes);
        }
    }

    /// Adds empty values. Returns the index of the first.
    fn room(&mut self, count: usize) -> usize {
        let first = self.values.len();
        self.values.resize(first + count, Value::default());
        first
    }

    fn fill(&mut self, at: usize, name: &str, shape: &Shape) {
        let name = self.name(name);
        let (kind, count) = match shape {
            Shape::Unknown => (abi::VALUE_UNKNOWN, 0),
            Shape::Signed(_) => (abi::VALUE_SIGNED, 0),
            Shape::Unsigned(_) => (abi::VALUE_UNSIGNED, 0),
            Shape::Float(_) => (abi::VALUE_FLOAT, 0),
            Shape::Text => (abi::VALUE_TEXT, 0),
            Shape::Pointer(target) => (abi::VALUE_POINTER, usize::from(target.is_some())),
            Shape::Structure(_, members) => (abi::VALUE_STRUCTURE, members.len()),
        };
        let size = match shape {
            Shape::Structure(size, _) => *size,
            other => other.bytes(),
        };
        let first = self.room(count);
        let offset = self.values[at].offset;
        self.values[at] = Value {
            kind,
            size,
            count: count as u8,
            offset,
            name,
            first: first as u32,
            ..Value::default()
        };
        match shape {
            Shape::Pointer(Some(target)) => self.fill(first, "", target),
            Shape::Structure(_, members) => {
                for (
                    index,
                    Member {
                        name,
                        offset,
                        shape,
                    },
                ) in members.iter().enumerate()
                {
                    self.values[first + index].offset = i32::from(*offset);
                    self.fill(first + index, name, shape);
                }
            }
            _ => {}
        }
    }

    fn name(&mut self, name: &str) -> u32 {
        let end = (0..=NAME.min(name.len())).rev();
        let name = end.map(|end| name.get(..end)).find_map(|name| name);
        let name = name.unwrap_or_default().replace('\0', "");
        if let Some(&known) = self.known.get(&name) {
            return known;
        }
        let at = self.names.len() as u32;
        self.names.extend_from_slice(name.as_bytes());
        self.names.push(0);
        self.known.insert(name, at);
        at
    }
}
