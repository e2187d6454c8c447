//! `policy verify`: rules about how a file was made, each with what fails it.

use std::io::Write;
use std::net::TcpListener;

use backstory_testkit::need::needs;

use super::*;

/// `result` was made in two runs from `work/own` and from a file elsewhere.
fn made() -> Option<(Place, [String; 2], String)> {
    let place = Place::new();
    if !place.has_inspector() {
        return None;
    }
    let elsewhere = place.stage.directory("elsewhere").unwrap().join("data");
    std::fs::write(&elsewhere, "other data\n").unwrap();
    place.stage.user().owns(&elsewhere).unwrap();
    place.write_aged("own", "own data\n");
    let elsewhere = elsewhere.to_str().unwrap().to_owned();
    let first = place.keep(&format!("cat own {elsewhere} > middle"), &[]);
    let second = place.keep("sort middle > result", &[]);
    Some((place, [first, second], elsewhere))
}

/// Verifies a policy about `result`.
pub(super) fn verified(place: &Place, policy: &str, options: &[&str]) -> Answer {
    place.write("policy.toml", policy);
    let args = ["policy", "verify", "result", "--policy", "policy.toml"];
    place.run(&[&args, options].concat())
}

/// One rule.
pub(super) fn rule(on: &str, expression: &str) -> String {
    format!("[[rule]]\nname = \"it\"\non = \"{on}\"\n{expression}\n")
}

#[test]
fn a_policy_that_holds_for_each_kind_of_thing_passes() {
    let Some((place, [first, second], _)) = made() else {
        return;
    };
    let result = place.path("result");
    let rules = [
        rule(
            "artifact",
            "require = \"complete && known && network == 0\"",
        ),
        rule(
            "artifact",
            "require = \"reproducible == null && !hermetic && outside > 0\"",
        ),
        rule(
            "artifact",
            "require = \"inputs >= 2 && unknown == 0 && size(builder) == 2\"",
        ),
        rule("artifact", &format!("require = \"path == '{result}'\"")),
        rule(
            "artifact",
            &format!("require = \"'{first}' in runs && '{second}' in runs\""),
        ),
        rule(
            "artifact",
            "require = \"sha256.size() == 64 && blake3.size() == 64\"",
        ),
        rule("input", "deny = \"path.endsWith('/own') && outside\""),
        rule("package", "require = \"name != '' && version != ''\""),
        rule("peer", "deny = \"true\""),
    ];
    let answer = verified(&place, &rules.concat(), &[]);
    let line = format!("9 of 9 rules hold for {result}\n");
    assert_eq!((answer.status, answer.out), (0, line), "{}", answer.err);
    let json = verified(&place, &rules.concat(), &["--json"]);
    let json_text: Value = serde_json::from_str(&json.out).unwrap();
    let digest = blake3::hash(&std::fs::read(&result).unwrap()).to_string();
    let artifact = serde_json::json!({"path": result, "run": second, "blake3": digest});
    let verdict = serde_json::json!({"artifacts": [artifact], "rules": 9, "failed": []});
    assert_eq!((json.status, json_text), (0, verdict));
}

#[test]
fn a_file_that_is_not_as_recorded_is_refused_and_its_run_is_judged() {
    let Some((place, [_, second], _)) = made() else {
        return;
    };
    let rules = rule("artifact", "require = \"known\"");
    let result = place.path("result");
    let recorded = blake3::hash(&std::fs::read(&result).unwrap()).to_string();
    assert_eq!(verified(&place, &rules, &[]).status, 0);
    place.write("result", "backdoor\n");
    let present = blake3::hash(b"backdoor\n").to_string();
    let remedy = format!("policy verify {second}");
    let words = [&*result, &present, &recorded, &remedy];
    verified(&place, &rules, &[]).is_error(1, &words);
    let answer = verified(&place, &rules, &["--json"]);
    let object: Value = serde_json::from_str(&answer.out).unwrap();
    let artifact = serde_json::json!({"path": result, "run": second, "blake3": recorded});
    assert_eq!(object["artifacts"], serde_json::json!([artifact]));
    let refused = object["refused"].as_str().unwrap();
    assert_eq!(
        (answer.status, &*answer.err),
        (1, &*format!("backstory: {refused}\n"))
    );
    assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
    std::fs::remove_file(&result).unwrap();
    verified(&place, &rules, &[]).is_error(1, &[&result, "is gone"]);
    let run = place.run(&["policy", "verify", &second, "--policy", "policy.toml"]);
    assert_eq!(run.status, 0, "{run:?}");
    // The run of `middle` read the file elsewhere.
    assert!(run.out.contains("only this run was judged"), "{run:?}");
}

