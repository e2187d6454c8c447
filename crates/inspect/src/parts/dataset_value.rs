//! A dataset of an HDF5 file, and values in it: `/runs/speed`, `/runs/speed[2][0]`. With fewer
//! items than dimensions, it is all that lies below them.
//!
//! The reader takes the values from a storage that remembers what was read. So the bytes are those
//! that hold the values, whatever the layout of the file is.
//!
//! Invariant: the bytes of a range are the values that the reader returns. Otherwise the answer
//! says that it is a whole chunk. It also says that some of the values were never written: these
//! have no bytes.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName, PartPlace};
use hdf5_reader::{BytesStorage, Dataset, Hdf5File, Storage, StorageBuffer};

use super::tensor_value::items;
use super::{absent, unreadable};
use crate::formats::hdf5_reading::{holds_addresses, options};

/// The ranges that were read since the last look.
#[derive(Clone, Default)]
struct ReadRanges(Arc<Mutex<Vec<Range<usize>>>>);

impl ReadRanges {
    fn add(&self, range: Range<usize>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(range);
    }

    fn take(&self) -> Vec<Range<usize>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut all)
    }
}

/// A content that remembers what was read of it.
struct WatchedContent {
    bytes: BytesStorage,
    read: ReadRanges,
}

impl Storage for WatchedContent {
    fn len(&self) -> u64 {
        self.bytes.len()
    }

    fn read_range(&self, offset: u64, len: usize) -> hdf5_reader::error::Result<StorageBuffer> {
        let found = self.bytes.read_range(offset, len)?;
        // The storage has found the range within the content.
        let start = offset as usize;
        self.read.add(start..start + len);
        Ok(found)
    }
}

/// The place of a dataset or of its values.
///
/// # Errors
/// A cell is meant, or the file is damaged, or has no such dataset or value, or the values have no
/// place of their own.
pub fn place(content: &[u8], name: &PartName) -> PartAnswer {
    let PartName::Member(text) = name else {
        return Err(NoPart::OtherKind);
    };
    let read = ReadRanges::default();
    let watched = WatchedContent {
        bytes: BytesStorage::new(content.to_vec()),
        read: read.clone(),
    };
    let file = Hdf5File::from_storage_with_options(Arc::new(watched), options());
    let file = file.map_err(unreadable)?;
    // A name may have brackets.
    let ends = text.match_indices('[').map(|(at, _)| at);
    let ends = [text.len()].into_iter().chain(ends.rev());
    let mut named = ends.filter_map(|end| {
        let items = items(&text[end..])?;
        Some((&text[..end], items, file.dataset(&text[..end]).ok()?))
    });
    let Some((name, items, dataset)) = named.next() else {
        return Err(absent(format!("the file has no dataset `{text}`")));
    };
    let wanted = WantedValues::of(name, &items, &dataset)?;
    match dataset.chunks() {
        Some(_) => wanted.in_chunks(content, &dataset, &read),
        None => wanted.in_one_place(content, &dataset, &read),
    }
}

/// The values that are meant.
struct WantedValues<'n> {
    name: &'n str,
    /// From 0, by dimension. Dimensions without one are meant as a whole.
    items: Vec<u64>,
    shape: Vec<u64>,
    /// Bytes of a value.
    size: u64,
}

