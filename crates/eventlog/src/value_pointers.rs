//! The pointers among the values of a call (`record --arguments`), and the data that they lead to.
//!
//! In: the strings of a `VALUES` record. Out: the values, and the addresses behind those that are
//! pointers to data. The bytes are those of the type. If the next parameter is a length, it counts.

use crate::event::{Bytes, ValuePointer};

/// Before the name in the string of a pointer.
const MARK: u8 = b'&';
/// Before the address if the function does not change the data.
const CONSTANT: &str = "const ";

/// Names of parameters that are the length of the buffer before them, and ends of such names.
const LENGTHS: [&[u8]; 7] = [
    b"n", b"len", b"length", b"size", b"count", b"bytes", b"nbytes",
];
const LENGTH_ENDS: [&[u8]; 5] = [b"_len", b"_length", b"_size", b"_count", b"_bytes"];

/// Takes the pointers out of the strings.
pub(crate) fn parted<'a>(
    strings: impl Iterator<Item = &'a [u8]>,
) -> (Vec<&'a [u8]>, Vec<ValuePointer>) {
    let (pointers, values): (Vec<_>, Vec<_>) = strings.partition(|one| one.first() == Some(&MARK));
    let pointers = pointers.into_iter().filter_map(|one| pointer(one, &values));
    let pointers = pointers.collect();
    (values, pointers)
}

/// `&NAME=ADDRESS+BYTES`
fn pointer(string: &[u8], values: &[&[u8]]) -> Option<ValuePointer> {
    let (name, text) = name_and_text(string.get(1..)?)?;
    let constant = text.strip_prefix(CONSTANT);
    let (address, bytes) = constant.unwrap_or(text).split_once('+')?;
    let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
    let bytes: u64 = bytes.parse().ok()?;
    let elements = length_after(name, values).unwrap_or(1).max(1);
    Some(ValuePointer {
        name: Bytes::from(name),
        address,
        bytes: bytes.max(1).saturating_mul(elements),
        is_constant: constant.is_some(),
    })
}

fn name_and_text(string: &[u8]) -> Option<(&[u8], &str)> {
    let at = string.iter().position(|&byte| byte == b'=')?;
    Some((&string[..at], std::str::from_utf8(&string[at + 1..]).ok()?))
}

/// The value of the parameter after another one, if it is a length by its name.
fn length_after(name: &[u8], values: &[&[u8]]) -> Option<u64> {
    let is_it = |value: &&[u8]| {
        value
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(b"="))
    };
    let at = values.iter().position(is_it)?;
    let (next, text) = name_and_text(values.get(at + 1)?)?;
    let is_length = LENGTHS.contains(&next) || LENGTH_ENDS.iter().any(|end| next.ends_with(end));
    text.parse().ok().filter(|_| is_length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(strings: &[&str]) -> (usize, Vec<(String, u64, u64, bool)>) {
        let (values, pointers) = parted(strings.iter().map(|one| one.as_bytes()));
        let pointers = pointers.into_iter().map(|one| {
            let name = String::from_utf8_lossy(&one.name).into_owned();
            (name, one.address, one.bytes, one.is_constant)
        });
        (values.len(), pointers.collect())
    }

    #[test]
    fn a_pointer_has_the_bytes_of_its_type_or_of_the_length_behind_it() {
        let strings = [
            "to=\"\"",
            "to_len=100",
            "from=\"a\"",
            "mode=3",
            "all=0x30",
            "n=4",
            "&to=0x10+1",
            "&from=const 0x20+1",
            "&all=0x30+8",
        ];
        let (to, from, all) = ("to".to_owned(), "from".to_owned(), "all".to_owned());
        let expected = vec![
            (to, 16, 100, false),
            (from, 32, 1, true),
            (all, 48, 32, false),
        ];
        assert_eq!(read(&strings), (6, expected));
    }

    #[test]
    fn a_damaged_or_redacted_pointer_is_none() {
        for damaged in [
            "&p",
            "&p=",
            "&p=[redacted]",
            "&p=0x",
            "&p=0x10+",
            "&p=10+1",
            "&",
        ] {
            assert_eq!(read(&["p=0x10", damaged]), (1, Vec::new()), "{damaged}");
        }
        let most = "&p=0xffffffffffffffff+18446744073709551615";
        assert_eq!(read(&["p=0x10", "n=-1", most]).1[0].2, u64::MAX);
    }
}
