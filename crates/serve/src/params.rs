//! The parameters of a request. Values are bytes, since a path need not be UTF-8: `%FF` is the byte
//! 255. A parameter that the route does not know is refused, so that a misspelt one is noticed.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use backstory_eventlog::event::{Bytes, Time};

use crate::problem::{Answer, Problem};

/// The most values of one request.
const MOST: usize = 1000;

/// The parameters of a request, decoded.
#[derive(Debug, Clone, Default)]
pub struct Params {
    pairs: Vec<(String, Bytes)>,
}

impl Params {
    /// Decodes the text behind the `?`.
    pub fn parse(query: &str) -> Answer<Params> {
        let mut pairs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let key = String::from_utf8_lossy(&decode(key)?).into_owned();
            pairs.push((key, decode(value)?.into()));
            if pairs.len() > MOST {
                return Err(Problem::bad_request("the request has too many parameters"));
            }
        }
        Ok(Params { pairs })
    }

    /// Refuses parameters that are not in `known`.
    pub fn only(&self, known: &[&str]) -> Answer<()> {
        let mut keys = self.pairs.iter().map(|(key, _)| key.as_str());
        match keys.find(|key| !known.contains(key)) {
            Some(key) => Err(Problem::bad_request(format!(
                "there is no parameter '{key}'; known are: {}",
                known.join(", ")
            ))),
            None => Ok(()),
        }
    }

    /// The bytes of a parameter. An empty one counts as absent.
    pub fn bytes(&self, key: &str) -> Option<&Bytes> {
        let mut found = self.pairs.iter().filter(|(own, _)| own == key);
        found
            .next_back()
            .map(|(_, value)| value)
            .filter(|value| !value.is_empty())
    }

    /// All values of a parameter that may be repeated.
    pub fn all(&self, key: &str) -> impl Iterator<Item = &Bytes> {
        let found = self.pairs.iter().filter(move |(own, _)| own == key);
        found
            .map(|(_, value)| value)
            .filter(|value| !value.is_empty())
    }

    /// A parameter that is text.
    pub fn text(&self, key: &str) -> Answer<Option<&str>> {
        let text = self.bytes(key).map(|bytes| std::str::from_utf8(bytes));
        text.transpose()
            .map_err(|_| Problem::bad_request(format!("the parameter '{key}' is not UTF-8")))
    }

    /// All values of a parameter that is text.
    pub fn texts(&self, key: &str) -> Answer<Vec<String>> {
        let texts = self
            .all(key)
            .map(|bytes| String::from_utf8(bytes.to_vec()).ok());
        texts
            .collect::<Option<_>>()
            .ok_or_else(|| Problem::bad_request(format!("the parameter '{key}' is not UTF-8")))
    }

    /// A parameter that must be there.
    pub fn needed(&self, key: &str) -> Answer<&Bytes> {
        self.bytes(key)
            .ok_or_else(|| Problem::bad_request(format!("the parameter '{key}' is missing")))
    }

    /// A number, at most `most`.
    pub fn number(&self, key: &str, usual: usize, most: usize) -> Answer<usize> {
        match self.text(key)? {
            None => Ok(usual),
            Some(text) => {
                let number = text.parse::<usize>();
                number
                    .map(|number| number.min(most))
                    .map_err(|_| wrong(key, text, "a whole number"))
            }
        }
    }

    /// `true` or `false`.
    pub fn flag(&self, key: &str) -> Answer<Option<bool>> {
        match self.text(key)? {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(text) => Err(wrong(key, text, "true or false")),
        }
    }

    /// A moment: seconds since 1970.
    pub fn time(&self, key: &str) -> Answer<Option<Time>> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let seconds: f64 = text
            .parse()
            .map_err(|_| wrong(key, text, "seconds since 1970"))?;
        Ok(Some((seconds * 1e9) as Time))
    }

    /// One of several words.
    pub fn word<'w>(&self, key: &str, words: &[&'w str]) -> Answer<Option<&'w str>> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let found = words.iter().copied().find(|word| *word == text);
        found
            .map(Some)
            .ok_or_else(|| wrong(key, text, &words.join(", ")))
    }
}

fn wrong(key: &str, text: &str, wanted: &str) -> Problem {
    Problem::bad_request(format!("the parameter '{key}' is '{text}'; give {wanted}"))
}

/// Decodes percent signs and plus signs.
fn decode(text: &str) -> Answer<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| byte.and_then(|byte| (byte as char).to_digit(16));
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => match (digit(rest.next()), digit(rest.next())) {
                (Some(high), Some(low)) => (high * 16 + low) as u8,
                _ => return Err(Problem::bad_request("a percent sign without two digits")),
            },
            byte => byte,
        });
    }
    Ok(bytes)
}

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Answer<Params> {
        let params = Params::parse(parts.uri.query().unwrap_or_default());
        params.map(|mut params| {
            // The gate has looked at it.
            params.pairs.retain(|(key, _)| key != "token");
            params
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_bytes_and_a_parameter_that_nobody_knows_is_refused() {
        let params = Params::parse("path=%2Fa%FF+b%2B&n=7&on=true&n=9&empty=").unwrap();
        assert_eq!(&**params.bytes("path").unwrap(), b"/a\xff b+");
        assert!(params.text("path").is_err() && params.bytes("empty").is_none());
        assert_eq!(params.number("n", 1, 8).unwrap(), 8);
        assert_eq!(params.number("m", 1, 8).unwrap(), 1);
        assert_eq!(params.flag("on").unwrap(), Some(true));
        assert!(params.word("n", &["x"]).is_err());
        assert!(params.only(&["path", "n", "on", "empty"]).is_ok());
        assert!(params.only(&["path"]).is_err());
        assert!(Params::parse("a=%f").is_err() && Params::parse("a=%zz").is_err());
    }
}
