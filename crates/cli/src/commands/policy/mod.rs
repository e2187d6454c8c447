//! `policy verify`: checks how a file was made against rules.
//!
//! In: a recorded file or run, and a policy. Out: the rules that do not hold, each with the things
//! that fail it. Expressions are evaluated in the sandboxed process of the inspectors.
//!
//! Invariants: a rule whose expression has no value for a thing fails for that thing. No rule is
//! judged for a file whose present bytes are not the recorded ones.

mod present;
mod rules;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;
use std::path::Path;

use backstory_eventlog::event::Bytes;
use backstory_eventlog::run::RunHeader;
use backstory_evidence::examine::{Examined, Weight, examine};
use backstory_evidence::{Chain, Trust};
use backstory_exchange::AllowedSigners;
use backstory_export::hermeticity::{self, Hermeticity};
use backstory_export::inventory::{Inventory, InventoryFile};
use backstory_export::{Request, View};
use backstory_files::regular;
use backstory_pipeline::judge::{JudgeFailure, Verdict, verdicts};
use serde_json::{Value, json};

use super::export::subject;
use super::store::evidence::examined_at_rest;
use super::{Outcome, answer, undeclared_inputs};
use crate::args::policy::{PolicyCommand, PolicyVerifyArgs};
use crate::contents_writer;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain, complain, one_line};
use crate::index::Busy;
use crate::json;
use rules::{Rule, RuleSubject};

/// Things that are printed for each failed rule.
const SHOWN: usize = 10;

/// The field of an input that the build did not declare. It is computed only for rules that have
/// it: the build tool is asked for its rules.
const UNDECLARED: &str = "undeclared";

/// Runs a command of `policy`.
pub fn run(command: PolicyCommand, store: Option<&Path>) -> Outcome {
    let PolicyCommand::Verify(args) = command;
    verify(&args, store)
}

fn verify(args: &PolicyVerifyArgs, store: Option<&Path>) -> Outcome {
    let bytes = regular::read(&args.policy).map_err(|error| {
        Failure::misuse(format!("cannot read {}: {error}", args.policy.display()))
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::misuse(format!("{} is no text", args.policy.display())))?;
    let rules = match rules::parse(&text, &args.policy) {
        Ok(rules) => rules,
        Err(mistakes) => {
            mistakes.iter().for_each(|mistake| complain(mistake));
            return Ok(2);
        }
    };
    let mut current = CurrentStore::open(store)?;
    contents_writer::bring_up_to_date(&current.home, &mut current.store, Busy::Wait)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    let mut request = Request::new(subject(&current, Some(&args.artifact))?);
    request.contents = Some(current.home.contents_dir());
    let view = View::load(&current.store, &request)?;
    let seals = seals(&mut current, &view, args)?;
    let inventory = Inventory::of(&view)?;
    let with_undeclared = rules::mention(&rules, UNDECLARED);
    let things = things(&current, &view, &inventory, seals, with_undeclared)?;
    if let Err(refused) = present::compare(&view, &inventory) {
        if args.json {
            answer(|out| {
                let why = ("refused", refused.line.as_str().into());
                let object = json::Value::Object(vec![artifacts(&view, &inventory), why]);
                object.write(out)?;
                writeln!(out)
            })?;
        }
        return Err(refused);
    }
    let mut failed = Vec::new();
    for rule in &rules {
        let failing = failing(rule, &things).map_err(|failure| {
            let path = args.policy.display();
            Failure::misuse(format!("{path}: rule {}: {failure}", one_line(&rule.name)))
        })?;
        if !failing.is_empty() {
            failed.push((rule, failing));
        }
    }
    answer(|out| match args.json {
        true => {
            let failed = failed.iter().map(|(rule, failing)| fields(rule, failing));
            let verdict = json::Value::Object(vec![
                artifacts(&view, &inventory),
                ("rules", rules.len().into()),
                ("failed", json::Value::Array(failed.collect())),
            ]);
            verdict.write(out)?;
            writeln!(out)
        }
        false => print(&view, rules.len(), &failed, out),
    })?;
    Ok(u8::from(!failed.is_empty()))
}

/// A thing for which a rule does not hold, with the reason if its expression has no value.
type Failing<'t> = (&'t Value, Option<String>);

/// The things that rules are about, by kind, as JSON objects.
type Things = BTreeMap<&'static str, Vec<Value>>;

