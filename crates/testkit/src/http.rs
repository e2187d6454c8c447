//! A client of HTTP/1.1 that sends what a test tells it to, wrong headers included.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// An answer.
#[derive(Debug)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// A header. Empty if it is absent.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map_or("", |(_, value)| value)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    ///
    /// If it is no JSON, with the text.
    pub fn json(&self) -> serde_json::Value {
        let read = serde_json::from_slice(&self.body);
        read.unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text()))
    }
}

/// Sends one request to a port of this machine, and reads the answer. A header `Host` is added
/// unless `headers` has one.
///
/// # Errors
///
/// If the connection fails, or the answer is not HTTP.
pub fn request(
    port: u16,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> io::Result<HttpAnswer> {
    let mut reader = open(port, method, target, headers)?;
    let (status, headers) = head(&mut reader)?;
    let is = |name: &str, value: &str| headers.iter().any(|(own, v)| own == name && v == value);
    let mut body = Vec::new();
    if is("transfer-encoding", "chunked") {
        while let Some(piece) = chunk(&mut reader)? {
            body.extend(piece);
        }
    } else {
        reader.read_to_end(&mut body)?;
    }
    Ok(HttpAnswer {
        status,
        headers,
        body,
    })
}

/// Sends a request whose answer does not end, and reads its lines until `enough` is true for one.
///
/// # Errors
///
/// As [`request`], or if no such line comes within two minutes.
pub fn lines_until(
    port: u16,
    target: &str,
    headers: &[(&str, &str)],
    enough: impl Fn(&str) -> bool,
) -> io::Result<Vec<String>> {
    let mut reader = open(port, "GET", target, headers)?;
    head(&mut reader)?;
    let (mut found, mut open) = (Vec::new(), String::new());
    while let Some(piece) = chunk(&mut reader)? {
        open.push_str(&String::from_utf8_lossy(&piece));
        while let Some((line, rest)) = open.split_once('\n') {
            found.push(line.to_owned());
            if enough(line) {
                return Ok(found);
            }
            open = rest.to_owned();
        }
    }
    Err(io::Error::other(format!("the answer ended: {found:?}")))
}

fn open(
    port: u16,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    let mut text = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        text.push_str(&format!("Host: 127.0.0.1:{port}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    stream.write_all(text.as_bytes())?;
    Ok(BufReader::new(stream))
}

fn head(reader: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let wrong = || io::Error::other("the answer is no HTTP");
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(wrong)?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            return Ok((status, headers));
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

/// The next piece of a chunked body. `None` at its end.
fn chunk(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let size = usize::from_str_radix(line.trim(), 16)
        .map_err(|_| io::Error::other(format!("'{line}' is no size of a piece")))?;
    let mut piece = vec![0; size + 2];
    reader.read_exact(&mut piece)?;
    piece.truncate(size);
    Ok((size > 0).then_some(piece))
}
