//! Random bytes on both ends of the protocol: no panic, no memory without bound, and no file
//! outside of the store.

// A test stops at a failed expectation.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::path::Path;

use backstory_contents::transfer::{Kind, Writer};
use backstory_exchange::{Connection, StorePeer, Transfer, Upkeep, serve};
use backstory_store::{Home, SqliteStore, Store};
use proptest::prelude::*;

struct NoUpkeep;

impl Upkeep for NoUpkeep {
    fn select(
        &mut self,
        _: &Home,
        _: &dyn Store,
        options: &[String],
    ) -> Result<HashSet<String>, String> {
        Err(format!("{} options", options.len()))
    }

    fn index(&mut self, _: &Home, _: &mut dyn Store) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
}

fn peer(dir: &Path) -> StorePeer<'static> {
    let home = Home::open(&dir.join("store")).unwrap();
    let store = SqliteStore::open(&home).unwrap();
    let peer = StorePeer::new(home, Box::new(store), NoUpkeep);
    peer.receiving(None).unwrap()
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes.push(kind);
    bytes.extend(payload);
    bytes
}

fn greeting() -> Vec<u8> {
    let mut bytes = b"bsstores".to_vec();
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend([0; 4]);
    bytes
}

/// Names that a hostile side may use.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("../../outside".to_owned()),
        Just("/tmp/outside".to_owned()),
        Just("aaaa0000".to_owned()),
        Just("aaaa000/".to_owned()),
        Just("0".repeat(64)),
        ".{0,80}",
    ]
}

/// An archive in frames, with sections of any kind and name, perhaps damaged.
fn archive() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![
        Just(Kind::Log),
        Just(Kind::Facts),
        Just(Kind::Content),
        Just(Kind::Label),
        Just(Kind::Annotations),
        Just(Kind::Signatures),
    ];
    let body = proptest::collection::vec(any::<u8>(), 0..400);
    let sections = proptest::collection::vec((kind, name(), body), 0..5);
    (sections, proptest::option::of(any::<(u16, u8)>())).prop_map(|(sections, damage)| {
        let mut writer = Writer::new(Vec::new()).unwrap();
        for (kind, name, body) in sections {
            let size = body.len() as u64;
            writer
                .section(kind, &name, size, &mut body.as_slice())
                .unwrap();
        }
        let mut bytes = writer.finish().unwrap();
        if let Some((at, change)) = damage {
            let at = usize::from(at) % bytes.len();
            bytes[at] ^= change;
        }
        [frame(2, &bytes), frame(3, b"")].concat()
    })
}

/// Bytes of a hostile user: requests, replies, archives, noise.
fn sent() -> impl Strategy<Value = Vec<u8>> {
    let asked = prop_oneof![
        Just("runs"),
        Just("contents_of"),
        Just("lacking"),
        Just("read_run"),
        Just("read_contents"),
        Just("read_annotations"),
        Just("finish"),
        Just("hello"),
    ];
    let request = (asked, name()).prop_map(|(asked, name)| {
        let text = serde_json::json!({
            "request": asked, "run": name, "after": name, "digests": [name], "runs": [name],
            "program": name, "select": [name],
        });
        frame(1, text.to_string().as_bytes())
    });
    let accept =
        archive().prop_map(|archive| [frame(1, br#"{"request": "accept"}"#), archive].concat());
    let noise = (any::<u8>(), proptest::collection::vec(any::<u8>(), 0..200))
        .prop_map(|(kind, bytes)| frame(kind % 6, &bytes));
    let raw = proptest::collection::vec(any::<u8>(), 0..300);
    let part = prop_oneof![3 => request, 3 => accept, 1 => noise, 1 => raw];
    proptest::collection::vec(part, 0..6).prop_map(|parts| [greeting(), parts.concat()].concat())
}

/// Replies of a hostile store.
fn replied() -> impl Strategy<Value = Vec<u8>> {
    let run = prop_oneof![Just("aaaa0000".to_owned()), name()];
    let runs = (run, name()).prop_map(|(run, digest)| {
        let entry = serde_json::json!({"run": run, "digest": digest, "bytes": u64::MAX});
        frame(
            1,
            serde_json::json!({"reply": "runs", "runs": [entry]})
                .to_string()
                .as_bytes(),
        )
    });
    let contents = name().prop_map(|digest| {
        let reply = serde_json::json!({"reply": "contents", "contents": [[digest, u64::MAX]]});
        frame(1, reply.to_string().as_bytes())
    });
    let fixed = prop_oneof![
        Just(r#"{"reply": "hello", "program": "1"}"#),
        Just(r#"{"reply": "runs", "runs": []}"#),
        Just(r#"{"reply": "contents", "contents": []}"#),
        Just(r#"{"reply": "lacking", "digests": []}"#),
        Just(r#"{"reply": "failed", "message": "no"}"#),
    ];
    let fixed = fixed.prop_map(|text| frame(1, text.as_bytes()));
    let sent =
        archive().prop_map(|archive| [frame(1, br#"{"reply": "archive"}"#), archive].concat());
    let raw = proptest::collection::vec(any::<u8>(), 0..200);
    let part = prop_oneof![2 => runs, 2 => contents, 4 => fixed, 3 => sent, 1 => raw];
    let hello = frame(1, br#"{"reply": "hello", "program": "1"}"#);
    proptest::collection::vec(part, 0..8)
        .prop_map(move |parts| [greeting(), hello.clone(), parts.concat()].concat())
}

/// Asserts that nothing is beside the store, and that the store has only files of its own.
fn is_contained(dir: &Path) {
    let beside: Vec<_> = std::fs::read_dir(dir).unwrap().flatten().collect();
    assert_eq!(beside.len(), 1, "{beside:?}");
    let runs = std::fs::read_dir(dir.join("store/runs")).unwrap();
    let runs: Vec<_> = runs.flatten().map(|entry| entry.file_name()).collect();
    assert!(runs.is_empty(), "{runs:?} came into the store");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn whatever_a_user_sends_the_service_ends_and_writes_nothing_outside(bytes in sent()) {
        let tmp = tempfile::tempdir().unwrap();
        let mut replies = Vec::new();
        let mut peer = peer(tmp.path());
        let _ = serve(&mut peer, "1", &mut bytes.as_slice(), &mut replies);
        prop_assert!(replies.starts_with(b"bsstores"));
        is_contained(tmp.path());
    }

    #[test]
    fn whatever_a_store_replies_the_exchange_ends_and_writes_nothing_outside(
        bytes in replied(),
        pulls in any::<bool>(),
    ) {
        use backstory_exchange::Direction::{Pull, Push};
        let tmp = tempfile::tempdir().unwrap();
        let mut local = peer(tmp.path());
        let remote = Connection::begin(bytes.as_slice(), Vec::new(), "1", &[]);
        if let Ok(mut remote) = remote {
            let mut transfer = Transfer {
                local: &mut local,
                remote: &mut remote,
                direction: if pulls { Pull } else { Push },
                meter: backstory_contents::WorkMeter::default(),
            };
            if let Ok(done) = transfer.run(&mut |_, _| {}) {
                prop_assert_eq!(done.runs, Vec::<String>::new());
            }
        }
        is_contained(tmp.path());
    }
}
