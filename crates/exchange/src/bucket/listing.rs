//! A page of the list of keys (`ListObjectsV2`), in XML.
//!
//! The server writes the XML, and keys come percent-encoded (`encoding-type=url`). So an element is
//! found by its tags, and no other part of XML is needed.

use std::borrow::Cow;

use crate::{Error, Result};

/// Most keys of a page.
pub const PAGE: usize = 1000;

/// A page of keys, ascending.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The keys.
    pub keys: Vec<String>,
    /// True if more keys follow.
    pub more: bool,
}

/// The query for the keys that begin with `prefix` and are behind `after`. The names are in order,
/// and nothing is percent-encoded: versions of curl before 8 sign another query otherwise. No key
/// has a character that would need it ([`BucketAddress`](super::BucketAddress)).
pub fn query(prefix: &str, after: &str) -> String {
    let after = match after.is_empty() {
        true => String::new(),
        false => format!("&start-after={}", after),
    };
    format!(
        "/?encoding-type=url&list-type=2&max-keys={PAGE}&prefix={}{after}",
        prefix
    )
}

fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                out.push(u8::from_str_radix(digits, 16).ok()?);
            }
            b'+' => out.push(b' '),
            _ => out.push(byte),
        }
    }
    String::from_utf8(out).ok()
}

/// Reads a page.
///
/// # Errors
/// The text is no list of S3, or its keys do not ascend from `after`.
pub fn parse(text: &str, after: &str) -> Result<Page> {
    let unfit = |why: &str| Error::Protocol(format!("the bucket's list of keys {why}"));
    if !text.contains("<ListBucketResult") {
        return Err(unfit("is none: the server does not speak S3's protocol"));
    }
    let mut page = Page {
        more: element(text, "IsTruncated").as_deref() == Some("true"),
        ..Page::default()
    };
    let mut rest = text;
    while let Some((_, from)) = rest.split_once("<Contents>") {
        let (object, behind) = from
            .split_once("</Contents>")
            .ok_or_else(|| unfit("is cut off"))?;
        let key = element(object, "Key").and_then(|key| decoded(&key));
        let key = key.ok_or_else(|| unfit("has an object without a key"))?;
        if key.as_str() <= page.keys.last().map_or(after, String::as_str) {
            return Err(unfit("does not ascend"));
        }
        page.keys.push(key);
        rest = behind;
    }
    match page.more && page.keys.is_empty() {
        true => Err(unfit("has no key, and says that more follow")),
        false => Ok(page),
    }
}

/// The text of the first element of this name.
pub fn element<'t>(text: &'t str, name: &str) -> Option<Cow<'t, str>> {
    let (_, from) = text.split_once(&format!("<{name}>"))?;
    let (inside, _) = from.split_once(&format!("</{name}>"))?;
    if !inside.contains('&') {
        return Some(Cow::Borrowed(inside));
    }
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ];
    let plain = |text: String, (entity, plain): (&str, &str)| text.replace(entity, plain);
    Some(Cow::Owned(
        entities.into_iter().fold(inside.to_owned(), plain),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE_OF_TWO: &str = "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><Name>b</Name>\
        <IsTruncated>true</IsTruncated>\
        <Contents><Key>x%2Fa+b</Key><Size>3</Size></Contents>\
        <Contents><Key>x%2Fc</Key></Contents></ListBucketResult>";

    #[test]
    fn a_page_has_its_keys_decoded_and_says_whether_more_follow() {
        let page = parse(PAGE_OF_TWO, "").unwrap();
        assert_eq!(page.keys, ["x/a b", "x/c"]);
        assert!(page.more);
    }

    #[test]
    fn a_list_that_would_never_end_is_refused() {
        for text in [
            "<html>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            "<ListBucketResult><Contents><Key>a</Key>",
            "<ListBucketResult><Contents></Contents></ListBucketResult>",
            "<ListBucketResult><Contents><Key>%z</Key></Contents></ListBucketResult>",
        ] {
            assert!(parse(text, "").is_err(), "{text}");
        }
        assert!(
            parse(PAGE_OF_TWO, "x/b").is_err(),
            "keys before the first one"
        );
    }

    #[test]
    fn a_query_is_in_order_and_plain_as_its_signature_needs_it() {
        assert_eq!(
            query("a/runs/", "a/runs/x"),
            "/?encoding-type=url&list-type=2&max-keys=1000&prefix=a/runs/&start-after=a/runs/x"
        );
        assert!(!query("a", "").contains("start-after"));
    }

    #[test]
    fn an_element_has_its_entities_replaced_once() {
        assert_eq!(
            element("<a>x &amp;lt; y</a>", "a").as_deref(),
            Some("x &lt; y")
        );
        assert_eq!(element("<a>x", "a"), None);
    }
}