fn things(
    current: &CurrentStore,
    view: &View,
    inventory: &Inventory,
    (sealed, signed): (bool, bool),
    with_undeclared: bool,
) -> Result<Things, Failure> {
    let facts = Hermeticity::of(&current.store, view, inventory)?;
    let run = |at: usize| view.runs[at].summary.id.as_str();
    let undeclared = match with_undeclared {
        true => undeclared_inputs::of_runs(current, view)?,
        false => vec![None; view.runs.len()],
    };
    let mut things = Things::new();
    let inputs = hermeticity::inputs(inventory).map(|item| {
        let mut input = file(item);
        let by_run = undeclared[item.run].as_ref();
        input[UNDECLARED] = by_run.map(|paths| paths.contains(&item.path)).into();
        input["outside"] = hermeticity::is_outside(view, item).into();
        input["software"] = item.software.into();
        input["run"] = run(item.run).into();
        input
    });
    things.insert("input", inputs.collect());
    let packages = inventory.packages.iter().map(|package| {
        json!({"manager": package.manager, "name": package.name, "version": package.version})
    });
    things.insert("package", packages.collect());
    let peers = facts.network.iter().map(|one| {
        json!({"address": String::from_utf8_lossy(&one.address), "names": one.names,
               "received": one.received, "run": run(one.run)})
    });
    things.insert("peer", peers.collect());
    let runs: Vec<&str> = (0..view.runs.len()).map(run).collect();
    let headers = view
        .runs
        .iter()
        .map(|run| current.store.run(&run.summary.id));
    let headers: Result<Vec<_>, _> = headers.collect();
    let headers: Vec<RunHeader> = headers?
        .into_iter()
        .flatten()
        .map(|run| run.header)
        .collect();
    let builder: Vec<&str> = headers
        .iter()
        .map(|header| header.version.as_str())
        .collect();
    let guard = headers.iter().map(|header| {
        header
            .modes
            .guard
            .map_or("", backstory_vocabulary::Word::word)
    });
    let reasons = view
        .runs
        .iter()
        .flat_map(|run| &run.summary.incomplete_because);
    // Several runs can have read the same file, or talked to the same address.
    let paths: BTreeSet<&Bytes> = hermeticity::inputs(inventory)
        .map(|item| &item.path)
        .collect();
    let addresses: BTreeSet<&Bytes> = facts.network.iter().map(|one| &one.address).collect();
    let artifacts = inventory.items.iter().filter(|item| item.result).map(|item| {
        let mut artifact = file(item);
        let more = json!({
            "runs": runs, "builder": builder, "guard": guard.clone().collect::<Vec<_>>(),
            "complete": facts.complete, "incomplete_because": reasons.clone().collect::<Vec<_>>(),
            "sealed": sealed, "signed": signed, "hermetic": facts.is_hermetic(),
            "reproducible": facts.reproducible, "network": addresses.len(),
            "inputs": paths.len(), "packages": things["package"].len(),
            "outside": facts.outside.len(), "unknown": facts.unknown.len(),
        });
        if let (Value::Object(artifact), Value::Object(more)) = (&mut artifact, more) {
            artifact.extend(more);
        }
        artifact
    });
    let artifacts: Vec<Value> = artifacts.collect();
    if artifacts.is_empty() {
        return Err(Failure::not_found(format!(
            "{}: a policy is about files that a run left",
            match view.requested {
                Some(_) => format!("no recorded run made {}", view.subject),
                None => format!("{} left no file", view.subject),
            }
        )));
    }
    things.insert("artifact", artifacts);
    Ok(things)
}

/// The files that a policy is about, each with the digest of the version that is judged.
fn artifacts(view: &View, inventory: &Inventory) -> (&'static str, json::Value) {
    let results = inventory.items.iter().filter(|item| item.result);
    let files = results.map(|item| {
        json::Value::Object(vec![
            ("path", json::Value::Bytes(item.path.to_vec())),
            ("run", view.runs[item.run].summary.id.as_str().into()),
            (
                "blake3",
                present::recorded_digest(view, item).as_deref().into(),
            ),
        ])
    });
    ("artifacts", json::Value::Array(files.collect()))
}

fn file(item: &InventoryFile) -> Value {
    let sums = item.sums.as_ref();
    json!({
        "path": String::from_utf8_lossy(&item.path),
        "sha256": sums.map_or("", |sums| &sums.sha256),
        "blake3": sums.map_or("", |sums| &sums.blake3),
        "known": sums.is_some(),
    })
}

/// Whether all runs are as they were sealed, and whether a signer signed all of these seals.
fn seals(
    current: &mut CurrentStore,
    view: &View,
    args: &PolicyVerifyArgs,
) -> Result<(bool, bool), Failure> {
    if !Chain::of(&current.home).exists() {
        return Ok((false, false));
    }
    let signers = args.signers.as_deref().map(AllowedSigners::open);
    let trust = Trust {
        signers: signers
            .transpose()
            .map_err(|error| Failure::not_found(chain(&error)))?,
        ..Trust::default()
    };
    let CurrentStore { home, store } = current;
    let found = examined_at_rest(home, &mut || {
        backstory_store::catch_up(home, store)?;
        backstory_store::catch_up_annotations(home, store)?;
        let examined = Examined {
            home,
            store: Ok(&**store),
        };
        Ok(examine(&examined, &trust, &mut || ())?)
    })?;
    let of_chain = |part: &str| matches!(part, "chain" | "head" | "order" | "seal");
    let is_broken = found.findings.iter().any(|finding| {
        let is_fault = finding.weight == Weight::Fault;
        is_fault && (finding.run.is_none() || of_chain(&finding.part))
    });
    let mut ids = view.runs.iter().map(|run| &run.summary.id);
    if is_broken || !ids.clone().all(|id| found.intact.contains(id)) {
        return Ok((false, false));
    }
    // Without signers, a valid signature of any key counts.
    let unsigned = Chain::of(home).unsigned_runs()?;
    Ok((true, !ids.any(|id| unsigned.contains(id))))
}

