//! Which server has the bucket, and with which keys a user reaches it.
//!
//! The variables and files are those of the AWS command line (`aws help topics config-vars`), so
//! that a user who has set it up needs nothing else.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::{Error, Result};

use super::address::BucketAddress;

/// The region of the AWS command line's examples, and of most other servers.
const REGION: &str = "us-east-1";

/// A server and the keys for it.
#[derive(Debug, Clone)]
pub struct Account {
    /// The beginning of each URL, up to the slash before the key.
    pub base: String,
    /// The region, which each signature names.
    pub region: String,
    /// The id of the access key.
    pub key: String,
    /// The secret part of the access key.
    pub secret: String,
    /// The token of temporary keys.
    pub token: Option<String>,
}

impl Account {
    /// The account of this process: its variables first, then the files of the user.
    ///
    /// # Errors
    /// There is no access key, or a value has a character that a request cannot have.
    pub fn of_process(address: &BucketAddress) -> Result<Account> {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let home = variable("HOME").map(PathBuf::from).unwrap_or_default();
        let file = |name: &str, standard: &str| {
            let path = variable(name).map_or_else(|| home.join(standard), PathBuf::from);
            std::fs::read_to_string(path).unwrap_or_default()
        };
        let keys = file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials");
        let settings = file("AWS_CONFIG_FILE", ".aws/config");
        let mut known = section(&settings, &[&profile, &format!("profile {profile}")]);
        known.extend(section(&keys, &[&profile]));
        Account::of(address, &variable, &known)
    }

    fn of(
        address: &BucketAddress,
        variable: &dyn Fn(&str) -> Option<String>,
        known: &HashMap<String, String>,
    ) -> Result<Account> {
        let setting = |name: &str| known.get(name).cloned();
        // Keys of two places must not be mixed.
        let (key, secret, token) = match variable("AWS_ACCESS_KEY_ID") {
            Some(key) => {
                let secret = variable("AWS_SECRET_ACCESS_KEY");
                (Some(key), secret, variable("AWS_SESSION_TOKEN"))
            }
            None => (
                setting("aws_access_key_id"),
                setting("aws_secret_access_key"),
                setting("aws_session_token"),
            ),
        };
        let (Some(key), Some(secret)) = (key, secret) else {
            return Err(Error::Refused(
                "there is no access key for the bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials".to_owned(),
            ));
        };
        let region = variable("AWS_REGION")
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            .or_else(|| setting("region"))
            .unwrap_or_else(|| REGION.to_owned());
        let endpoint = variable("AWS_ENDPOINT_URL_S3")
            .or_else(|| variable("AWS_ENDPOINT_URL"))
            .or_else(|| setting("endpoint_url"));
        let account = Account {
            base: base(address, endpoint.as_deref(), &region)?,
            region,
            key,
            secret,
            token,
        };
        account.check()?;
        Ok(account)
    }

    /// A line break or quote would begin another option of the request.
    fn check(&self) -> Result<()> {
        let odd = |c: char| c.is_control() || c.is_whitespace() || c == '"' || c == '\\';
        let texts = [&self.base, &self.region, &self.key, &self.secret];
        match texts.into_iter().chain(&self.token).any(|text| text.contains(odd)) {
            true => Err(Error::Refused(
                "the access key, region or endpoint of the bucket has a space, a quote or a control character".to_owned(),
            )),
            false => Ok(()),
        }
    }
}

/// A server of the user's choice has its buckets below its address; AWS has a name for each bucket.
/// A name with a dot has no certificate there.
fn base(address: &BucketAddress, endpoint: Option<&str>, region: &str) -> Result<String> {
    let bucket = &address.bucket;
    match endpoint {
        Some(endpoint) if endpoint.starts_with("http://") || endpoint.starts_with("https://") => {
            Ok(format!("{}/{bucket}", endpoint.trim_end_matches('/')))
        }
        Some(endpoint) => Err(Error::Refused(format!(
            "AWS_ENDPOINT_URL is '{}', and must begin with https:// or http://",
            endpoint.escape_default()
        ))),
        None if bucket.contains('.') => Ok(format!("https://s3.{region}.amazonaws.com/{bucket}")),
        None => Ok(format!("https://{bucket}.s3.{region}.amazonaws.com")),
    }
}

/// The settings of one section of a file of the AWS command line.
fn section(text: &str, names: &[&str]) -> HashMap<String, String> {
    let mut inside = false;
    let mut found = HashMap::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            inside = names.contains(&name.trim());
        } else if let (true, Some((name, value))) = (inside, line.split_once('='))
            && !line.starts_with(['#', ';'])
        {
            found.insert(name.trim().to_owned(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(variables: &[(&str, &str)], file: &str, bucket: &str) -> Result<Account> {
        let variable = |wanted: &str| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| (*value).to_owned())
        };
        let address = BucketAddress::parse(bucket).unwrap();
        Account::of(&address, &variable, &section(file, &["default"]))
    }

    const FILE: &str = "[other]\nregion = x\n[default]\naws_access_key_id = AK\n# a = b\naws_secret_access_key=S=K\nregion = eu-west-1\n";

    #[test]
    fn keys_come_from_the_variables_or_from_the_file_and_never_from_both() {
        let of_file = account(&[], FILE, "runs").unwrap();
        assert_eq!(
            (of_file.key.as_str(), of_file.secret.as_str()),
            ("AK", "S=K")
        );
        assert_eq!(of_file.base, "https://runs.s3.eu-west-1.amazonaws.com");
        let variables = [("AWS_ACCESS_KEY_ID", "V"), ("AWS_SECRET_ACCESS_KEY", "W")];
        let of_variables = account(&variables, FILE, "runs").unwrap();
        assert_eq!(
            (of_variables.key.as_str(), of_variables.secret.as_str()),
            ("V", "W")
        );
        assert!(account(&variables[..1], FILE, "runs").is_err());
    }

    #[test]
    fn a_server_of_the_users_choice_has_the_bucket_in_its_path() {
        let own = account(
            &[("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/")],
            FILE,
            "runs/x",
        )
        .unwrap();
        assert_eq!(own.base, "http://127.0.0.1:9000/runs");
        let dotted = account(&[], FILE, "a.b").unwrap();
        assert_eq!(dotted.base, "https://s3.eu-west-1.amazonaws.com/a.b");
        assert!(account(&[("AWS_ENDPOINT_URL", "ftp://x")], FILE, "runs").is_err());
    }

    #[test]
    fn a_value_that_would_begin_another_option_is_refused() {
        for value in ["a\nb", "a\"b", "a b", "a\\b"] {
            assert!(
                account(&[("AWS_REGION", value)], FILE, "runs").is_err(),
                "{value:?}"
            );
        }
    }
}
