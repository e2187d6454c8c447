//! Images (PNG, JPEG, GIF, BMP): size, EXIF facts, and how different two pictures look.
//!
//! The perceptual difference compares the brightness of neighbours in a picture of 9×8 pixels: the
//! difference hash. No bit of 64 differs if only the quality of the stored picture does.

use std::io::Cursor;

use backstory_comparison::{ContentDifference, FormatDifference};
use exif::In;
use image::{DynamicImage, ImageReader, Limits, imageops::FilterType};
use serde_json::json;

use crate::changes::{self, FileChanges};
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent, pixels};

pub struct RasterImage;

/// The most memory of a decoded picture.
const LARGEST: u64 = 96 << 20;

impl Inspector for RasterImage {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let mut facts = FileFacts::default();
        let reader = reader(content.bytes)?;
        let format = reader
            .format()
            .map(|format| format!("{format:?}").to_uppercase());
        facts.value("format", format.unwrap_or_default());
        let (width, height) = reader.into_dimensions().map_err(UnreadableContent::of)?;
        facts.value("size", format!("{width}×{height}"));
        // A picture without EXIF, or with a damaged one, has no such facts.
        if let Ok(exif) = exif::Reader::new().read_from_container(&mut Cursor::new(content.bytes)) {
            let fields = exif.fields().filter(|field| field.ifd_num == In::PRIMARY);
            let told = fields.map(|field| {
                let value = field.display_value().with_unit(&exif).to_string();
                (field.tag.to_string(), json!(value.trim_matches('"')))
            });
            facts.parts(("EXIF field", "EXIF fields"), told.collect::<Vec<_>>());
        }
        Ok(facts)
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        let mut changes = changes::between(&self.facts(old)?, &self.facts(new)?);
        if old.bytes == new.bytes {
            return Ok(changes);
        }
        let (before, after) = (decoded(old.bytes)?, decoded(new.bytes)?);
        let difference = ContentDifference::Image(pixels::compare(&before, &after));
        changes.say(difference.summary(&|name| String::from_utf8_lossy(name).into_owned()));
        let bits = (hash(&before) ^ hash(&after)).count_ones();
        changes.say(match bits {
            0 => "the pictures look the same (0 of 64 bits of the difference hash)".to_owned(),
            _ => format!("the pictures look different: {bits} of 64 bits of the difference hash"),
        });
        changes.detail("difference_hash_bits", &json!(bits));
        Ok(changes)
    }

    fn difference(
        &self,
        old: NamedContent<'_>,
        new: NamedContent<'_>,
    ) -> Read<Option<FormatDifference>> {
        let (old, new) = (decoded(old.bytes)?, decoded(new.bytes)?);
        Ok(Some(FormatDifference::Image(pixels::compare(&old, &new))))
    }

    fn size(&self, content: NamedContent<'_>) -> Read<(u32, u32)> {
        let reader = reader(content.bytes)?;
        reader.into_dimensions().map_err(UnreadableContent::of)
    }
}

fn reader(bytes: &[u8]) -> Read<ImageReader<Cursor<&[u8]>>> {
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(UnreadableContent::of)?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(LARGEST);
    reader.limits(limits);
    Ok(reader)
}

fn decoded(bytes: &[u8]) -> Read<DynamicImage> {
    reader(bytes)?.decode().map_err(UnreadableContent::of)
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
