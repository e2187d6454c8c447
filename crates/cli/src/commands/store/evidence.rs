//! `store seal`, and `store verify --evidence`.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use backstory_evidence::bundle;
use backstory_evidence::examine::{Examined, Weight, examine};
use backstory_evidence::proof::{self, DocumentVerdict, Proof, UnsealedDigests};
use backstory_evidence::{Chain, Examination, Finding, Signing, Trust};
use backstory_exchange::AllowedSigners;
use backstory_store::{Home, RunRecord, Store};

use super::super::{Outcome, answer};
use super::reclaim;
use super::sealing::seal_runs;
use crate::args::store::{StoreSealArgs, StoreVerifyArgs};
use crate::contents_writer;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain, complain, one_line};
use crate::evidence_policy::EvidencePolicy;
use crate::index::Busy;
use crate::json::Value;
use crate::text::progress::{Progress, Unit};
use crate::text::when;
use crate::text::words::counted;

/// Seals runs.
pub fn seal(args: StoreSealArgs, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    contents_writer::bring_up_to_date(&current.home, &mut current.store, Busy::Wait)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    let policy = EvidencePolicy::load();
    policy.warnings.iter().for_each(|line| complain(line));
    let signing = Signing {
        key: args.key.or(policy.signing.key),
        tsa: args.tsa.or(policy.signing.tsa),
    };
    let runs = wanted(&current, &args.runs)?;
    let (made, head) = seal_runs(&current.home, &*current.store, &runs, &signing, args.again)?;
    let already = runs.len() - made.len();
    let unsigned = match &signing.key {
        Some(_) => unsigned_among(&current.home, &runs)?,
        None => 0,
    };
    answer(|out| {
        if args.json {
            let seals = made.iter().map(|(run, head)| {
                Value::Object(vec![
                    ("run", run.as_str().into()),
                    ("seal", head.number.into()),
                    ("digest", Some(head.digest).into()),
                ])
            });
            let fields = vec![
                ("sealed", Value::Array(seals.collect())),
                ("already_sealed", already.into()),
                ("head", head.to_string().as_str().into()),
            ];
            return json_line(fields, out);
        }
        let by = match &signing.key {
            Some(key) => format!("signed with {}", key.display()),
            None => "not signed".to_owned(),
        };
        let runs = counted(made.len(), "run", "runs");
        let rest = match already {
            0 => String::new(),
            many => format!("; {many} already sealed"),
        };
        writeln!(out, "sealed {runs}, {by}{rest}")?;
        if let Some(key) = signing.key.as_deref().filter(|_| unsigned > 0) {
            let have = counted(unsigned, "run has", "runs have");
            writeln!(
                out,
                "{have} a seal without a signature: `backstory store seal --all --again --key {}` \
                 signs all runs",
                key.display()
            )?;
        }
        writeln!(out, "the chain ends with {head}")
    })
}

/// How many of these runs have a last seal without a signature.
fn unsigned_among(home: &Home, runs: &[RunRecord]) -> Result<usize, Failure> {
    let unsigned = Chain::of(home).unsigned_runs()?;
    let ids = runs.iter().map(|run| &run.header.id);
    Ok(ids.filter(|id| unsigned.contains(*id)).count())
}

/// The runs to seal, the oldest first.
fn wanted(current: &CurrentStore, names: &[String]) -> Result<Vec<RunRecord>, Failure> {
    let mut runs = reclaim::own_runs(current)?;
    if !names.is_empty() {
        let ids: Result<HashSet<String>, Failure> =
            names.iter().map(|name| current.run(Some(name))).collect();
        let ids = ids?;
        runs.retain(|run| ids.contains(&run.header.id));
    }
    runs.reverse();
    Ok(runs)
}

/// Compares a store with its seals, or verifies the seals in a document.
pub fn verify(args: StoreVerifyArgs, chosen: Option<&Path>) -> Outcome {
    let signers = args.signers.as_deref().map(AllowedSigners::open);
    let trust = Trust {
        signers: signers
            .transpose()
            .map_err(|error| Failure::not_found(chain(&error)))?,
        authorities: args.tsa_certificates,
        expected: args.expect,
    };
    match args.evidence.flatten() {
        Some(file) => verify_document(&file, &trust, args.sigstore_key.as_deref(), args.json),
        None if args.sigstore_key.is_some() => Err(Failure::misuse(
            "--sigstore-key is about a bundle: name its file with --evidence FILE",
        )),
        None => verify_store(chosen, &trust, args.json),
    }
}

