//! Reads the nodes of a JSON-LD document as they come.

use super::nodes::CrateReader;
use crate::json::Elements;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// The document of a crate.
pub(super) struct CrateDocument<'r>(pub(super) &'r mut CrateReader);

impl<'de> DeserializeSeed<'de> for CrateDocument<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for CrateDocument<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with \"@graph\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(member) = members.next_key::<String>()? {
            if member == "@graph" {
                members.next_value_seed(Elements(|node| self.0.node(&node)))?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}
