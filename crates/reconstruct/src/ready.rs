//! The structures of `poll`, `select` and `epoll_wait`.

use backstory_deep::Call;

/// Ready to read, as `poll` has it.
pub const IN: u32 = libc::POLLIN as u32;
/// Ready to write.
pub const OUT: u32 = libc::POLLOUT as u32;
/// An exceptional condition.
pub const PRI: u32 = libc::POLLPRI as u32;

/// The ready descriptors after a recorded `poll`.
pub fn poll_entries(call: &Call) -> Vec<(i32, u32)> {
    let bytes = call.entered_at(0).unwrap_or_default();
    poll_list(bytes)
        .into_iter()
        .filter(|(_, _, ready)| *ready != 0)
        .map(|(fd, _, ready)| (fd, u32::from(ready)))
        .collect()
}

/// An array of `struct pollfd`: descriptor, requested events, events that are ready.
pub fn poll_list(bytes: &[u8]) -> Vec<(i32, u16, u16)> {
    let (entries, _) = bytes.as_chunks::<8>();
    let one = |e: &[u8; 8]| {
        let fd = i32::from_le_bytes([e[0], e[1], e[2], e[3]]);
        let events = u16::from_le_bytes([e[4], e[5]]);
        (fd, events, u16::from_le_bytes([e[6], e[7]]))
    };
    entries.iter().map(one).collect()
}

/// The ready descriptors after a recorded `select`.
pub fn select_entries(call: &Call) -> Vec<(i32, u32)> {
    let mut ready: Vec<(i32, u32)> = Vec::new();
    if call.result <= 0 {
        return ready;
    }
    for (arg, events) in [(1, IN), (2, OUT), (3, PRI)] {
        for fd in set_members(call.entered_at(arg).unwrap_or_default()) {
            match ready.iter_mut().find(|(known, _)| *known == fd) {
                Some((_, known)) => *known |= events,
                None => ready.push((fd, events)),
            }
        }
    }
    ready
}

/// The members of an `fd_set`.
pub fn set_members(bytes: &[u8]) -> Vec<i32> {
    let bits = bytes.iter().enumerate().flat_map(|(at, byte)| {
        (0..8).filter_map(move |bit| (byte >> bit & 1 != 0).then_some((at * 8 + bit) as i32))
    });
    bits.collect()
}

/// An array of `struct epoll_event`: events and data.
pub fn epoll_events(bytes: &[u8]) -> Vec<(u32, u64)> {
    let (entries, _) = bytes.as_chunks::<12>();
    let one = |e: &[u8; 12]| {
        let events = u32::from_le_bytes([e[0], e[1], e[2], e[3]]);
        let data = [e[4], e[5], e[6], e[7], e[8], e[9], e[10], e[11]];
        (events, u64::from_le_bytes(data))
    };
    entries.iter().map(one).collect()
}
