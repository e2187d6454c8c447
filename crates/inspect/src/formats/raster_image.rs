//! Images (PNG, JPEG, GIF, BMP, TIFF, WebP): size, EXIF facts, and how different two pictures look.
//!
//! The perceptual difference compares the brightness of neighbours in a picture of 9×8 pixels: the
//! difference hash. Few bits of 64 differ if only the quality of the stored picture does. Of a file
//! with several pictures, each is compared with the picture in its place.

use std::io::Cursor;

use backstory_comparison::{ContentDifference, FormatDifference, ImageDifference};
use backstory_vocabulary::counted;
use exif::{In, Tag};
use image::{DynamicImage, imageops::FilterType};
use serde_json::{Value, json};

use super::decoded_picture::Picture;
use super::pictures;
use crate::changes::{self, FileChanges};
use crate::{FileFacts, Inspector, NamedContent, Read, pixels};

pub struct RasterImage;

/// The most pictures that sentences name.
const NAMED: usize = 3;

/// Pictures with more differing bits look different, and those with fewer are variations: the limit
/// of the hash's inventor, N. Krawetz, in "Kind of Like That" (The Hacker Factor Blog, 2013).
const VARIATION: u32 = 10;

/// Fields of TIFF files that say where its parts are, and nothing about the picture.
const PLACES: [Tag; 7] = [
    Tag::StripOffsets,
    Tag::RowsPerStrip,
    Tag::StripByteCounts,
    Tag::TileOffsets,
    Tag::TileByteCounts,
    Tag::JPEGInterchangeFormat,
    Tag::JPEGInterchangeFormatLength,
];

impl Inspector for RasterImage {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let mut facts = FileFacts::default();
        let format = pictures::format_of(content.bytes)?;
        facts.value("format", format!("{format:?}").to_uppercase());
        let (width, height) = pictures::size(content.bytes)?;
        facts.value("size", format!("{width}×{height}"));
        if let Some((_, words, number)) = pictures::number(content.bytes)? {
            facts.value(words, number);
        }
        facts.parts(("EXIF field", "EXIF fields"), exif_fields(content.bytes));
        Ok(facts)
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        let mut changes = changes::between(&self.facts(old)?, &self.facts(new)?);
        if old.bytes == new.bytes {
            return Ok(changes);
        }
        let several = [old, new]
            .into_iter()
            .find_map(|content| several(content.bytes).transpose());
        let pairs = match pairs(old.bytes, new.bytes)? {
            Ok(pairs) => pairs,
            Err(why) => {
                changes.say(format!("the pixels are not compared: {why}"));
                return Ok(changes);
            }
        };
        match several.transpose()? {
            Some(words) => say_pairs(words, &pairs, &mut changes),
            None => pairs
                .iter()
                .for_each(|pair| changes.say(summary(pair.difference))),
        }
        let bits: Option<Vec<u32>> = pairs.iter().map(|pair| pair.hash_bits).collect();
        // Values that are no colours have no looks.
        let Some(bits) = bits.and_then(|bits| bits.into_iter().max()) else {
            return Ok(changes);
        };
        changes.say(looks(bits));
        changes.detail("difference_hash_bits", &json!(bits));
        Ok(changes)
    }

    fn difference(
        &self,
        old: NamedContent<'_>,
        new: NamedContent<'_>,
    ) -> Read<Option<FormatDifference>> {
        // One picture of several says nothing about the others.
        if several(old.bytes)?.is_some() || several(new.bytes)?.is_some() {
            return Ok(None);
        }
        // Without pixels, the bytes are compared.
        let pairs = pairs(old.bytes, new.bytes)?.unwrap_or_default();
        let first = pairs.first();
        Ok(first.map(|pair| FormatDifference::Image(pair.difference)))
    }

    fn size(&self, content: NamedContent<'_>) -> Read<(u32, u32)> {
        pictures::size(content.bytes)
    }
}

/// The words for the pictures of a file that has several.
fn several(bytes: &[u8]) -> Read<Option<(&'static str, &'static str)>> {
    let number = pictures::number(bytes)?.filter(|(.., number)| *number > 1);
    Ok(number.map(|(one, many, _)| (one, many)))
}

