//! Hashes of calls and of environments.

use crate::decoded_call::DecodedCall;
use crate::notification_buffers::Notification;

/// The fingerprint of a call, by which a call that a signal has restarted is recognized.
pub fn fingerprint(call: &Notification, decoded: &DecodedCall) -> u64 {
    let start = mix(u64::from(call.nr) | u64::from(call.arch) << 32, call.ip);
    let number = call.args.iter().fold(start, |hash, arg| mix(hash, *arg));
    let paths = decoded
        .names()
        .into_iter()
        .flatten()
        .flat_map(|name| name.path.chunks(8));
    let address = if let DecodedCall::Address { address, .. } = decoded {
        &address[..]
    } else {
        &[]
    };
    paths
        .chain(address.chunks(8))
        .fold(number, |hash, chunk| mix(hash, word(chunk)))
}

pub(crate) fn word(chunk: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(chunk) {
        Ok(whole) => u64::from_le_bytes(whole),
        Err(_) => chunk.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)),
    }
}

pub(crate) fn mix(hash: u64, word: u64) -> u64 {
    let wide = u128::from(hash ^ word ^ 0x2545_f491_4f6c_dd1d) * 0xd6e8_feb8_6659_fd93;
    (wide as u64) ^ (wide >> 64) as u64
}