#[test]
fn a_rule_about_several_facts_names_the_value_of_each() {
    let Some((place, ..)) = made() else { return };
    let rules = rule("artifact", "require = \"complete && signed\"");
    let answer = verified(&place, &rules, &[]);
    let result = place.path("result");
    assert_eq!(
        (answer.status, answer.out.lines().next()),
        (
            1,
            Some(&*format!("it: {result} (complete: true, signed: false)"))
        ),
        "{answer:?}"
    );
    assert!(!answer.out.contains("only this run"), "{answer:?}");
}

#[test]
fn a_rule_that_fails_names_each_thing_once() {
    let Some((place, _, elsewhere)) = made() else {
        return;
    };
    let result = place.path("result");
    // The cache of the loader is an input of both runs.
    let policy = format!(
        "{}{}[[rule]]\nrequire = \"complete\"\n",
        "[[rule]]\nname = \"no input from elsewhere\"\non = \"input\"\ndeny = \"outside\"\n",
        "[[rule]]\nname = \"sealed\"\nrequire = \"sealed\"\n"
    );
    let answer = verified(&place, &policy, &[]);
    assert_eq!(answer.status, 1, "{answer:?}");
    let lines: Vec<&str> = answer.out.lines().collect();
    assert!(
        lines[0].starts_with("no input from elsewhere: "),
        "{answer:?}"
    );
    assert!(lines[0].contains(&elsewhere), "{answer:?}");
    assert!(!lines[0].contains(&place.path("own")), "{answer:?}");
    let names = lines[0].split_once(": ").unwrap().1;
    let mut names: Vec<&str> = names.split(", ").collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "{answer:?}");
    assert_eq!(lines[1], format!("sealed: {result}"));
    assert_eq!(lines[2], format!("1 of 3 rules hold for {result}"));
    let json = verified(&place, &policy, &["--json"]);
    let verdict: Value = serde_json::from_str(&json.out).unwrap();
    let objects = verdict["failed"].as_array().unwrap();
    assert_eq!((json.status, objects.len()), (1, 2), "{json:?}");
    let sealed = serde_json::json!({"rule": "sealed", "on": "artifact", "failed": [{"name": result, "error": null}]});
    assert_eq!(objects[1], sealed);
    // A fact that is not known fails both ways.
    for word in ["require", "deny"] {
        let unknown = rule("artifact", &format!("{word} = \"reproducible\""));
        let answer = verified(&place, &unknown, &[]);
        assert_eq!(answer.status, 1, "{answer:?}");
        let line = format!("it: {result} (the expression is neither true nor false)\n");
        assert!(answer.out.starts_with(&line), "{answer:?}");
    }
}

