//! Reads the sections of a document as they come: prefixes, statements by kind, bundles.

use super::nodes::ProvReader;
use crate::json::Object;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;

/// A document, or a bundle in one.
pub(super) struct ProvDocument<'r>(pub(super) &'r mut ProvReader);

impl<'de> DeserializeSeed<'de> for ProvDocument<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ProvDocument<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with \"entity\", \"activity\" and relations")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut sections: A) -> Result<(), A::Error> {
        while let Some(section) = sections.next_key::<String>()? {
            match section.as_str() {
                "prefix" => {
                    let prefixes = sections.next_value::<HashMap<String, String>>()?;
                    self.0.prefixes(prefixes);
                }
                "bundle" => sections.next_value_seed(Bundles(&mut *self.0))?,
                _ => sections.next_value_seed(Statements {
                    reader: &mut *self.0,
                    kind: &section,
                })?,
            }
        }
        Ok(())
    }
}

/// The bundles of a document, by their names.
struct Bundles<'r>(&'r mut ProvReader);

impl<'de> DeserializeSeed<'de> for Bundles<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Bundles<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of bundles")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut bundles: A) -> Result<(), A::Error> {
        while bundles.next_key::<String>()?.is_some() {
            bundles.next_value_seed(ProvDocument(&mut *self.0))?;
        }
        Ok(())
    }
}

/// The statements of one kind, by their names.
struct Statements<'r> {
    reader: &'r mut ProvReader,
    kind: &'r str,
}

impl<'de> DeserializeSeed<'de> for Statements<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Statements<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of statements of the kind {:?}", self.kind)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
        while let Some(id) = all.next_key::<String>()? {
            let one = |value| match value {
                Value::Object(members) => Ok(members),
                _ => Err(A::Error::custom(format!(
                    "the statement {id:?} of the kind {:?} is no object",
                    self.kind
                ))),
            };
            let members: Vec<Object> = match all.next_value::<Value>()? {
                // Several statements may have one name.
                Value::Array(many) => many.into_iter().map(one).collect::<Result<_, _>>()?,
                value => vec![one(value)?],
            };
            for members in members {
                self.reader.statement(self.kind, &id, &members);
                if self.reader.is_full() {
                    return Err(A::Error::custom("there are too many statements"));
                }
            }
        }
        Ok(())
    }
}
