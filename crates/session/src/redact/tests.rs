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

/// The whole chunk, redacted again after each of its records, from the place where it was left.
fn scrubbed_in_pieces(chunk: &[u8]) -> (Vec<u8>, ReadingPlaces) {
    let mut secrets = Secrets::default();
    let mut place = ReadingPlaces::default();
    let mut redacted = Vec::new();
    let mut end = abi::Chunk::SIZE;
    while end < chunk.len() {
        end += usize::from(abi::Record::read(&chunk[end..]).unwrap().size);
        let mut grown = chunk[..end].to_vec();
        place = secrets.scrub_from(&mut grown, &place, usize::MAX);
        let news = redacted.len();
        redacted.extend_from_slice(&grown[news..]);
    }
    (redacted, place)
}

#[test]
fn a_chunk_that_grows_is_redacted_as_one_that_is_whole() {
    let chunk = chunk(
        &[
            (&["A=1", "MY_TOKEN=0123456789abcdef"], true),
            (&["ghijkl"], true),
            (&["mnopqr", "Z=9"], false),
            (&["MY_TOKEN=again"], false),
        ],
        true,
    );
    let mut whole = chunk.clone();
    Secrets::default().scrub(&mut whole);
    let (redacted, place) = scrubbed_in_pieces(&chunk);
    assert_eq!(redacted, whole);
    assert_eq!(place.last.offset, chunk.len(), "nothing is read again");
}

#[test]
fn a_record_that_is_not_whole_is_redacted_again() {
    let whole = chunk(
        &[
            (&["A=1"], false),
            (&["MY_TOKEN=0123456789abcdef"], true),
            (&["ghijkl"], false),
        ],
        true,
    );
    let first = usize::from(abi::Record::read(&whole[abi::Chunk::SIZE..]).unwrap().size);
    let second = abi::Chunk::SIZE + first;
    let mut begun = whole.clone();
    let mut record = abi::Record::read(&whole[second..]).unwrap();
    record.state = abi::RESERVED;
    begun[second..second + abi::Record::SIZE].copy_from_slice(&record.to_bytes());
    let mut secrets = Secrets::default();
    let place = ReadingPlaces::default();
    let place = secrets.scrub_from(&mut begun, &place, usize::MAX);
    assert_eq!(place.last.offset, second);
    let mut later = whole.clone();
    let end = secrets.scrub_from(&mut later, &place, usize::MAX);
    assert_eq!(
        strings(&later)[1..],
        [vec!["MY_TOKEN=<redacted>"], vec![""]]
    );
    assert_eq!(end.last.offset, whole.len());
}

/// Appends an `ENV` record of a thread to a chunk. With `true`, its string continues in the next
/// one.
fn add(chunk: &mut Vec<u8>, tid: u32, string: &str, more: bool) {
    let mut builder = backstory_eventlog::record::RecordBuilder::new();
    let caller = CallerIds {
        pid: 7,
        tid,
        ..CallerIds::default()
    };
    builder.start(op::ENV, 1).caller(caller).result(0);
    builder.string(string.as_bytes());
    if more {
        builder.more();
    }
    chunk.extend_from_slice(builder.finish());
    let mut head = abi::Chunk::read(chunk).unwrap();
    head.next = chunk.len() as u64;
    chunk[..abi::Chunk::SIZE].copy_from_slice(&head.to_bytes());
}

#[test]
fn a_secret_that_ends_in_another_chunk_empties_no_string_of_one_that_grows() {
    let mut secrets = Secrets::default();
    let mut grown = chunk(&[], true);
    add(&mut grown, 7, "A=1", false);
    let place = ReadingPlaces::default();
    let place = secrets.scrub_from(&mut grown.clone(), &place, usize::MAX);
    let mut other = chunk(&[], true);
    add(&mut other, 8, "MY_TOKEN=0123456789abcdef", true);
    secrets.scrub(&mut other);
    add(&mut grown, 7, "B=2", false);
    let place = secrets.scrub_from(&mut grown.clone(), &place, usize::MAX);
    let mut other = chunk(&[], true);
    add(&mut other, 8, "ghijkl", false);
    secrets.scrub(&mut other);
    add(&mut grown, 8, "C=3", false);
    secrets.scrub_from(&mut grown, &place, usize::MAX);
    assert_eq!(strings(&grown)[2], ["C=3"]);
}

