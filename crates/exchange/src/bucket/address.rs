//! The address of a store in a bucket: `s3://BUCKET[/PREFIX]`.

use std::fmt;

/// Longest prefix, in bytes. A key of S3 has at most 1,024.
const LONGEST_PREFIX: usize = 512;

/// A place in an object storage that speaks S3's protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketAddress {
    /// The name of the bucket.
    pub bucket: String,
    /// The beginning of all keys, without a slash at its end. Empty for the whole bucket.
    pub prefix: String,
}

impl BucketAddress {
    /// Reads the part of the address behind `s3://`.
    ///
    /// # Errors
    /// One sentence for the user.
    pub fn parse(text: &str) -> Result<BucketAddress, String> {
        let (bucket, prefix) = text.split_once('/').unwrap_or((text, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let of_bucket = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        let named = (3..=63).contains(&bucket.len()) && bucket.chars().all(of_bucket);
        if !named || !bucket.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return Err(format!(
                "'{}' is not the name of a bucket: it has 3 to 63 characters of a-z, 0-9, - and .",
                bucket.escape_default()
            ));
        }
        // Such a key is the same in a URL, in its signature and in the storage.
        let of_key = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let part = |part: &str| {
            !part.is_empty() && part != "." && part != ".." && part.chars().all(of_key)
        };
        if !prefix.is_empty() && (prefix.len() > LONGEST_PREFIX || !prefix.split('/').all(part)) {
            return Err(format!(
                "the prefix '{}' has other characters than letters, digits, - . _ and single slashes, or is longer than {LONGEST_PREFIX}",
                prefix.escape_default()
            ));
        }
        Ok(BucketAddress {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        })
    }

    /// The key of an object of the store.
    pub fn key(&self, name: &str) -> String {
        match self.prefix.is_empty() {
            true => name.to_owned(),
            false => format!("{}/{name}", self.prefix),
        }
    }
}

impl fmt::Display for BucketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.bucket)?;
        match self.prefix.is_empty() {
            true => Ok(()),
            false => write!(f, "/{}", self.prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_bucket_and_the_beginning_of_its_keys() {
        for (text, bucket, key) in [
            ("team-runs", "team-runs", "runs/a"),
            ("team-runs/", "team-runs", "runs/a"),
            ("b.1/x/Y_z", "b.1", "x/Y_z/runs/a"),
            ("b.1/x/", "b.1", "x/runs/a"),
        ] {
            let address = BucketAddress::parse(text).unwrap();
            assert_eq!(
                (address.bucket.as_str(), address.key("runs/a").as_str()),
                (bucket, key)
            );
        }
    }

    #[test]
    fn a_name_that_a_url_or_a_signature_would_change_is_refused() {
        for text in [
            "",
            "ab",
            "Team",
            "-ab",
            "a b",
            "a?b",
            "bucket//x",
            "bucket/a b",
            "bucket/../x",
            "bucket/ä",
        ] {
            assert!(BucketAddress::parse(text).is_err(), "{text}");
        }
    }
}