#[test]
fn a_policy_with_mistakes_decides_nothing_and_each_has_line_and_column() {
    let Some((place, ..)) = made() else { return };
    let cases = [
        ("[[rule]]\nrequire = \"complete &&\"\n", vec!["2:"]),
        (
            "[[rule]]\nrequire = \"complete\"\n[[rule]]\nrequire = \"complete && seald\"\n",
            vec!["4:24: unknown variable seald"],
        ),
        (
            "[[rule]]\non = \"peer\"\ndeny = \"host == ''\"\n",
            vec!["there are address, names, received, run\n"],
        ),
        (
            "[[rule]]\non = \"input\"\ndeny = \"path == 3\"\n",
            vec!["3:14: a string is never equal to a number\n"],
        ),
        (
            "[[rule]]\nrequire = \"complete && sha256 != null\"\n",
            vec!["2:31: a string is never equal to null\n"],
        ),
        (
            "[[rule]]\non = \"input\"\ndeny = \"hermetic\"\n\n[[rule]]\non = \"files\"\ndeny = \"true\"\n",
            vec!["6:6: ", "files", "there are artifact, input, package, peer"],
        ),
        (
            "[[rule]]\nname = \"x\"\n",
            vec!["1:1: a rule needs either require or deny"],
        ),
        (
            "[[rule]]\ndeny = \"true\"\nrequire = \"true\"\n",
            vec!["1:1: a rule has require or deny, and not both"],
        ),
        ("[[rule]]\ndeny = true\n", vec!["2:8: deny is not a string"]),
        (
            "[[rule]]\nwhen = \"true\"\n",
            vec!["2:1: unknown key when of a rule"],
        ),
        (
            "[[rules]]\n",
            vec!["unknown key rules: a policy has tables [[rule]]"],
        ),
        ("# nothing\n", vec!["1:1: there is no [[rule]]"]),
        ("[[rule]\n", vec!["policy.toml:1:"]),
    ];
    for (policy, words) in cases {
        let answer = verified(&place, policy, &[]);
        assert_eq!(
            (answer.status, &*answer.out),
            (2, ""),
            "{policy}: {answer:?}"
        );
        assert!(answer.err.contains("policy.toml:"), "{answer:?}");
        for word in words {
            assert!(answer.err.contains(word), "{policy}: {word}: {answer:?}");
        }
    }
    let both = "[[rule]]\nrequire = \"a\"\n[[rule]]\nrequire = \"b\"\n";
    let answer = verified(&place, both, &[]);
    assert_eq!(answer.err.lines().count(), 2, "{answer:?}");
    assert!(answer.err.contains("policy.toml:2:12: ") && answer.err.contains("policy.toml:4:12: "));
}

#[test]
fn a_file_that_no_run_made_is_an_error_and_no_verdict() {
    let Some((place, ..)) = made() else { return };
    place.write("policy.toml", "[[rule]]\nrequire = \"true\"\n");
    place.write("stranger", "text\n");
    for artifact in ["stranger", "own", "absent.csv"] {
        let answer = place.run(&["policy", "verify", artifact, "--policy", "policy.toml"]);
        answer.is_error(1, &[artifact]);
    }
    let answer = place.run(&["policy", "verify", "result", "--policy", "absent.toml"]);
    answer.is_error(2, &["cannot read absent.toml"]);
}

#[test]
fn a_rule_without_end_is_ended_and_decides_nothing() {
    let Some((place, ..)) = made() else { return };
    let list: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let list = format!("[{}]", list.join(","));
    let endless = format!(
        "{list}.all(a, {list}.all(b, {list}.all(c, {list}.all(d, {list}.all(e, a + b + c + d + e >= 0)))))"
    );
    let policy = format!("[[rule]]\nname = \"endless\"\nrequire = \"{endless}\"\n");
    let answer = verified(&place, &policy, &[]);
    answer.is_error(2, &["policy.toml: rule endless: it took more than"]);
    let deep = format!("{}true{}", "(".repeat(9000), ")".repeat(9000));
    let deep = format!("[[rule]]\nname = \"deep\"\nrequire = \"{deep}\"\n");
    let answer = verified(&place, &deep, &[]);
    answer.is_error(2, &["policy.toml:3:"]);
}