#[test]
fn a_secret_goes_on_behind_the_first_records_of_the_next_chunk() {
    let mut secrets = Secrets::default();
    let mut before = chunk(&[], true);
    add(&mut before, 8, "MY_TOKEN=0123456789abcdef", true);
    secrets.scrub(&mut before);
    let (mut grown, place) = (chunk(&[], true), ReadingPlaces::default());
    add(&mut grown, 7, "A=1", false);
    let place = secrets.scrub_from(&mut grown.clone(), &place, usize::MAX);
    add(&mut grown, 8, "ghijkl", false);
    secrets.scrub_from(&mut grown, &place, usize::MAX);
    assert_eq!(strings(&grown), [vec!["A=1"], vec![""]]);
}

#[test]
fn a_record_of_a_new_owner_that_changes_before_others_is_read_from_its_beginning() {
    let mut secrets = Secrets::default();
    let mut grown = chunk(&[], true);
    add(&mut grown, 7, "A=1", false);
    let place = secrets.scrub_from(&mut grown.clone(), &ReadingPlaces::default(), usize::MAX);
    add(&mut grown, 8, "B=2", false);
    add(&mut grown, 8, "MY_TOKEN=0123456789abcdef", true);
    let place = secrets.scrub_from(&mut grown.clone(), &place, usize::MAX);
    // The first record has changed, so all are read again.
    secrets.scrub_from(&mut grown, &place, abi::Chunk::SIZE);
    assert_eq!(strings(&grown)[1], ["B=2"]);
}

#[test]
fn a_secret_goes_on_behind_a_piece_that_could_not_be_written() {
    let mut secrets = Secrets::default();
    let mut before = chunk(&[], true);
    add(&mut before, 8, "MY_TOKEN=0123456789abcdef", true);
    secrets.scrub(&mut before);
    let mut grown = chunk(&[], true);
    add(&mut grown, 7, "A=1", false);
    let place = secrets.scrub_from(&mut grown.clone(), &ReadingPlaces::default(), usize::MAX);
    add(&mut grown, 8, "ghijkl", false);
    let unwritten = secrets.scrub_from(&mut grown.clone(), &place, usize::MAX);
    secrets.return_before(&unwritten, &place);
    secrets.scrub_from(&mut grown, &place, usize::MAX);
    assert_eq!(strings(&grown), [vec!["A=1"], vec![""]]);
}

#[test]
fn the_places_of_a_chunk_have_the_owners_of_its_records_alone() {
    let mut secrets = Secrets::default();
    let mut others = chunk(&[], true);
    for tid in 100..200 {
        add(&mut others, tid, "MY_TOKEN=0123456789abcdef", true);
    }
    secrets.scrub(&mut others);
    let mut own = chunk(&[], true);
    add(&mut own, 7, "A=1", false);
    let places = secrets.scrub_from(&mut own, &ReadingPlaces::default(), usize::MAX);
    assert_eq!(
        (places.first.owners.len(), places.last.owners.len()),
        (1, 1)
    );
    // The others still go on.
    assert_eq!(secrets.within.len(), 100);
}

#[test]
fn the_threads_within_a_secret_stay_bounded() {
    // As many as the states of a chunk can leave.
    let mut secrets = Secrets {
        within: (0..=READERS as u32).map(|tid| (1, tid)).collect(),
        ..Secrets::default()
    };
    let mut next = chunk(&[(&["MY_TOKEN=0123456789abcdef"], true)], true);
    secrets.scrub(&mut next);
    assert_eq!(secrets.within.len(), 1);
}
