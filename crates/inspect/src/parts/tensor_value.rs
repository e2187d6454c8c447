//! A tensor of a file of weights (safetensors), and values in it: `encoder.weight`,
//! `encoder.weight[2][0]`. With fewer items than dimensions, it is all that lies below them.

use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName, PartPlace};
use safetensors::SafeTensors;

use super::{absent, unreadable};

/// The length of the header stands before it.
const LENGTH: usize = 8;

/// The place of a tensor or of its values.
///
/// # Errors
/// A cell is meant, or the file is damaged, or has no such tensor or value.
pub fn place(content: &[u8], name: &PartName) -> PartAnswer {
    let PartName::Member(text) = name else {
        return Err(NoPart::OtherKind);
    };
    let (header, head) = SafeTensors::read_metadata(content).map_err(unreadable)?;
    let tensors = head.tensors();
    // The names of tensors have dots, and may have brackets.
    let named = tensors.iter().filter_map(|(name, info)| {
        let items = items(text.strip_prefix(name.as_str())?)?;
        Some((name, items, *info))
    });
    let found = named.max_by_key(|(name, ..)| name.len());
    let Some((name, items, info)) = found else {
        return Err(absent(format!("the file has no tensor `{text}`")));
    };
    let (mut start, end) = info.data_offsets;
    let mut length = end - start;
    let mut shape = info.shape.iter();
    for item in items {
        let most = *shape.next().ok_or_else(|| {
            let dimensions = info.shape.len();
            absent(format!("`{name}` has {dimensions} dimensions, and no more"))
        })?;
        if item >= most {
            let why = format!(
                "`{name}` has the shape {:?}, and no item {item}",
                info.shape
            );
            return Err(absent(why));
        }
        // Values of less than a byte have no place of their own.
        if !length.is_multiple_of(most) {
            return Err(absent(format!(
                "the values of `{name}` are smaller than bytes"
            )));
        }
        length /= most;
        start += item * length;
    }
    let data = LENGTH + header + start;
    match content.len() >= data + length {
        true => Ok(PartPlace::exact(data..data + length)),
        false => Err(unreadable(format!("the values of `{name}` are cut off"))),
    }
}

/// The numbers of `[2][0]`. `None`: it has another form.
pub(super) fn items(text: &str) -> Option<Vec<usize>> {
    let Some(inner) = text.strip_prefix('[') else {
        return text.is_empty().then(Vec::new);
    };
    let inner = inner.strip_suffix(']')?;
    let is_number = |item: &&str| item.bytes().all(|digit| digit.is_ascii_digit());
    let number = |item: &str| Some(item).filter(is_number)?.parse().ok();
    inner.split("][").map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tensors: `a.w` with 2 rows of 3 numbers of 4 bytes, and `b` with 2 bytes.
    fn file() -> Vec<u8> {
        let head = br#"{"a.w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"U8","shape":[2],"data_offsets":[24,26]}}"#;
        let mut file = (head.len() as u64).to_le_bytes().to_vec();
        file.extend(head);
        file.extend(0..26);
        file
    }

    fn bytes(name: &str) -> Result<Vec<u8>, NoPart> {
        let file = file();
        let place = place(&file, &PartName::Member(name.to_owned()))?;
        Ok(file[place.ranges[0].clone()].to_vec())
    }

    #[test]
    fn a_tensor_a_row_and_a_value_are_found() {
        assert_eq!(bytes("a.w").unwrap(), (0..24).collect::<Vec<u8>>());
        assert_eq!(bytes("a.w[1]").unwrap(), (12..24).collect::<Vec<u8>>());
        assert_eq!(bytes("a.w[1][2]").unwrap(), [20, 21, 22, 23]);
        assert_eq!(bytes("b[1]").unwrap(), [25]);
    }

    #[test]
    fn what_is_not_there_is_said() {
        for absent in ["c", "a.w[2]", "b[0][0]", "a", "b[x]", "b[+1]", "b[0", "b[]"] {
            assert!(matches!(bytes(absent), Err(NoPart::Absent(_))), "{absent}");
        }
        let cut = &file()[..100];
        let cut = place(cut, &PartName::Member("b".to_owned()));
        assert!(matches!(cut, Err(NoPart::Unreadable(_))));
        let cell = place(&file(), &PartName::Cell("B3".to_owned()));
        assert!(matches!(cell, Err(NoPart::OtherKind)));
    }
}