/// Things for which a rule does not hold, each with the reason if its expression has no value.
fn failing<'t>(rule: &Rule, things: &'t Things) -> Result<Vec<Failing<'t>>, JudgeFailure> {
    let all = things.get(backstory_vocabulary::Word::word(rule.subject));
    let all = all.map_or(&[][..], Vec::as_slice);
    let header = RunHeader::default();
    let mut nodes = (0..).zip(all.iter().cloned());
    let verdicts = verdicts(&rule.program(), &rule.judged(&header), &mut nodes)?;
    let judged = (0..)
        .zip(all)
        .filter_map(|(number, thing)| match verdicts.get(&number) {
            Some(Verdict::Failed(why)) => Some((thing, Some(why.clone()))),
            found => (found.is_some() != rule.must_hold).then_some((thing, None)),
        });
    Ok(judged.collect())
}

/// The word by which a thing is printed.
fn name_of(subject: RuleSubject, thing: &Value) -> String {
    let field = |name: &str| thing[name].as_str().unwrap_or_default().to_owned();
    let name = match subject {
        RuleSubject::Artifact | RuleSubject::Input => field("path"),
        RuleSubject::Package => format!(
            "{} {} {}",
            field("manager"),
            field("name"),
            field("version")
        ),
        RuleSubject::Peer => field("address"),
    };
    one_line(&name)
}

/// The names of things, each once, with the reason if the expression has no value.
fn names<'t>(rule: &Rule, failing: &'t [Failing<'_>]) -> Vec<(String, Option<&'t str>)> {
    let mut names: Vec<(String, Option<&str>)> = Vec::new();
    let mut seen = HashSet::new();
    for (thing, why) in failing {
        let name = (name_of(rule.subject, thing), why.as_deref());
        if seen.insert(name.clone()) {
            names.push(name);
        }
    }
    names
}

fn fields(rule: &Rule, failing: &[Failing<'_>]) -> json::Value {
    let things = names(rule, failing).into_iter().map(|(name, why)| {
        json::Value::Object(vec![("name", name.as_str().into()), ("error", why.into())])
    });
    json::Value::Object(vec![
        ("rule", rule.name.as_str().into()),
        ("on", backstory_vocabulary::Word::word(rule.subject).into()),
        ("failed", json::Value::Array(things.collect())),
    ])
}

/// The facts of an artifact in an expression about several of them: they tell which one decided.
fn decisive(rule: &Rule, failing: &[Failing<'_>]) -> Option<String> {
    let (thing, None) = failing.first()? else {
        return None;
    };
    if !matches!(rule.subject, RuleSubject::Artifact) {
        return None;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = rule.expression.text.split(|c: char| !is_part(c));
    let words: HashSet<&str> = words.collect();
    let fields = rule.subject.fields().iter().map(|(name, _)| name);
    let facts = fields
        .filter(|field| words.contains(*field))
        .map(|field| (*field, &thing[*field]))
        .filter(|(_, fact)| !(fact.is_string() || fact.is_array()))
        .map(|(field, fact)| format!("{field}: {fact}"));
    let facts: Vec<String> = facts.collect();
    (facts.len() > 1).then(|| facts.join(", "))
}

fn print(
    view: &View,
    rules: usize,
    failed: &[(&Rule, Vec<Failing<'_>>)],
    out: &mut impl Write,
) -> std::io::Result<()> {
    for (rule, failing) in failed {
        let names = names(rule, failing);
        let shown = names.iter().take(SHOWN).map(|(name, why)| match why {
            Some(why) => format!("{name} ({})", one_line(why)),
            None => name.clone(),
        });
        let mut line = shown.collect::<Vec<_>>().join(", ");
        if names.len() > SHOWN {
            line += &format!(" and {} more", names.len() - SHOWN);
        }
        let facts = decisive(rule, failing).map(|facts| format!(" ({facts})"));
        let facts = facts.unwrap_or_default();
        writeln!(out, "{}: {line}{facts}", one_line(&rule.name))?;
    }
    let held = rules - failed.len();
    writeln!(
        out,
        "{held} of {rules} rules hold for {}",
        one_line(&view.subject)
    )?;
    if view.requested.is_none() {
        let alone = "only this run was judged, and not the runs that made its inputs";
        writeln!(out, "{alone}: name a file instead of the run to judge both")?;
    }
    Ok(())
}
