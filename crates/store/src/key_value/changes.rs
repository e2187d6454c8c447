//! The changes of a transaction, until they are committed.

use std::collections::BTreeMap;

/// The new value of each changed key. `None` removes the key.
#[derive(Debug, Default)]
pub struct Changes {
    values: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl Changes {
    /// Sets the value of a key.
    pub fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.values.insert(key, Some(value));
    }

    /// Removes a key.
    pub fn delete(&mut self, key: Vec<u8>) {
        self.values.insert(key, None);
    }

    /// The new value of a key. The outer `None`: it is not changed.
    pub fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.values.get(key).map(|value| value.as_deref())
    }

    /// The changes from one key to before another.
    pub fn range<'a>(
        &'a self,
        from: &[u8],
        end: &[u8],
    ) -> impl Iterator<Item = (&'a Vec<u8>, &'a Option<Vec<u8>>)> + use<'a> {
        let (from, end) = (from.to_vec(), end.to_vec().max(from.to_vec()));
        self.values.range(from..end)
    }

    /// All changes in the order of their keys.
    pub fn into_values(self) -> impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)> {
        self.values.into_iter()
    }
}