fn verify_store(chosen: Option<&Path>, trust: &Trust, as_json: bool) -> Outcome {
    let home = Home::open_to_read(&Home::directory(chosen)?)?;
    let found = examined_at_rest(&home, &mut || examine_store(&home, trust))?;
    answer(|out| match as_json {
        true => json_line(fields(&found), out),
        false => text(&found, out),
    })?;
    Ok(u8::from(!found.is_sound()))
}

/// Times that a comparison with faults is repeated if the journals grew in the meantime.
const REPEATED: u32 = 3;

/// Examines a store. Other processes may learn more about files while this one compares them: then
/// it examines the store again.
pub fn examined_at_rest(
    home: &Home,
    examine: &mut dyn FnMut() -> Result<Examination, Failure>,
) -> Result<Examination, Failure> {
    // The journals grow while other runs are recorded.
    let sizes = || {
        [home.facts_path(), home.annotations_path()]
            .map(|path| Some(std::fs::metadata(path).ok()?.len()))
    };
    for _ in 0..REPEATED {
        let before = sizes();
        let found = examine()?;
        if found.is_sound() || before == sizes() {
            return Ok(found);
        }
    }
    examine()
}

/// Opens a store and compares it with its seals.
fn examine_store(home: &Home, trust: &Trust) -> Result<Examination, Failure> {
    let opened = CurrentStore::open(Some(home.dir()));
    let database = match &opened {
        Ok(current) => Ok(&*current.store as &dyn Store),
        Err(failure) => Err(failure.line.clone()),
    };
    let chain = Chain::of(home);
    let progress = Progress::of(
        "comparing runs with their seals",
        chain.paths()?.len() as u64,
        Unit::Things,
    );
    let examined = Examined {
        home,
        store: database,
    };
    let found = examine(&examined, trust, &mut || progress.done.add(1))?;
    progress.end();
    Ok(found)
}

fn fields(found: &Examination) -> Vec<(&'static str, Value)> {
    let findings = found.findings.iter().map(|finding| {
        Value::Object(vec![
            ("weight", word(finding.weight).into()),
            ("run", finding.run.as_deref().into()),
            ("seal", finding.seal.into()),
            ("part", finding.part.as_str().into()),
            ("what", one_line(&finding.what).as_str().into()),
            ("at", finding.at.map(Value::Time).into()),
        ])
    });
    let list = |runs: &[String]| Value::Array(runs.iter().map(|run| run.as_str().into()).collect());
    vec![
        ("sound", found.is_sound().into()),
        ("seals", found.seals.into()),
        (
            "head",
            found.head.map(|head| head.to_string()).as_deref().into(),
        ),
        ("intact", list(&found.intact)),
        ("not_sealed", list(&found.unsealed)),
        ("findings", Value::Array(findings.collect())),
    ]
}

/// Writes an object in one line.
fn json_line(fields: Vec<(&'static str, Value)>, out: &mut impl Write) -> std::io::Result<()> {
    Value::Object(fields).write(out)?;
    writeln!(out)
}

fn word(weight: Weight) -> &'static str {
    match weight {
        Weight::Fault => "fault",
        Weight::Removed => "removed",
        Weight::Note => "note",
    }
}

fn text(found: &Examination, out: &mut impl Write) -> std::io::Result<()> {
    for finding in &found.findings {
        writeln!(out, "{}", line(finding))?;
    }
    let intact = counted(found.intact.len(), "run is", "runs are");
    let seals = counted(found.seals, "seal", "seals");
    match found.head {
        None => writeln!(out, "no run is sealed: `backstory store seal` seals runs")?,
        Some(head) => {
            writeln!(out, "{intact} as sealed")?;
            writeln!(out, "{seals}; the chain ends with {head}")?;
        }
    }
    if let Some(first) = found.unsealed.first() {
        let not = counted(found.unsealed.len(), "run is", "runs are");
        let others = match found.unsealed.len() {
            1 => "",
            _ => " and so on",
        };
        writeln!(out, "{not} not sealed: {first}{others}")?;
    }
    Ok(())
}

fn line(finding: &Finding) -> String {
    let seal = finding.seal.map(|seal| format!("seal {seal}"));
    let subject = match (&finding.run, seal) {
        (Some(run), Some(seal)) => format!("run {run}, {seal}: "),
        (Some(run), None) => format!("run {run}: "),
        (None, Some(seal)) => format!("{seal}: "),
        (None, None) => String::new(),
    };
    let what = one_line(&finding.what);
    let at = finding.at.map(|at| format!(" at {}", when::moment(at)));
    let at = at.unwrap_or_default();
    format!("{subject}{}: {what}{at}", finding.part)
}

