//! Socket addresses, from strace's text to the kernel's bytes.

use super::constants::{field, flags};
use super::text::{Arg, TextReader};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The bytes of a `sockaddr` that strace printed as a structure. `None` if it printed none, or only
/// a pointer.
pub(crate) fn socket_address(text: &str) -> Option<Vec<u8>> {
    let family = flags(field(text, "sa_family")?) as u16;
    let mut bytes = family.to_ne_bytes().to_vec();
    match i32::from(family) {
        libc::AF_UNIX => bytes.extend(unix_path(field(text, "sun_path").unwrap_or_default())?),
        libc::AF_INET => {
            bytes.extend(port(text, "sin_port")?.to_be_bytes());
            let address: Ipv4Addr = inner(field(text, "sin_addr")?, '"')?.parse().ok()?;
            bytes.extend(address.octets());
            bytes.extend([0; 8]);
        }
        libc::AF_INET6 => {
            bytes.extend(port(text, "sin6_port")?.to_be_bytes());
            bytes.extend([0; 4]);
            // `inet_pton(AF_INET6, "::1", &sin6_addr)` has no name before it.
            let address = text
                .split("inet_pton(")
                .nth(1)
                .or(field(text, "sin6_addr"))?;
            let address: Ipv6Addr = inner(address, '"')?.parse().ok()?;
            bytes.extend(address.octets());
            bytes.extend((flags(field(text, "sin6_scope_id").unwrap_or("0")) as u32).to_ne_bytes());
        }
        _ => {}
    }
    Some(bytes)
}

fn port(text: &str, name: &str) -> Option<u16> {
    let value = field(text, name)?;
    let digits = value.strip_prefix("htons(")?.strip_suffix(')')?;
    digits.parse().ok()
}

/// The text between the first two of these marks.
fn inner(text: &str, mark: char) -> Option<&str> {
    text.split(mark).nth(1)
}

/// The bytes of `sun_path`: `"/path"`, or `@"name"` of an abstract address.
fn unix_path(text: &str) -> Option<Vec<u8>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let (is_abstract, quoted) = match text.strip_prefix('@') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (args, _) = TextReader::new(quoted.as_bytes()).arguments();
    let Some(Arg::Text { bytes, .. }) = args.first() else {
        return None;
    };
    Some(match is_abstract {
        true => [&b"\0"[..], bytes].concat(),
        false => [bytes, &b"\0"[..]].concat(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_the_bytes_that_the_kernel_has() {
        let unix = socket_address("{sa_family=AF_UNIX, sun_path=\"/run/x y\"}").unwrap();
        assert_eq!(unix[2..], *b"/run/x y\0");
        let hidden = socket_address("{sa_family=AF_UNIX, sun_path=@\"x\"}").unwrap();
        assert_eq!(hidden[2..], *b"\0x");
        let text = "{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"127.0.0.1\")}";
        assert_eq!(socket_address(text).unwrap()[2..8], [0, 80, 127, 0, 0, 1]);
        let text = "{sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), \
                    inet_pton(AF_INET6, \"::1\", &sin6_addr), sin6_scope_id=0}";
        let bytes = socket_address(text).unwrap();
        assert_eq!((bytes.len(), bytes[23]), (28, 1));
        assert_eq!(socket_address("0x7ffd1234"), None);
    }
}
