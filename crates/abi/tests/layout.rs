//! Tests that the Rust mirror and the C header agree in every size, offset, constant and operation.

use backstory_abi::*;
use backstory_files::Ident;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

type Facts = BTreeMap<String, String>;

/// The header's facts, printed by a compiled C program.
fn header() -> &'static Facts {
    static SAID: std::sync::OnceLock<Facts> = std::sync::OnceLock::new();
    SAID.get_or_init(compiled)
}

fn compiled() -> Facts {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("layout-{}", std::process::id()));
    let built = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here.join("include"))
        .arg(here.join("tests/layout.c"))
        .arg("-o")
        .arg(&program)
        .status()
        .expect("cc runs");
    assert!(built.success(), "layout.c compiles");
    let output = Command::new(&program).output().expect("layout runs");
    std::fs::remove_file(&program).expect("layout is removed");
    let text = String::from_utf8(output.stdout).expect("ASCII");
    text.lines()
        .filter_map(|l| l.split_once(' '))
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .collect()
}

macro_rules! constants {
    ($facts:ident: $($name:ident)*) => {
        $($facts.insert(concat!("BS_", stringify!($name)).to_owned(), $name.to_string());)*
    };
}

fn width<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

macro_rules! structure {
    ($facts:ident: $c:literal $type:ident $($field:ident)*) => {
        $facts.insert($c.to_owned(), size_of::<$type>().to_string());
        $($facts.insert(
            concat!($c, ".", stringify!($field)).to_owned(),
            format!("{}+{}", std::mem::offset_of!($type, $field), width(|s: &$type| &s.$field)),
        );)*
    };
}

