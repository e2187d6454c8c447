//! The values of named arrays, as HDF5 and NetCDF files have them: statistics of one content, and
//! the elements that differ between two.

use serde_json::{Map, Value, json};

use crate::changes::{self, FileChanges};
use crate::{FileFacts, NamedContent, Read};

/// The words for one array, and for many.
pub type Words = (&'static str, &'static str);

/// The most bytes of an array whose values are read.
pub const LARGEST: u64 = 32 << 20;

/// The most arrays whose differing elements are counted.
const COMPARED: usize = 20;

/// A file of named arrays.
pub trait ArrayFile {
    /// The words for its arrays.
    const WORDS: Words;

    /// Reads the head of a file.
    ///
    /// # Errors
    /// The content is not of this format, or damaged.
    fn open(content: NamedContent<'_>) -> Read<Self>
    where
        Self: Sized;

    /// The facts.
    ///
    /// # Errors
    /// The content is damaged.
    fn facts(&self) -> Read<FileFacts>;

    /// The numbers of an array, in the order of the file. `None` if it has none, or too many.
    fn numbers(&self, name: &str) -> Option<NumberArray>;
}

/// Changed facts, and how many elements of each changed array differ.
///
/// # Errors
/// One of the contents is not of this format, or damaged.
pub fn changes<F: ArrayFile>(old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
    let (old, new) = (F::open(old)?, F::open(new)?);
    let (before, after) = (old.facts()?, new.facts()?);
    let mut found = changes::between(&before, &after);
    let list = |facts: &FileFacts| {
        let mut lists = facts.lists.iter();
        lists
            .find(|list| list.words == F::WORDS)
            .map_or(Vec::new(), |list| list.parts.clone())
    };
    let before = list(&before);
    let mut differing = Vec::new();
    for part in list(&after) {
        let mut others = before.iter();
        let Some(other) = others.find(|other| other.name == part.name) else {
            continue;
        };
        let is_comparable = part.value["shape"] == other.value["shape"]
            && part.value["values"] != other.value["values"];
        if !is_comparable || differing.len() == COMPARED {
            continue;
        }
        let numbers = old.numbers(&part.name).zip(new.numbers(&part.name));
        if let Some(one) = numbers.and_then(|(old, new)| difference(&old, &new)) {
            found.say(format!("`{}`: {}", part.name, one.sentence));
            differing.push(json!({"name": part.name, "elements": one.count, "by": one.most}));
        }
    }
    if !differing.is_empty() {
        found.detail("elements", &Value::Array(differing));
    }
    Ok(found)
}

/// Elements that differ between two arrays of the same shape.
struct ElementDifference {
    count: usize,
    /// The greatest absolute difference. `None` if an element is not finite.
    most: Option<f64>,
    sentence: String,
}

fn difference(old: &NumberArray, new: &NumberArray) -> Option<ElementDifference> {
    if old.len() != new.len() {
        return None;
    }
    let pairs = old.iter().zip(new.iter());
    let differing = pairs.filter(|(a, b)| a.to_bits() != b.to_bits());
    let (mut count, mut most) = (0, 0.0f64);
    for (a, b) in differing {
        count += 1;
        most = match (a - b).abs() {
            by if by.is_finite() => most.max(by),
            _ => f64::INFINITY,
        };
    }
    let most = most.is_finite().then_some(most);
    let by = most.map_or(String::new(), |most| format!(", by at most {most}"));
    let sentence = format!("{count} of {} elements changed{by}", new.len());
    (count > 0).then_some(ElementDifference {
        count,
        most,
        sentence,
    })
}

/// The values of an array.
pub enum ArrayValues {
    /// Numbers.
    Numbers(NumberArray),
    /// Bytes that are the same for the same values.
    Other(Vec<u8>),
}

impl ArrayValues {
    /// Texts. Each gets a length, so that no two lists of texts are the same bytes.
    pub fn texts(texts: &[String]) -> ArrayValues {
        let each = texts.iter();
        let bytes = each.flat_map(|text| [&text.len().to_le_bytes()[..], text.as_bytes()].concat());
        ArrayValues::Other(bytes.collect())
    }

    /// The numbers. `None` without numbers.
    pub fn numbers(self) -> Option<NumberArray> {
        match self {
            ArrayValues::Numbers(numbers) => Some(numbers),
            ArrayValues::Other(_) => None,
        }
    }
}

/// Adds the digest of an array's values, and the least and the greatest of its numbers.
pub fn describe(values: &ArrayValues, told: &mut Map<String, Value>) {
    let (bytes, numbers) = match values {
        ArrayValues::Numbers(numbers) => (&numbers.bytes, Some(numbers)),
        ArrayValues::Other(bytes) => (bytes, None),
    };
    let digest = blake3::hash(bytes);
    told.insert("values".to_owned(), json!(digest.to_hex().as_str()));
    let numbers = numbers.into_iter().flat_map(NumberArray::iter);
    let pairs = numbers.filter(|one| !one.is_nan()).map(|one| (one, one));
    if let Some((least, most)) = pairs.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) {
        told.insert("min".to_owned(), json!(least));
        told.insert("max".to_owned(), json!(most));
    }
}