fn verify_document(file: &Path, trust: &Trust, key: Option<&Path>, as_json: bool) -> Outcome {
    let (path, document) = match file.is_dir() {
        // An RO-Crate is a directory.
        true => {
            let path = file.join("backstory-evidence.json");
            let mut document = proof::read_document(&path)?;
            document["files"] = proof::digests_below(&file.join("files"))?;
            (path, document)
        }
        false => (file.to_owned(), proof::read_document(file)?),
    };
    let document = match (bundle::is_bundle(&document), key) {
        (false, None) => document,
        (true, Some(key)) => signed_statement(&path, &document, key, trust)?,
        (true, None) => {
            let why = "is a Sigstore bundle: name its public key with --sigstore-key KEY";
            return Err(Failure::misuse(format!("{} {why}", path.display())));
        }
        (false, Some(_)) => {
            let why = "is no Sigstore bundle: `export in-toto --sigstore-key` writes one";
            return Err(Failure::misuse(format!("{} {why}", path.display())));
        }
    };
    // Seals of certain signers, or the end of a chain, need a seal.
    let asks_seals = trust.signers.is_some() || trust.expected.is_some();
    if key.is_some() && !asks_seals && Proof::find(&document).is_none() {
        return unsealed_statement(&path, as_json);
    }
    let proof = match Proof::find(&document) {
        Some(Ok(proof)) => proof,
        Some(Err(error)) => {
            let why = format!("the seals in {} are damaged: {error}", path.display());
            return Err(Failure::not_found(why));
        }
        None => {
            return Err(Failure::not_found(format!(
                "{} carries no seal: seal its runs with `backstory store seal`, then export again",
                path.display()
            )));
        }
    };
    // The digests of a crate are in another file than its seals.
    let metadata = match file.is_dir() {
        true => proof::read_document(&file.join("ro-crate-metadata.json")).ok(),
        false => None,
    };
    let unsealed = proof::unsealed_digests(metadata.as_ref().unwrap_or(&document));
    let verdict = proof::verify(&document, &proof, trust)?;
    answer(|out| match as_json {
        true => json_line(verdict_fields(&verdict, &unsealed), out),
        false => verdict_text(&path, &verdict, &unsealed, out),
    })?;
    Ok(u8::from(!verdict.faults.is_empty()))
}

fn verdict_fields(
    verdict: &DocumentVerdict,
    unsealed: &[UnsealedDigests],
) -> Vec<(&'static str, Value)> {
    let list =
        |lines: &[String]| Value::Array(lines.iter().map(|line| line.as_str().into()).collect());
    let unsealed = unsealed.iter().map(|one| (one.member, one.count.into()));
    vec![
        ("sound", verdict.faults.is_empty().into()),
        ("runs", list(&verdict.runs)),
        ("proven", verdict.proven.into()),
        ("faults", list(&verdict.faults)),
        ("checked", Value::array(["blake3"])),
        ("not_checked", Value::Object(unsealed.collect())),
    ]
}

fn verdict_text(
    path: &Path,
    verdict: &DocumentVerdict,
    unsealed: &[UnsealedDigests],
    out: &mut impl Write,
) -> std::io::Result<()> {
    for fault in &verdict.faults {
        writeln!(out, "{}: {}", path.display(), one_line(fault))?;
    }
    let runs = counted(verdict.runs.len(), "run", "runs");
    let contents = counted(verdict.proven, "content", "contents");
    writeln!(
        out,
        "valid seals of {runs} cover {contents} of {} by their BLAKE3 digests",
        path.display()
    )?;
    for one in unsealed {
        let digests = counted(one.count, "digest", "digests");
        writeln!(
            out,
            "not checked: {digests} of {}, which no seal covers",
            one.kind
        )?;
    }
    Ok(())
}

/// The statement of a bundle that is signed with this key.
fn signed_statement(
    path: &Path,
    bundle: &serde_json::Value,
    key: &Path,
    trust: &Trust,
) -> Result<serde_json::Value, Failure> {
    let authorities = trust.authorities.as_deref();
    let statement = bundle::open(bundle, key, authorities)?;
    statement.map_err(|why| Failure::not_found(format!("{}: {why}", path.display())))
}

/// Says that the signature of a statement is valid, and that none of its runs was sealed.
fn unsealed_statement(path: &Path, as_json: bool) -> Outcome {
    answer(|out| match as_json {
        true => {
            let none = || Value::Array(Vec::new());
            let fields = vec![
                ("sound", true.into()),
                ("runs", none()),
                ("proven", 0usize.into()),
                ("faults", none()),
            ];
            json_line(fields, out)
        }
        false => writeln!(
            out,
            "{} is signed; none of its runs is sealed",
            path.display()
        ),
    })?;
    Ok(0)
}