/// The Rust mirror's facts.
fn mirror() -> Facts {
    let mut facts = Facts::new();
    constants!(facts: ABI_VERSION ARENA_MAGIC CHUNK_MAGIC ENV_ARENA ENV_PRELOAD PRELOAD_NAME PRELOAD_ANY PRELOAD_WIDE HOME CHUNK_SIZE MAX_CHUNKS
        BITMAP_WORDS ARENA_HEADER ARENA_LOG ARENA_READS READS_BITS READS_CHANGED READS_SHARED MAGIC_WHICH MAGIC_ANNOUNCE MAGIC_ARENA MAGIC_DRAIN MAGIC_PRESERVE MAGIC_COMMIT MAGIC_FUNCTIONS FUNCTIONS_MAGIC CALLS_CALL CALLS_RETURN CALLS_TIME FUNCTION_INTERPRETED VALUE_UNKNOWN VALUE_SIGNED VALUE_UNSIGNED VALUE_FLOAT VALUE_TEXT VALUE_POINTER VALUE_STRUCTURE MAGIC_LINE LINE_MARK MAGIC_BROKER CLIENT_NAME NODE_HOOKS R_HOOKS ENV_FUNCTIONS ENV_PROGRAM BROKER_HELLO BROKER_DESCRIPTORS BROKER_READY BROKER_SIGNAL BROKER_WANTED BROKER_STARTED BROKER_FAILED BROKER_STOPPED BROKER_ENDED BROKER_REPORTED BROKER_REPORT ARENA_ORDERED CHANGE_WRITE CHANGE_PART CHANGE_UPDATE
        CHANGE_REMOVE CHANGE_NAME CHANGE_KIND CHANGE_ITSELF ARENA_KEEP KEPT_LINK KEPT_CLONE KEPT_COPY KEPT_OWN_LINK ARENA_GUARDED ARENA_PIDNS
        ARENA_STRICT ARENA_ALL_OPS ARENA_CLOSED ARENA_FULL ARENA_SHALLOW ARENA_BROKER CHUNK_DEEP RESERVED DONE F_CALLER F_IDENT F_CUT F_MORE F_PREDICTED F_RESOLVED F_CHILD TID_SUBSTITUTE F_PRIVATE
        META_MODE META_OWNER META_TIMES META_ATTR SPAWN_VFORK SPAWN_POSIX SPAWN_SYSTEM SPAWN_POPEN SPAWN_CLONE
        RESOURCE_READ RESOURCE_WRITE RESOURCE_CHANGE RESOURCE_DELETE
        DESCRIBED_ACTIVITY DESCRIBED_WORD DESCRIBED_ENTITY DESCRIBED_EDGE DESCRIBED_INFORM DESCRIBED_DERIVED DESCRIBED_NOTE DESCRIBED_RANK
        DESCRIBED_CERTAIN DESCRIBED_LAST DESCRIBED_PART DESCRIBED_ENDED DESCRIBED_EXECED THREAD_CREATE THREAD_START THREAD_JOIN LOST_NO_CHUNK LOST_SANDBOX LOST_TOO_LONG
        HOLD_UNKNOWN OPAQUE_TRACER_MEMORY OPAQUE_TRACER_REGISTERS OPAQUE_TRACER_EMULATION
        OPAQUE_ACCT OPAQUE_SWAPON OPAQUE_QUEUE OPAQUE_HANDLE OPAQUE_MEMORY OPAQUE_DESCRIPTOR OPAQUE_FANOTIFY OPAQUE_RING OPAQUE_FILTERED OPAQUE_UNGUARDED OPAQUE_OUTSIDE);
    constants!(facts: EXEC_ANNOUNCED ARENA_AUTO ARENA_EXACT SOCKET_SUFFIX KEEPER_SUFFIX VERDICT_PROGRAM VERDICT_LIBRARY VERDICT_LOADED VERDICT_ALONE NO_PATH LOAD_ANNOUNCED VERDICT_NOT VERDICT_KIND VERDICT_CONNECTS VERDICT_LOADS VERDICTS_MAGIC VERDICTS VERDICT_TRIES LOADER_CACHE LOADER_DESCRIPTOR LIBRARY_SETS LIBRARY_NAMES STARTS START_TAKEN START_FILLED FILTER_BYTES
        MAGIC_FILTERED MAGIC_SIMULATOR MAGIC_INSTRUCTIONS RECORDS_IN_SIMULATOR READABLE_IN_SIMULATOR RETURNS_IN_SIMULATOR RETURN_STUBS RETURN_DISTANCE GUARD_PROGRAM GUARD_LIBRARY GUARD_FILTER GUARD_LISTENER GUARD_PRESERVE GUARD_LOAD);
    for (name, value) in [
        ("MORE", u64::from(deep::MORE)),
        ("CUT", deep::CUT.into()),
        ("HANDLER", deep::HANDLER.into()),
        ("ENTERED", deep::ENTERED.into()),
        ("LEFT", deep::LEFT.into()),
        ("LEFT_DIGEST", deep::LEFT_DIGEST.into()),
        ("FILE", deep::FILE.into()),
        ("PATH", deep::PATH.into()),
        ("ADDRESS", deep::ADDRESS.into()),
        ("CONTROL", deep::CONTROL.into()),
        ("MESSAGE", deep::MESSAGE.into()),
        ("IDENT", deep::IDENT.into()),
        ("WORDS", deep::WORDS.into()),
        ("NO_NAME", deep::NO_NAME.into()),
        ("BEGIN", deep::BEGIN.into()),
        ("DESCRIPTOR", deep::DESCRIPTOR.into()),
        ("SIGNAL", deep::SIGNAL.into()),
        ("SIGNAL_END", deep::SIGNAL_END.into()),
        ("GAP", deep::GAP.into()),
        ("SHALLOW", deep::SHALLOW.into()),
        ("CLOCK", deep::CLOCK.into()),
        ("PROCESSOR", deep::PROCESSOR.into()),
        ("UNTIMED", deep::UNTIMED.into()),
        ("COUNTER", deep::COUNTER.into()),
        ("CPUID", deep::CPUID.into()),
        ("UNCOUNTED", deep::UNCOUNTED.into()),
        ("RDTSC", deep::RDTSC),
        ("RDTSCP", deep::RDTSCP),
        ("CPUID_INSTRUCTION", deep::CPUID_INSTRUCTION),
        ("SINCE", deep::SINCE),
        ("WHOLE", deep::WHOLE),
        ("ASIDE", deep::ASIDE),
        ("BY_EXEC", deep::BY_EXEC),
        ("BY_FORK", deep::BY_FORK),
        ("BY_THREAD", deep::BY_THREAD),
    ] {
        facts.insert(format!("BS_DEEP_{name}"), value.to_string());
    }
    structure!(facts: "bs_deep_record" DeepRecord state flags call size time took fd result a b);
    structure!(facts: "bs_deep_section" DeepSection kind arg length);
    structure!(facts: "bs_arena" Arena magic version flags chunks wanted lost started epochs dry env_seen free full deep_lost kept kept_path reported filtered pad2);
    structure!(facts: "bs_chunk" Chunk magic index pid tid epoch taken ppid seq next host_pid flags pad);
    structure!(facts: "bs_record" Record state op size flags time fd arg result aux);
    structure!(facts: "bs_caller" CallerIds pid tid nr arch);
    structure!(facts: "bs_ident" Ident dev ino size mtime ctime birth mode nlink);
    structure!(facts: "bs_verdict" Verdict dev ino size mtime ctime verdict);
    structure!(facts: "bs_verdicts" Verdicts magic pad cache entry);
    structure!(facts: "bs_library_set" LibrarySet used names);
    structure!(facts: "bs_start" Start state epoch time ppid set);
    structure!(facts: "bs_filter_code" FilterCode size code);
    structure!(facts: "bs_programs" Programs verdicts filter sets starts);
    structure!(facts: "bs_guard_request" GuardRequest kind result recorded change tid dir dev ino);
    structure!(facts: "bs_broker_message" BrokerMessage kind value word);
    structure!(facts: "bs_function_table" FunctionTable magic bytes low size bits sleds count sled_count first signature_count signatures values places names targets libraries target_count pad);
    structure!(facts: "bs_target" Target address number is_chosen);
    structure!(facts: "bs_signature" Signature number count result first);
    structure!(facts: "bs_value" Value kind size count places offset name first place);
    structure!(facts: "bs_place" Place from to base memory offset);
    structure!(facts: "bs_sled" Sled address number kind);
    for i in 0..4 {
        let [first, second] = reads_bits(0xfe00 + i, 0x123_4567_89ab * u64::from(i) + u64::from(i));
        facts.insert(format!("filter{i}"), format!("{first}/{second}"));
    }
    for op in OPS {
        facts.insert(
            format!("BS_OP_{}", op.name),
            format!("{}/{}", op.number, op.strings),
        );
    }
    facts
}