impl<'n> WantedValues<'n> {
    fn of(name: &'n str, items: &[usize], dataset: &Dataset) -> Result<WantedValues<'n>, NoPart> {
        if holds_addresses(dataset.dtype(), 0) {
            return Err(absent(format!(
                "the values of `{name}` vary in length or are references, and are not found"
            )));
        }
        let shape = dataset.shape().to_vec();
        if items.len() > shape.len() {
            let dimensions = shape.len();
            return Err(absent(format!(
                "`{name}` has {dimensions} dimensions, and no more"
            )));
        }
        let items: Vec<u64> = items.iter().map(|&item| item as u64).collect();
        let over = items.iter().zip(&shape).find(|(item, most)| item >= most);
        if let Some((item, _)) = over {
            return Err(absent(format!(
                "`{name}` has the shape {shape:?}, and no item {item}"
            )));
        }
        let size = dataset.raw_element_size().map_err(unreadable)?;
        Ok(WantedValues {
            name,
            items,
            shape,
            size: size as u64,
        })
    }

    /// The bytes of the values among those of an array with this shape, whose first value is at
    /// these items of the dataset. `None`: they are not there.
    fn within(&self, first: &[u64], shape: &[u64], array: &[u8]) -> Option<Range<usize>> {
        let below = |from: usize| {
            shape[from..]
                .iter()
                .copied()
                .fold(self.size, u64::saturating_mul)
        };
        let mut start = 0u64;
        for (at, item) in self.items.iter().enumerate() {
            let own = item.checked_sub(first[at]).filter(|own| *own < shape[at])?;
            start = start.saturating_add(own.saturating_mul(below(at + 1)));
        }
        let end = start.saturating_add(below(self.items.len()));
        (end <= array.len() as u64).then_some(start as usize..end as usize)
    }

    fn nowhere(&self) -> NoPart {
        let name = self.name;
        absent(format!(
            "the values of `{name}` have no place of their own: they were never written, or are in the head of the dataset or in another file"
        ))
    }

    fn in_one_place(&self, content: &[u8], dataset: &Dataset, read: &ReadRanges) -> PartAnswer {
        read.take();
        let values = dataset.read_raw_bytes().map_err(unreadable)?;
        let data = read.take();
        let [data] = &data[..] else {
            return Err(self.nowhere());
        };
        let origin = vec![0; self.shape.len()];
        match self.within(&origin, &self.shape, &values) {
            Some(part) if content[data.clone()] == values => Ok(PartPlace::exact(
                data.start + part.start..data.start + part.end,
            )),
            _ => Err(self.nowhere()),
        }
    }

    fn in_chunks(&self, content: &[u8], dataset: &Dataset, read: &ReadRanges) -> PartAnswer {
        let mut place = PartPlace::default();
        let (mut is_whole, mut is_padded) = (false, false);
        let mut found = 0u64;
        let chunks = dataset.iter_chunks().map_err(unreadable)?;
        read.take();
        for chunk in chunks {
            let chunk = chunk.map_err(unreadable)?;
            let data = read.take();
            let (first, shape) = (chunk.offsets(), chunk.shape());
            if first.len() != self.shape.len() || shape.len() != self.shape.len() {
                return Err(unreadable(format!("a chunk of `{}` is damaged", self.name)));
            }
            let Some(part) = self.within(first, shape, chunk.bytes()) else {
                continue;
            };
            let [data] = &data[..] else {
                return Err(self.nowhere());
            };
            let extents = first.iter().zip(shape).zip(&self.shape);
            let mut own = 1u64;
            for ((first, length), most) in extents.skip(self.items.len()) {
                let end = first.saturating_add(*length);
                is_padded |= end > *most;
                own = own.saturating_mul(end.min(*most).saturating_sub(*first));
            }
            found = found.saturating_add(own);
            match content[data.clone()] == *chunk.bytes() {
                true => place
                    .ranges
                    .push(data.start + part.start..data.start + part.end),
                false => {
                    is_whole |= part.len() < chunk.bytes().len();
                    place.ranges.push(data.clone());
                }
            }
        }
        let chunks = match place.ranges.len() {
            0 => return Err(self.nowhere()),
            1 => "the chunk that has it",
            _ => "the chunks that have it",
        };
        place.within = match (is_whole, is_padded) {
            (true, _) => Some(format!("all of {chunks}")),
            (false, true) => Some(format!("of {chunks}, with values beyond the dataset's end")),
            (false, false) => None,
        };
        let wanted = self.shape[self.items.len()..].iter();
        if found < wanted.copied().fold(1, u64::saturating_mul) {
            let written = place
                .within
                .unwrap_or_else(|| format!("values of {chunks}"));
            place.within = Some(format!("{written}; the other values were never written"));
        }
        Ok(place)
    }
}
