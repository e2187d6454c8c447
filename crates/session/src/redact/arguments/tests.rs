//! Tests of redaction among arguments.

use super::super::Secrets;
use super::Reading;

fn kept(words: &[&str], more: &[&str]) -> Vec<String> {
    let more: Vec<String> = more.iter().map(|&m| m.into()).collect();
    let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let kept = Secrets::new(&more).command(&words);
    kept.into_iter()
        .map(|word| String::from_utf8(word).unwrap())
        .collect()
}

/// The redacted form of the last of these words.
fn last(words: &[&str]) -> String {
    kept(words, &[]).pop().unwrap()
}

#[test]
fn values_of_options_and_variables_are_replaced() {
    for (word, wanted) in [
        ("--password=correct horse", "--password=<redacted>"),
        ("--password=hunter2", "--password=<*****>"),
        ("--api-key=0123456789abcdef", "--api-key=<redacted>"),
        ("-DSECRET_KEY=0123456789", "-DSECRET_KEY=<redacted>"),
        ("GITHUB_TOKEN=ghp_0123456789", "GITHUB_TOKEN=<redacted>"),
        ("AWS_REGION=eu-central-1", "AWS_REGION=<redacted>"),
        ("client.secret=0123456789ab", "client.secret=<redacted>"),
    ] {
        assert_eq!(last(&["program", word]), wanted);
    }
    assert_eq!(last(&["mysql", "--password", "0123456789"]), "<redacted>");
    assert_eq!(
        kept(&["x", "--token", "0123456789", "in"], &[])[2..],
        ["<redacted>", "in"]
    );
}

#[test]
fn headers_and_passwords_in_addresses_are_replaced() {
    for (word, wanted) in [
        (
            "Authorization: Bearer 0123456789",
            "Authorization: <redacted>",
        ),
        ("authorization:Basic 0123456789", "authorization:<redacted>"),
        (
            "https://me:0123456789@host/path",
            "https://me:<redacted>@host/path",
        ),
        (
            "--url=https://me:p@ss@host:80/",
            "--url=https://me:<**>@host:80/",
        ),
        (
            "http.extraHeader=Authorization: Basic 0123456789",
            "http.extraHeader=Authorization: <redacted>",
        ),
    ] {
        assert_eq!(last(&["curl", "-H", word]), wanted);
    }
}

#[test]
fn in_a_script_only_the_secret_words_are_replaced() {
    for (script, wanted) in [
        ("A_TOKEN=0123456789 make all", "A_TOKEN=<redacted> make all"),
        (
            "cd d; A_TOKEN='01234 56789' make",
            "cd d; A_TOKEN='<redacted>' make",
        ),
        ("x --password 0123456789 <in", "x --password <redacted> <in"),
        (
            "(export MY_PASSWORD=0123456789)",
            "(export MY_PASSWORD=<redacted>)",
        ),
        (
            "curl -H \"Authorization: Bearer 0123\" $u",
            "curl -H \"Authorization: <redacted>\" $u",
        ),
        (
            "git clone https://me:0123456789@host/x y",
            "git clone https://me:<redacted>@host/x y",
        ),
        (
            "A_TOKEN=$T B_TOKEN=\"$(cat f)\" make",
            "A_TOKEN=$T B_TOKEN=\"$(cat f)\" make",
        ),
    ] {
        assert_eq!(last(&["sh", "-ec", script]), wanted);
        assert_eq!(
            last(&["ssh", &format!("host; {script}")]),
            format!("host; {wanted}")
        );
    }
}

#[test]
fn a_value_that_is_no_secret_is_unchanged() {
    for words in [
        &["gcc", "-c", "main.c", "-o", "main.o", "-DN=1"][..],
        &["ssh", "-o", "PasswordAuthentication=no", "user@host:path"],
        &[
            "train",
            "--max-tokens=4096",
            "max_tokens=4096",
            "--no-password",
            "4096",
        ],
        &[
            "x",
            "--password-file",
            "secrets.txt",
            "--private-key",
            "id_rsa",
            "--tokenize",
            "text",
        ],
        &[
            "x",
            "--password",
            "--verbose",
            "--password=no",
            "--token=$TOKEN",
        ],
        &[
            "sort",
            "-t:",
            "-k2",
            "MONKEY=1",
            "http://host:80/a@b",
            "a=b",
            "=",
            "--",
            "-",
        ],
        &["--password"],
        &["perl", "-e", "print 1 if $token == 2"],
    ] {
        assert_eq!(kept(words, &[]), words);
    }
}

#[test]
fn the_user_can_name_more_arguments() {
    assert_eq!(
        kept(&["x", "--my-dsn=u:p@h"], &["MY_DSN"])[1],
        "--my-dsn=<***>"
    );
    assert_eq!(
        kept(&["x", "dsn=u:p@h", "--dsn", "u:p@h"], &["dsn"])[1..],
        ["dsn=<***>", "--dsn", "<***>"]
    );
}

/// Reads an argument in two pieces, cut at every position.
#[test]
fn a_secret_that_is_cut_anywhere_is_replaced_in_both_pieces() {
    let secrets = Secrets::default();
    for (before, argument) in [
        (Reading::Plain, "--password=0123456789 xyzxyz"),
        (Reading::Script, "A_TOKEN=0123456789xyzxyz make"),
        (Reading::Value, "0123456789 xyzxyz"),
    ] {
        let value = argument.find('0').unwrap();
        for at in value + 1..argument.len() {
            let (first, next) = secrets.argument(&argument.as_bytes()[..at], before, true);
            let (second, after) = secrets.argument(&argument.as_bytes()[at..], next, false);
            let both = String::from_utf8([first, second].concat()).unwrap();
            assert!(!both.contains(['0', '5', 'x', 'z']), "{at}: {both}");
            assert_eq!(
                both.ends_with("make"),
                argument.ends_with("make"),
                "{at}: {both}"
            );
            assert_eq!(after, Reading::Plain);
        }
    }
}

/// A reader that started again at each beginning would take 10^12 steps: the test would not end.
#[test]
fn a_long_argument_full_of_beginnings_is_read_in_linear_time() {
    let secrets = Secrets::default();
    for piece in [
        "a=",
        "://",
        "--token ",
        "'",
        "Authorization:",
        "x://:",
        "--",
    ] {
        let argument = piece.repeat(1_000_000 / piece.len());
        secrets.argument(argument.as_bytes(), Reading::Script, false);
    }
}