#[test]
fn the_mirror_says_what_the_header_says() {
    assert_eq!(mirror(), *header());
}

#[test]
fn nothing_in_the_header_is_left_out_of_the_comparison() {
    let text = include_str!("../include/backstory_abi.h");
    let facts = mirror();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    // These macros make the operations. Every other name of the header is compared.
    let macros = [
        "BS_OPS",
        "BS_OP_",
        "BS_OP_ENUM",
        "BS_READS_HASH",
        "BS_READS_FIRST",
        "BS_READS_SECOND",
    ];
    let comments = [
        "BS_ARENA_",
        "BS_BROKER_",
        "BS_F_",
        "BS_META_",
        "BS_SPAWN_",
        "BS_THREAD_",
        "BS_LOST_",
        "BS_CHANGE_",
        "BS_KEPT_",
        "BS_RESOURCE_",
        "BS_DESCRIBED_",
        "BS_READS_",
        "BS_GUARD_",
        "BS_VERDICT_",
        "BS_START_",
    ];
    for word in words.filter(|w| w.starts_with("BS_")) {
        assert!(
            facts.contains_key(word) || macros.contains(&word) || comments.contains(&word),
            "{word} is in the header, not in the comparison"
        );
    }
    let fields = text
        .lines()
        .filter(|l| l.trim_start().starts_with("uint") || l.trim_start().starts_with("int"));
    let names: Vec<&str> = fields
        .flat_map(|l| l.split(';').next().unwrap_or("").split([' ', ',']))
        .map(|w| w.split('[').next().unwrap_or(""))
        .filter(|w| !w.is_empty() && !w.contains("int"))
        .collect();
    assert!(names.len() > 40, "the fields are found");
    for name in names {
        assert!(
            facts.keys().any(|k| k.ends_with(&format!(".{name}"))),
            "field {name} is not compared"
        );
    }
}

#[test]
fn an_operation_is_found_by_its_number() {
    for op in OPS {
        assert_eq!(op_info(op.number), Some(op));
    }
    assert_eq!(op_info(0), None);
    assert_eq!(op_info(u16::MAX), None);
}

#[test]
fn structures_survive_their_bytes_and_short_input_is_refused() {
    let chunk = Chunk {
        magic: 1,
        index: 2,
        pid: 3,
        tid: 4,
        epoch: 5,
        taken: 6,
        ppid: 7,
        seq: 8,
        next: 9,
        host_pid: 10,
        flags: 11,
        pad: 12,
    };
    let record = Record {
        state: 1,
        op: 2,
        size: 3,
        flags: 4,
        time: 5,
        fd: -6,
        arg: 7,
        result: -8,
        aux: 9,
    };
    let caller = CallerIds {
        pid: 1,
        tid: 2,
        nr: 3,
        arch: 4,
    };
    let ident = Ident {
        dev: 1,
        ino: 2,
        size: 3,
        mtime: -4,
        ctime: 5,
        birth: 6,
        mode: 7,
        nlink: 8,
    };
    assert_eq!(Chunk::read(&chunk.to_bytes()), Some(chunk));
    assert_eq!(Record::read(&record.to_bytes()), Some(record));
    assert_eq!(CallerIds::read(&caller.to_bytes()), Some(caller));
    assert_eq!(Ident::read(&ident.to_bytes()), Some(ident));
    assert_eq!(Chunk::read(&chunk.to_bytes()[1..]), None);
    assert_eq!(Record::read(&record.to_bytes()[1..]), None);
    assert_eq!(CallerIds::read(&caller.to_bytes()[1..]), None);
    assert_eq!(Ident::read(&ident.to_bytes()[1..]), None);
}

/// A reader refuses records with a flag that it does not know.
#[test]
fn all_record_flags_are_counted_among_all() {
    let flags = header()
        .iter()
        .filter(|(name, _)| name.starts_with("BS_F_"));
    let all = flags.fold(0, |all, (_, value)| all | value.parse::<u16>().unwrap());
    assert_eq!(all, F_ALL);
}