#[test]
fn a_peer_that_sent_data_is_named() {
    if !needs("a program that connects", &["bash"]) {
        return;
    }
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        connection.write_all(b"from elsewhere\n").unwrap();
    });
    let line = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3 > result'");
    place.keep(&line, &[]);
    server.join().unwrap();
    let answer = verified(&place, &rule("peer", "deny = \"received\""), &[]);
    assert_eq!(answer.status, 1, "{answer:?}");
    let address = format!("it: tcp:127.0.0.1:{port}\n0 of 1 rules hold for ");
    assert!(answer.out.starts_with(&address), "{answer:?}");
    let one = verified(
        &place,
        &rule("artifact", "require = \"network == 1 && !hermetic\""),
        &[],
    );
    assert_eq!(one.status, 0, "{one:?}");
}

#[test]
fn a_changed_or_unsigned_run_is_not_sealed_for_a_policy() {
    if !needs("signed seals", &["ssh-keygen"]) {
        return;
    }
    let Some((place, [first, _], _)) = made() else {
        return;
    };
    let (key, allowed) = place.signer("ann");
    let (_, others) = place.signer("eve");
    let holds = |expression: &str, options: &[&str]| {
        let policy = rule("artifact", &format!("require = \"{expression}\""));
        verified(&place, &policy, options).status == 0
    };
    assert!(holds("!sealed && !signed", &[]));
    place.run(&["store", "seal"]).is_error(2, &["--all"]);
    assert_eq!(place.run(&["store", "seal", "--all"]).status, 0);
    assert!(holds("sealed && !signed", &[]), "nobody signed");
    std::fs::remove_dir_all(place.stage.store().join("evidence")).unwrap();
    let sealed = place.run(&["store", "seal", "--all", "--key", &key]);
    assert_eq!(sealed.status, 0, "{sealed:?}");
    assert!(holds("sealed && signed", &["--signers", &allowed]));
    assert!(holds("sealed && signed", &[]), "any signer");
    assert!(!holds("sealed || signed", &["--signers", &others]));
    place.keep("cat own > unrelated", &[]);
    let seal = place.run(&["store", "seal", "--all", "--key", &key]);
    assert_eq!(seal.status, 0, "{seal:?}");
    let last = place.seal_file(3, "seal");
    let text = std::fs::read(&last).unwrap();
    std::fs::write(&last, "damaged").unwrap();
    assert!(holds("!sealed && !signed", &[]), "the chain is not whole");
    std::fs::write(&last, text).unwrap();
    assert!(holds("sealed && signed", &["--signers", &allowed]));
    let log = place.stage.store().join(format!("runs/{first}.log"));
    let mut bytes = std::fs::read(&log).unwrap();
    bytes.push(0);
    std::fs::write(&log, bytes).unwrap();
    assert!(
        !holds("sealed || signed", &["--signers", &allowed]),
        "a changed log"
    );
}

#[test]
fn an_input_that_the_build_does_not_declare_fails_its_rule() {
    if !needs("undeclared inputs of make", &["make"]) {
        return;
    }
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    place.write_aged("listed", "1\n");
    place.write_aged("forgotten", "2\n");
    place.write_aged(
        "Makefile",
        "result: listed\n\tcat listed forgotten > result\n",
    );
    place.keep("make", &[]);
    let undeclared = rule("input", "deny = \"undeclared\"");
    let answer = verified(&place, &undeclared, &[]);
    assert_eq!(answer.status, 1, "{answer:?}");
    let line = format!("it: {}\n", place.path("forgotten"));
    assert!(answer.out.starts_with(&line), "{answer:?}");
    place.write_aged(
        "Makefile",
        "result: listed forgotten\n\tcat listed forgotten > result\n",
    );
    place.keep("rm result; make", &[]);
    assert_eq!(verified(&place, &undeclared, &[]).status, 0);
    // Without declarations it is not known.
    place.keep("cat forgotten > result", &[]);
    std::fs::remove_file(place.path("Makefile")).unwrap();
    assert_eq!(verified(&place, &undeclared, &[]).status, 1);
    let known = rule("input", "deny = \"undeclared == true\"");
    assert_eq!(verified(&place, &known, &[]).status, 0);
}
