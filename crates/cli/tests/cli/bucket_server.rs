//! A server of buckets for tests: moto, which checks the signature of each request.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use backstory_testkit::need::{needs, skipped};

use super::{Answer, Place};

/// A server with the bucket `team`. It ends when this value is dropped.
pub struct BucketServer {
    server: Child,
    endpoint: String,
    key: String,
    secret: String,
}

impl BucketServer {
    /// Starts a server. `None`, with a notice, where none is installed.
    pub fn start(what: &str) -> Option<BucketServer> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = root.join("../../.venv/bucket/bin/python");
        if !python.exists() {
            skipped(what, "needs .venv/bucket (scripts/setup test)");
            return None;
        }
        if !needs(what, &["curl"]) {
            return None;
        }
        let mut server = Command::new(python)
            .arg(root.join("tests/bucket/server.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut printed = BufReader::new(server.stdout.take().unwrap());
        printed.read_line(&mut line).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let [port, key, secret] = words[..] else {
            panic!("the server of buckets does not begin: {line:?}");
        };
        Some(BucketServer {
            server,
            endpoint: format!("http://127.0.0.1:{port}"),
            key: key.to_owned(),
            secret: secret.to_owned(),
        })
    }

    /// The variables of a user with the key.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", self.endpoint.clone()),
            ("AWS_ACCESS_KEY_ID", self.key.clone()),
            ("AWS_SECRET_ACCESS_KEY", self.secret.clone()),
        ]
    }

    /// Runs `backstory store ARGS…` as a user with the key.
    pub fn store(&self, place: &Place, args: &[&str]) -> Answer {
        self.store_with(place, args, &[])
    }

    /// The same, with further variables.
    pub fn store_with(&self, place: &Place, args: &[&str], more: &[(&str, String)]) -> Answer {
        let mut command = place.command(&[&["store"], args].concat());
        command.envs(self.variables()).envs(more.iter().cloned());
        Answer::of(command.output().unwrap())
    }

    /// The key of each object, in order.
    pub fn keys(&self) -> Vec<String> {
        let list = self.curl(&["/team?encoding-type=url&list-type=2"]);
        let list = String::from_utf8(list).unwrap();
        let keys = list.split("<Key>").skip(1);
        keys.map(|rest| rest.split_once("</Key>").unwrap().0.replace("%2F", "/"))
            .collect()
    }

    /// Replaces an object.
    pub fn put(&self, key: &str, file: &Path) {
        let file = file.display().to_string();
        self.curl(&[&format!("/team/{key}"), "--upload-file", &file]);
    }

    /// Removes an object.
    pub fn remove(&self, key: &str) {
        self.curl(&[&format!("/team/{key}"), "--request", "DELETE"]);
    }

    fn curl(&self, args: &[&str]) -> Vec<u8> {
        let mut command = Command::new("curl");
        command.args(["-qsSf", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user"]);
        command.arg(format!("{}:{}", self.key, self.secret));
        command.args(["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]);
        command
            .arg(format!("{}{}", self.endpoint, args[0]))
            .args(&args[1..]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        output.stdout
    }
}

impl Drop for BucketServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
