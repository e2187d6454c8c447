//! Notation that several standards share: times, URIs, UUIDs and package URLs.

use backstory_eventlog::event::Time;
use backstory_store::facts::Package;
use data_encoding::HEXLOWER;
use serde_json::Value;
use sha1::Digest;

/// The name of the member that has the seals of the runs (`docs/formats/seal.md`).
pub const EVIDENCE: &str = "backstory_evidence";

/// The beginning of the URIs of backstory's own terms.
pub use backstory_eventlog::job_rank::TERMS;

/// The tool that made the documents.
pub const TOOL: &str = "backstory";

/// The tool's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A time as RFC 3339 in UTC, to the nanosecond.
pub fn moment(time: Time) -> String {
    stamp(time).map_or_else(
        || "1970-01-01T00:00:00Z".to_owned(),
        |stamp| stamp.to_string(),
    )
}

/// Seconds since 1970 with nine decimals.
pub fn seconds(time: Time) -> String {
    let (whole, rest) = (
        time.div_euclid(1_000_000_000),
        time.rem_euclid(1_000_000_000),
    );
    format!("{whole}.{rest:09}")
}

/// A time as RFC 3339 in UTC, to the second.
pub fn second(time: Time) -> String {
    moment(time - time.rem_euclid(1_000_000_000))
}

fn stamp(time: Time) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_nanosecond(time.into()).ok()
}

/// A path in a URI (RFC 3986). Every byte except unreserved characters and `/` is escaped, so that
/// a name that is not UTF-8 stays whole.
pub fn escaped(path: &[u8]) -> String {
    let mut out = String::new();
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(byte.into());
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The `file` URI of an absolute path.
pub fn file_uri(path: &[u8]) -> String {
    format!("file://{}", escaped(path))
}

/// Bytes as text; bytes that are not UTF-8 become U+FFFD.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A JSON object with the fields of another.
pub fn with(mut object: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}

/// A UUID of version 5 (RFC 9562, section 5.5) for a name: the same in every export.
pub fn uuid(name: &str) -> String {
    // The namespace for URLs, RFC 9562 section 6.6.
    const URLS: [u8; 16] = [
        0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30,
        0xc8,
    ];
    let sum = sha1::Sha1::new()
        .chain_update(URLS)
        .chain_update(format!("urn:backstory:{name}"))
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&sum[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x50;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = HEXLOWER.encode(&bytes);
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

/// A package URL (ECMA-427). `distribution`: the distribution's name as the machine states it.
pub fn purl(package: &Package, distribution: &str) -> String {
    let vendor = distribution
        .split_whitespace()
        .next()
        .unwrap_or("linux")
        .to_ascii_lowercase();
    let (mut name, mut version) = (package.name.as_str(), package.version.as_str());
    let mut qualifiers = Vec::new();
    match package.manager.as_str() {
        "dpkg" => {
            if let Some((rest, arch)) = name.split_once(':') {
                name = rest;
                qualifiers.push(("arch", arch));
            }
        }
        // EPOCH:VERSION-RELEASE.ARCH
        "rpm" => {
            if let Some((rest, arch)) = version.rsplit_once('.') {
                version = rest;
                qualifiers.push(("arch", arch));
            }
            if let Some((epoch, rest)) = version.split_once(':') {
                version = rest;
                qualifiers.push(("epoch", epoch));
            }
        }
        _ => {}
    }
    let kind = match package.manager.as_str() {
        "dpkg" => format!("deb/{}", component(&vendor)),
        "rpm" => format!("rpm/{}", component(&vendor)),
        "pip" => "pypi".to_owned(),
        other => component(other),
    };
    let name = match package.manager.as_str() {
        "pip" => name.to_ascii_lowercase().replace('_', "-"),
        _ => name.to_owned(),
    };
    // The scope of an npm package is the first part of its name.
    let name: Vec<String> = name.split('/').map(component).collect();
    let qualifiers = qualifiers
        .iter()
        .map(|(key, value)| format!("{key}={}", component(value)));
    let qualifiers = qualifiers.collect::<Vec<_>>().join("&");
    format!(
        "pkg:{kind}/{}@{}{}{qualifiers}",
        name.join("/"),
        component(version),
        if qualifiers.is_empty() { "" } else { "?" },
    )
}

/// One part of a package URL.
fn component(text: &str) -> String {
    escaped(text.as_bytes())
        .replace('/', "%2F")
        .replace("%3A", ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(manager: &str, name: &str, version: &str) -> Package {
        Package {
            manager: manager.to_owned(),
            name: name.to_owned(),
            version: version.to_owned(),
            verified: true,
        }
    }

    #[test]
    fn a_uuid_is_the_one_that_others_compute() {
        // python3 -c 'import uuid; print(uuid.uuid5(uuid.NAMESPACE_URL, "urn:backstory:x"))'
        assert_eq!(uuid("x"), "1789c854-1806-5343-91c5-3be987be1e17");
    }

    #[test]
    fn a_package_is_named_as_its_registry_does() {
        let debian = "Debian GNU/Linux 12 (bookworm)";
        let named = |manager, name, version| purl(&package(manager, name, version), debian);
        assert_eq!(
            named("dpkg", "libstdc++6:amd64", "12.2.0-14"),
            "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14?arch=amd64"
        );
        assert_eq!(
            named("pip", "Typing_Extensions", "4.0"),
            "pkg:pypi/typing-extensions@4.0"
        );
        assert_eq!(
            purl(
                &package("rpm", "bash", "2:5.2-1.fc40.x86_64"),
                "Fedora Linux 40"
            ),
            "pkg:rpm/fedora/bash@5.2-1.fc40?arch=x86_64&epoch=2"
        );
        assert_eq!(named("npm", "@a/b", "1"), "pkg:npm/%40a/b@1");
    }

    #[test]
    fn a_moment_is_in_utc() {
        assert_eq!(
            moment(1_700_000_000_123_456_789),
            "2023-11-14T22:13:20.123456789Z"
        );
        assert_eq!(second(1_700_000_000_123_456_789), "2023-11-14T22:13:20Z");
        assert_eq!(file_uri(b"/a b/\xff"), "file:///a%20b/%FF");
    }
}
