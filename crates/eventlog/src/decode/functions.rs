//! Decodes the calls and values of functions.

use crate::event::FunctionStep;
use backstory_abi as abi;

/// A value with its floating-point numbers as text. The recorder writes their bits in hexadecimal,
/// after a byte of 1.
pub(super) fn printed(value: &[u8]) -> Box<[u8]> {
    let mut text = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.iter().position(|&byte| byte == 1) {
        text.extend_from_slice(&rest[..at]);
        let digits = &rest[at + 1..];
        let count = digits.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let bits = std::str::from_utf8(&digits[..count]).ok();
        let bits = bits.and_then(|bits| u64::from_str_radix(bits, 16).ok());
        let number = match (bits, count) {
            (Some(bits), 16) => f64::from_bits(bits).to_string(),
            (Some(bits), 8) => f32::from_bits(bits as u32).to_string(),
            _ => "?".to_owned(),
        };
        text.extend_from_slice(number.as_bytes());
        rest = &digits[count..];
    }
    text.extend_from_slice(rest);
    text.into()
}

/// The entries of a `CALLS` record. They end at a word that is 0 or cut off.
pub(super) fn function_steps(body: &[u8]) -> Box<[FunctionStep]> {
    let mut words = body.chunks_exact(4).map(|word| {
        word.iter()
            .rev()
            .fold(0u32, |sum, &byte| sum << 8 | u32::from(byte))
    });
    let mut steps = Vec::new();
    while let Some(word) = words.next() {
        let after = u64::from(word & abi::CALLS_TIME) << 6;
        if word & !abi::CALLS_TIME == 0 {
            break;
        }
        if word & abi::CALLS_CALL != 0 {
            let Some(number) = words.next() else { break };
            steps.push(FunctionStep::Call { number, after });
        }
        if word & abi::CALLS_RETURN != 0 {
            steps.push(FunctionStep::Return { after });
        }
    }
    steps.into()
}