/// The EXIF fields. A picture without EXIF, or with a damaged one, has no such fields.
fn exif_fields(bytes: &[u8]) -> Vec<(String, Value)> {
    let mut reader = exif::Reader::new();
    // The library reads the fields of eight pages, and calls the others an error.
    reader.continue_on_error(true);
    let read = reader.read_from_container(&mut Cursor::new(bytes));
    let Ok(exif) = read.or_else(|error| error.distill_partial_result(|_| ())) else {
        return Vec::new();
    };
    let fields = exif.fields().filter(|field| field.ifd_num == In::PRIMARY);
    let fields = fields.filter(|field| !PLACES.contains(&field.tag));
    let told = fields.map(|field| {
        let value = field.display_value().with_unit(&exif).to_string();
        (field.tag.to_string(), json!(value.trim_matches('"')))
    });
    told.collect()
}

/// The difference between two pictures in the same place of two files.
struct PicturePair {
    difference: ImageDifference,
    /// The differing bits of the difference hash. `None` if a picture has no colours.
    hash_bits: Option<u32>,
}

impl PicturePair {
    fn differs(&self) -> bool {
        self.difference.differing != Some(0)
    }
}

/// Compares the pictures of two files, as far as both have one. Or says why some pixels cannot be
/// compared.
fn pairs(old: &[u8], new: &[u8]) -> Read<Result<Vec<PicturePair>, String>> {
    let mut pairs = Vec::new();
    for (before, after) in pictures::pictures(old)?.zip(pictures::pictures(new)?) {
        match pair(&before?, &after?) {
            Ok(pair) => pairs.push(pair),
            Err(why) => return Ok(Err(why)),
        }
    }
    Ok(Ok(pairs))
}

fn pair(before: &Picture, after: &Picture) -> Result<PicturePair, String> {
    match (before, after) {
        (Picture::Coloured(before), Picture::Coloured(after)) => Ok(PicturePair {
            difference: pixels::compare(before, after),
            hash_bits: Some((hash(before) ^ hash(after)).count_ones()),
        }),
        (Picture::Values(before), Picture::Values(after)) if before.width == after.width => {
            let (a, b) = ((before.size, &*before.bytes), (after.size, &*after.bytes));
            Ok(PicturePair {
                difference: pixels::compare_values(a, b, before.width),
                hash_bits: None,
            })
        }
        (Picture::Undecoded(why), _) | (_, Picture::Undecoded(why)) => Err(why.clone()),
        _ => Err("they have another type".to_owned()),
    }
}

/// How alike pictures look whose hashes differ by so many bits.
fn looks(bits: u32) -> String {
    let looks = match bits {
        0 => "the same",
        1..=VARIATION => "alike",
        _ => "different",
    };
    let differ = if bits == 1 { "differs" } else { "differ" };
    format!("the pictures look {looks} ({bits} of 64 bits of the difference hash {differ})")
}

fn summary(difference: ImageDifference) -> String {
    let difference = ContentDifference::Image(difference);
    difference.summary(&|name| String::from_utf8_lossy(name).into_owned())
}

fn say_pairs((word, words): (&str, &str), pairs: &[PicturePair], changes: &mut FileChanges) {
    let places = (1..).zip(pairs).filter(|(_, pair)| pair.differs());
    let differing: Vec<(usize, &PicturePair)> = places.collect();
    let all = counted(pairs.len(), word, words);
    changes.say(match differing.len() {
        0 => format!("the same pixels in {all}; only other parts of the file differ"),
        number => format!("{number} of {all} changed"),
    });
    for (place, pair) in differing.iter().take(NAMED) {
        changes.say(format!("{word} {place}: {}", summary(pair.difference)));
    }
    let places: Vec<usize> = differing.iter().map(|(place, _)| *place).collect();
    changes.detail(&format!("changed_{words}"), &json!(places));
}

/// The difference hash of a picture: for each of 8 rows, whether each of 8 pixels is brighter than
/// its left neighbour.
fn hash(picture: &DynamicImage) -> u64 {
    let small = picture.resize_exact(9, 8, FilterType::Triangle).to_luma8();
    let mut bits = 0;
    for y in 0..8 {
        for x in 0..8 {
            let is_brighter = small.get_pixel(x + 1, y).0[0] > small.get_pixel(x, y).0[0];
            bits = bits << 1 | u64::from(is_brighter);
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_with_few_differing_bits_look_alike() {
        let bits = "bits of the difference hash";
        for (number, words, differ) in [
            (0, "the same", "differ"),
            (1, "alike", "differs"),
            (10, "alike", "differ"),
            (11, "different", "differ"),
        ] {
            let told = format!("the pictures look {words} ({number} of 64 {bits} {differ})");
            assert_eq!(looks(number), told);
        }
    }
}
