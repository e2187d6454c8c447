//! Admits requests. In: the head of a request. Out: whether it may pass, and the cookie to set.
//!
//! | attack | what refuses it |
//! | --- | --- |
//! | another user of the machine | the token: 256 random bits |
//! | a page of another site, by DNS rebinding | `Host` must be a name of the loopback interface |
//! | a page of another site, by forms, images or `fetch` | `Origin`, `Sec-Fetch-Site`, the strict cookie |
//! | a page of another server on this machine | the same: its port is part of its origin |
//! | a script in a recorded file | the content security policy |
//!
//! The token comes in the URL (`?token=`), once. The page is then served with a cookie that only
//! this port's pages send back. Programs send `Authorization: Bearer TOKEN`.

use std::fmt;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use crate::params::Params;
use crate::problem::{Answer, Problem};

/// The header that a request must have which changes something.
const OWN_HEADER: &str = "x-backstory";

/// The secret that a client must know.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken(String);

impl AccessToken {
    /// A new token from the kernel's random numbers.
    pub fn random() -> std::io::Result<AccessToken> {
        let mut bytes = [0u8; 32];
        let mut filled = 0;
        while filled < bytes.len() {
            let flags = rustix::rand::GetRandomFlags::empty();
            filled += rustix::rand::getrandom(&mut bytes[filled..], flags)?;
        }
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        Ok(AccessToken(digits.collect()))
    }

    /// The token as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on where the texts differ.
    fn is(&self, text: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let differing = own.iter().zip(text).fold(0, |all, (a, b)| all | (a ^ b));
        own.len() == text.len() && differing == 0
    }
}

/// Hides the secret.
impl fmt::Debug for AccessToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("AccessToken(…)")
    }
}

/// Admits the requests to one port.
#[derive(Debug, Clone)]
pub struct Gate {
    token: AccessToken,
    port: u16,
}

impl Gate {
    /// A gate for the server at this port.
    pub fn new(token: AccessToken, port: u16) -> Gate {
        Gate { token, port }
    }

    /// The cookie to set, if the request brought the token in its URL. An error if the request may
    /// not pass.
    pub fn admit(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Answer<Option<HeaderValue>> {
        self.check_host(headers)?;
        self.check_origin(method, uri, headers)?;
        let params = Params::parse(uri.query().unwrap_or_default())?;
        if params
            .bytes("token")
            .is_some_and(|token| self.token.is(token))
        {
            let cookie = format!(
                "{}={}; Path=/; HttpOnly; SameSite=Strict",
                self.cookie_name(),
                self.token.0
            );
            return Ok(HeaderValue::from_str(&cookie).ok());
        }
        if self.has_bearer(headers) || self.has_cookie(headers) {
            return Ok(None);
        }
        Err(Problem::unauthorized(
            "the token is missing or wrong; open the address that `backstory serve` printed",
        ))
    }

    /// The name has the port, since cookies of one host are shared by all its ports.
    fn cookie_name(&self) -> String {
        format!("backstory-{}", self.port)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let all = headers.get_all(COOKIE).into_iter();
        let mut pairs = all.flat_map(|value| value.as_bytes().split(|&byte| byte == b';'));
        pairs.any(|pair| {
            let rest = pair.trim_ascii().strip_prefix(name.as_bytes());
            let value = rest.and_then(|rest| rest.strip_prefix(b"="));
            value.is_some_and(|value| self.token.is(value))
        })
    }

    fn has_bearer(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let token = value.and_then(|value| value.strip_prefix(b"Bearer "));
        token.is_some_and(|token| self.token.is(token))
    }

    fn is_own_host(&self, host: &str) -> bool {
        let names = ["127.0.0.1", "localhost", "[::1]"];
        let named = |name: &str| host == format!("{name}:{}", self.port);
        names.into_iter().any(named)
    }

    fn check_host(&self, headers: &HeaderMap) -> Answer<()> {
        let mut hosts = headers.get_all(HOST).into_iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        match host {
            Some(host) if self.is_own_host(host) && hosts.next().is_none() => Ok(()),
            _ => Err(Problem::forbidden(format!(
                "this server answers at http://127.0.0.1:{} only, and not under another name",
                self.port
            ))),
        }
    }

    fn check_origin(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Answer<()> {
        let foreign = || Problem::forbidden("the request comes from another site");
        let changes = !matches!(*method, Method::GET | Method::HEAD);
        if changes && !headers.contains_key(HeaderName::from_static(OWN_HEADER)) {
            return Err(Problem::forbidden(
                "a request that changes something needs the header X-Backstory",
            ));
        }
        if let Some(origin) = headers.get(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            let host = origin.strip_prefix("http://").unwrap_or_default();
            if !self.is_own_host(host) {
                return Err(foreign());
            }
        }
        let fetch = |name: &'static str| headers.get(HeaderName::from_static(name));
        let is =
            |name, value: &str| fetch(name).is_some_and(|own| own.as_bytes() == value.as_bytes());
        let from_here = fetch("sec-fetch-site").is_none()
            || is("sec-fetch-site", "same-origin")
            || is("sec-fetch-site", "none");
        // A link in another page may lead to this one: the user follows it, and the other page
        // sees nothing of the answer.
        let follows_link = is("sec-fetch-mode", "navigate")
            && is("sec-fetch-dest", "document")
            && !changes
            && !uri.path().starts_with("/api/");
        match from_here || follows_link {
            true => Ok(()),
            false => Err(foreign()),
        }
    }
}
