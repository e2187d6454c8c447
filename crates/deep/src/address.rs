//! Socket addresses as text. In: the bytes that the kernel was given or returned. Out: `HOST:PORT`,
//! `unix:PATH`, or an empty text.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// A socket address as text. Empty if the bytes are no whole address, or of another family.
pub fn address_text(address: &[u8]) -> String {
    const UNIX: u16 = 1;
    const INET: u16 = 2;
    const INET6: u16 = 10;
    let Some((family, rest)) = address.split_first_chunk::<2>() else {
        return String::new();
    };
    let port = |bytes: &[u8]| bytes.first_chunk().map(|b| u16::from_be_bytes(*b));
    let text = match u16::from_ne_bytes(*family) {
        INET => port(rest)
            .zip(rest.get(2..6).and_then(|b| b.first_chunk::<4>()))
            .map(|(port, ip)| SocketAddr::from((Ipv4Addr::from(*ip), port)).to_string()),
        INET6 => port(rest)
            .zip(rest.get(6..22).and_then(|b| b.first_chunk::<16>()))
            .map(|(port, ip)| SocketAddr::from((Ipv6Addr::from(*ip), port)).to_string()),
        UNIX => {
            let path = rest.split(|byte| *byte == 0).next().unwrap_or_default();
            let path = String::from_utf8_lossy(path);
            (!path.is_empty()).then(|| format!("unix:{path}"))
        }
        _ => None,
    };
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::address_text;

    #[test]
    fn addresses_are_written_as_people_write_them() {
        assert_eq!(
            address_text(&[2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0]),
            "127.0.0.1:8080"
        );
        let mut six = vec![10, 0, 0, 80, 0, 0, 0, 0];
        six.extend([0; 15]);
        six.push(1);
        assert_eq!(address_text(&six), "[::1]:80");
        assert_eq!(address_text(b"\x01\0/run/x\0"), "unix:/run/x");
        for cut in [&[][..], &[2], &[2, 0, 1], &[10, 0, 1, 2, 3], &[1, 0]] {
            assert_eq!(address_text(cut), "");
        }
    }
}
