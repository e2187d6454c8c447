//! Which environment variables are secrets.
//!
//! Invariant: the value of a variable that matches never reaches the log's header.

/// Names that are always secret.
const SECRETS: &[&str] = &[
    "*TOKEN*",
    "*SECRET*",
    "*PASSWORD*",
    "*PASSWD*",
    "*_KEY",
    "*CREDENTIAL*",
    "AWS_*",
];

/// An environment with the values of secrets replaced.
pub(crate) fn environment(all: &[Vec<u8>], more: &[String]) -> Vec<Vec<u8>> {
    all.iter().map(|entry| redact(entry, more)).collect()
}

fn redact(entry: &[u8], more: &[String]) -> Vec<u8> {
    let name_ends = entry.iter().position(|&b| b == b'=');
    let name = &entry[..name_ends.unwrap_or(entry.len())];
    let upper = name.to_ascii_uppercase();
    let secret = SECRETS.iter().any(|p| matches(p.as_bytes(), &upper))
        || more.iter().any(|p| matches(p.as_bytes(), name));
    if secret && name_ends.is_some() {
        [name, b"=<redacted>"].concat()
    } else {
        entry.to_vec()
    }
}

/// `*` stands for anything, `?` for one byte.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=text.len()).any(|n| matches(rest, &text[n..])),
        (Some((b'?', rest)), Some((_, tail))) => matches(rest, tail),
        (Some((p, rest)), Some((t, tail))) => p == t && matches(rest, tail),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(entry: &str, more: &[&str]) -> String {
        let more: Vec<String> = more.iter().map(|&m| m.into()).collect();
        String::from_utf8(redact(entry.as_bytes(), &more)).unwrap()
    }

    #[test]
    fn secrets_never_reach_the_header() {
        for name in [
            "GITHUB_TOKEN",
            "my_secret_x",
            "PGPASSWORD",
            "API_KEY",
            "AWS_REGION",
            "npm_config_credentials",
        ] {
            assert_eq!(one(&format!("{name}=v=w"), &[]), format!("{name}=<redacted>"));
        }
    }

    #[test]
    fn other_variables_are_kept_as_they_are() {
        for entry in ["PATH=/bin", "KEYBOARD=de", "MONKEY=1", "no equals sign", "=odd"] {
            assert_eq!(one(entry, &[]), entry);
        }
    }

    #[test]
    fn the_user_can_name_more() {
        assert_eq!(one("MY_DSN=u:p@h", &["MY_?SN"]), "MY_DSN=<redacted>");
        assert_eq!(one("MY_DSN=u:p@h", &["OTHER*"]), "MY_DSN=u:p@h");
    }
}