/// How numbers are stored in the byte order of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberForm {
    /// With a sign, of so many bytes.
    Signed(usize),
    /// Without a sign, of so many bytes.
    Unsigned(usize),
    /// Floating-point (IEEE 754), of so many bytes.
    Float(usize),
}

impl NumberForm {
    /// The bytes of a number. `None` for a form that no machine calculates with.
    fn size(self) -> Option<usize> {
        match self {
            NumberForm::Signed(size @ (1 | 2 | 4 | 8))
            | NumberForm::Unsigned(size @ (1 | 2 | 4 | 8))
            | NumberForm::Float(size @ (4 | 8)) => Some(size),
            _ => None,
        }
    }

    /// The number in these bytes, of which there are [`NumberForm::size`].
    fn number(self, bytes: &[u8]) -> f64 {
        /// `as` loses digits of whole numbers over 2^53: they are shown as floating-point numbers.
        macro_rules! read {
            ($type:ty) => {
                bytes
                    .first_chunk()
                    .map_or(f64::NAN, |one| <$type>::from_ne_bytes(*one) as f64)
            };
        }
        match self {
            NumberForm::Signed(1) => read!(i8),
            NumberForm::Signed(2) => read!(i16),
            NumberForm::Signed(4) => read!(i32),
            NumberForm::Signed(_) => read!(i64),
            NumberForm::Unsigned(1) => read!(u8),
            NumberForm::Unsigned(2) => read!(u16),
            NumberForm::Unsigned(4) => read!(u32),
            NumberForm::Unsigned(_) => read!(u64),
            NumberForm::Float(4) => read!(f32),
            NumberForm::Float(_) => read!(f64),
        }
    }
}

/// Numbers as they are stored. They are converted one by one, as many are small.
pub struct NumberArray {
    form: NumberForm,
    size: usize,
    bytes: Vec<u8>,
}

impl NumberArray {
    /// The numbers in the bytes. `Err` returns the bytes if they are no numbers of this form.
    pub fn new(form: Option<NumberForm>, bytes: Vec<u8>) -> Result<NumberArray, Vec<u8>> {
        match form.and_then(|form| Some((form, form.size()?))) {
            Some((form, size)) if bytes.len().is_multiple_of(size) => {
                Ok(NumberArray { form, size, bytes })
            }
            _ => Err(bytes),
        }
    }

    /// How many there are.
    fn len(&self) -> usize {
        self.bytes.len() / self.size
    }

    /// The numbers, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = f64> {
        let each = self.bytes.chunks_exact(self.size);
        each.map(|bytes| self.form.number(bytes))
    }
}

/// Numbers as a value: one of them, or a list. A number that is not finite is its name.
pub fn value(numbers: &[f64], is_scalar: bool) -> Value {
    /// The largest whole number below which each one is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let one = |number: &f64| match *number {
        number if number.fract() == 0.0 && number.abs() < EXACT => json!(number as i64),
        number if number.is_finite() => json!(number),
        number => json!(number.to_string()),
    };
    match numbers {
        [number] if is_scalar => one(number),
        numbers => numbers.iter().take(100).map(one).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(form: NumberForm, bytes: Vec<u8>) -> NumberArray {
        NumberArray::new(Some(form), bytes).ok().unwrap()
    }

    #[test]
    fn differing_elements_are_counted_with_their_greatest_difference() {
        let of = |numbers: &[f64]| {
            let bytes = numbers.iter().flat_map(|one| one.to_ne_bytes());
            array(NumberForm::Float(8), bytes.collect())
        };
        let said =
            |old: &[f64], new: &[f64]| difference(&of(old), &of(new)).map(|one| one.sentence);
        let told = said(&[1.0, 2.0, 3.0], &[1.0, 2.5, 2.0]);
        assert_eq!(told.unwrap(), "2 of 3 elements changed, by at most 1");
        assert_eq!(said(&[1.0, f64::NAN], &[1.0, f64::NAN]), None);
        let told = said(&[1.0, 2.0, 5.0], &[f64::NAN, 2.5, 5.0]);
        assert_eq!(told.unwrap(), "2 of 3 elements changed");
        assert_eq!(said(&[1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn numbers_of_each_form_are_read_and_a_cut_number_is_refused() {
        let read = |form, bytes: &[u8]| array(form, bytes.to_vec()).iter().collect::<Vec<f64>>();
        assert_eq!(read(NumberForm::Signed(1), &[255, 1]), [-1.0, 1.0]);
        assert_eq!(read(NumberForm::Unsigned(1), &[255]), [255.0]);
        assert_eq!(read(NumberForm::Signed(2), &(-7i16).to_ne_bytes()), [-7.0]);
        assert_eq!(read(NumberForm::Float(4), &2.5f32.to_ne_bytes()), [2.5]);
        for (form, length) in [(NumberForm::Float(4), 3), (NumberForm::Float(16), 16)] {
            assert!(NumberArray::new(Some(form), vec![0; length]).is_err());
        }
    }
}
