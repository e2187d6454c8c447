//! Tests of redaction in environments and chunks.

use super::*;

fn one(entry: &str, more: &[&str]) -> String {
    let more: Vec<String> = more.iter().map(|&m| m.into()).collect();
    String::from_utf8(Secrets::new(&more).redact(entry.as_bytes())).unwrap()
}

#[test]
fn the_values_of_secrets_are_replaced() {
    for name in [
        "GITHUB_TOKEN",
        "my_secret_x",
        "PGPASSWORD",
        "API_KEY",
        "AWS_REGION",
        "npm_config_credentials",
    ] {
        assert_eq!(
            one(&format!("{name}=a long=value"), &[]),
            format!("{name}=<redacted>")
        );
        assert_eq!(one(&format!("{name}=v=w"), &[]), format!("{name}=***"));
    }
}

#[test]
fn other_variables_are_kept_as_they_are() {
    for entry in [
        "PATH=/bin",
        "KEYBOARD=de",
        "MONKEY=1",
        "no equals sign",
        "=odd",
    ] {
        assert_eq!(one(entry, &[]), entry);
    }
}

#[test]
fn the_user_can_name_more() {
    assert_eq!(
        one("MY_DSN=user:pass@host", &["MY_?SN"]),
        "MY_DSN=<redacted>"
    );
    assert_eq!(one("MY_DSN=u:p@h", &["OTHER*"]), "MY_DSN=u:p@h");
}

#[test]
fn patterns_match_as_in_a_shell_and_in_no_time() {
    let cases: [(&str, &str, bool); 8] = [
        ("*", "", true),
        ("*_KEY", "A_KEY", true),
        ("*_KEY", "A_KEYS", false),
        ("A*B*C", "AxBxBxC", true),
        ("A*B*C", "AxBxB", false),
        ("?", "", false),
        ("**?", "x", true),
        ("", "x", false),
    ];
    for (pattern, text, wanted) in cases {
        assert_eq!(
            matches(pattern.as_bytes(), text.as_bytes()),
            wanted,
            "{pattern} {text}"
        );
    }
    // Trying every `*` at every position would take longer than the age of the universe.
    assert!(!matches(
        &[b"*a".repeat(30), b"b".to_vec()].concat(),
        &b"a".repeat(60_000)
    ));
}

#[test]
fn a_record_that_a_program_wrote_without_its_last_nul_is_no_reason_to_die() {
    let mut chunk = chunk(&[(&["MY_TOKEN=short"], false)], false);
    let end = chunk.len();
    let start = end - 16;
    chunk[start..].fill(b'=');
    Secrets::default().scrub(&mut chunk);
    assert_eq!(strings(&chunk).len(), 1);
    let secret = b"MY_TOKEN=";
    chunk[start..start + secret.len()].copy_from_slice(secret);
    chunk[start + secret.len()..].fill(b'x');
    Secrets::default().scrub(&mut chunk);
    assert!(!chunk.ends_with(b"xxx"), "the value is gone");
}

/// A chunk of `ENV` records with these strings. With `true`, the last string continues in the next
/// record.
fn chunk(records: &[(&[&str], bool)], told: bool) -> Vec<u8> {
    let head = abi::Chunk {
        magic: abi::CHUNK_MAGIC,
        pid: 7,
        tid: 7,
        ..abi::Chunk::default()
    };
    let mut chunk = backstory_eventlog::chunk::ChunkBuilder::new(head);
    let mut builder = backstory_eventlog::record::RecordBuilder::new();
    for (strings, more) in records {
        let bytes: usize = strings.iter().map(|s| s.len() + 1).sum();
        builder
            .start(op::ENV, 1)
            .aux(if told { bytes as u32 } else { 0 })
            .result(0);
        for string in *strings {
            builder.string(string.as_bytes());
        }
        if *more {
            builder.more();
        }
        assert!(chunk.push(builder.finish()));
    }
    chunk.bytes().to_vec()
}

#[test]
fn a_torn_record_holds_no_secret() {
    let whole = chunk(
        &[
            (&["A=1", "MY_TOKEN=0123456789abcdef"], false),
            (&["B=2"], false),
        ],
        true,
    );
    let size = abi::Record::read(&whole[abi::Chunk::SIZE..]).unwrap().size;
    // The record was torn before its state, its operation or its size was written.
    for (torn, kept) in [(0..2, 1), (0..4, 1), (0..8, 1)] {
        let mut bytes = whole.clone();
        bytes[abi::Chunk::SIZE..][torn.clone()].fill(0);
        if torn.end < 8 {
            bytes[abi::Chunk::SIZE + 4..][..2].copy_from_slice(&size.to_le_bytes());
        }
        Secrets::default().scrub(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("0123456789"), "{torn:?}: {text:?}");
        assert_eq!(strings(&bytes).len(), kept, "{torn:?}");
    }
}

fn strings(chunk: &[u8]) -> Vec<Vec<String>> {
    let (_, view) = ChunkView::new(chunk).unwrap();
    let (mut at, mut all) = (abi::Chunk::SIZE, Vec::new());
    while let Some((found, record)) = view.next(at, &mut SkippedRecords::default()) {
        let raw = RawRecord::parse(view.from(found)).unwrap();
        all.push(
            raw.list()
                .map(|s| String::from_utf8(s.to_vec()).unwrap())
                .collect(),
        );
        at = found + usize::from(record.size);
    }
    all
}

#[test]
fn secrets_in_a_chunk_are_replaced_in_their_place() {
    for told in [true, false] {
        let mut bytes = chunk(
            &[
                (&["A=1", "MY_TOKEN=0123456789abcdef", "B=", "C=3"], false),
                (&["D=4"], false),
            ],
            told,
        );
        Secrets::default().scrub(&mut bytes);
        let wanted = vec![vec!["A=1", "MY_TOKEN=<redacted>", "B=", "C=3"], vec!["D=4"]];
        assert_eq!(strings(&bytes), wanted, "told {told}");
    }
}

#[test]
fn a_secret_that_goes_on_in_the_next_records_is_replaced_in_all() {
    let mut secrets = Secrets::default();
    let mut first = chunk(
        &[
            (&["A=1", "MY_TOKEN=0123456789abcdef"], true),
            (&["ghijkl"], true),
        ],
        true,
    );
    let mut second = chunk(&[(&["mnopqr", "Z=9"], false)], true);
    secrets.scrub(&mut first);
    secrets.scrub(&mut second);
    assert_eq!(
        strings(&first),
        [vec!["A=1", "MY_TOKEN=<redacted>"], vec![""]]
    );
    assert_eq!(strings(&second), [vec!["", "Z=9"]]);
}
