//! The answers of the routes about real runs, compared with the acts of the test.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_testkit::need::needs;

use super::server::{ServedPlace, encoded};

#[test]
fn a_hostile_name_comes_back_as_it_is_and_is_found_by_its_bytes() {
    let place = ServedPlace::new();
    let name = OsStr::from_bytes(b"\xff<script>alert(1)<\n\xe2\x80\xae.txt");
    place.write("a", "text\n");
    place.record(&[OsStr::new("cp"), OsStr::new("a"), name]);
    let server = place.serve(&[]);
    let path = place.path(Path::new(name));
    let answer = server.ask("GET", &format!("/file?path={}", encoded(&path)), &[]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    assert!(
        text.contains("\\udcff<script>alert(1)<\\u000a\u{202e}.txt"),
        "{text}"
    );
    assert_eq!(answer.header("content-type"), "application/json");
    let id = text
        .split("\"version\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let content = server.ask("GET", &format!("/versions/{id}/content"), &[]);
    assert_eq!(content.body, b"text\n");
    assert!(!content.header("content-disposition").contains('<'));
}

#[test]
fn the_pages_of_a_history_have_each_event_once_while_newer_ones_are_added() {
    let place = ServedPlace::new();
    let add = |number: usize| {
        let script = format!("printf %{number}s > grown");
        place.record(&["sh", "-c", &script]);
    };
    for number in 1..=5 {
        add(number);
    }
    let server = place.serve(&[]);
    let route = format!("/file?path={}&limit=2", encoded(place.path("grown")));
    let mut target = route.clone();
    let mut sizes = Vec::new();
    loop {
        let page = server.get(&target);
        let events = page["events"].as_array().unwrap();
        sizes.extend(events.iter().map(|event| event["size"].as_u64().unwrap()));
        assert_eq!(page["cut"], page["next"].is_string(), "{page}");
        let Some(next) = page["next"].as_str() else {
            assert_eq!(page["total"], 6, "{page}");
            break;
        };
        target = format!("{route}&cursor={next}");
        if sizes.len() == 2 {
            assert_eq!(page["total"], 5, "{page}");
            add(6);
        }
    }
    assert_eq!(sizes, [5, 4, 3, 2, 1]);
    for (cursor, status) in [("0", 200), ("99", 200), ("first", 400), ("-1", 400)] {
        let answer = server.ask("GET", &format!("{route}&cursor={cursor}"), &[]);
        assert_eq!(answer.status, status, "{cursor}: {}", answer.text());
    }
}

#[test]
fn the_lineage_of_a_file_leads_over_runs_and_its_noise_is_counted_and_opened() {
    let place = ServedPlace::new();
    place.write("a", "b\na\n");
    place.record(&["sh", "-c", "sort a > s"]);
    place.record(&["sh", "-c", "head -n 1 s > r"]);
    let server = place.serve(&[]);
    let query = format!("path={}&direction=of", encoded(place.path("r")));
    let graph = server.get(&format!("/lineage?{query}"));
    let nodes = graph["nodes"].as_array().unwrap();
    let of = |kind: &str| {
        nodes
            .iter()
            .filter(|node| node["type"] == kind)
            .collect::<Vec<_>>()
    };
    let paths: Vec<&str> = of("file")
        .iter()
        .filter_map(|node| node["path"].as_str())
        .collect();
    for name in ["a", "s", "r"] {
        assert!(
            paths.contains(&place.path(name).to_str().unwrap()),
            "{paths:?}"
        );
    }
    assert_eq!(of("command").len(), 2, "{graph}");
    assert_eq!(graph["runs"].as_array().unwrap().len(), 2);
    assert!(
        !paths.iter().any(|path| path.starts_with("/usr/")),
        "{paths:?}"
    );
    let fold = of("fold")[0];
    let id = fold["id"].as_str().unwrap();
    let opened = server.get(&format!("/lineage/fold?{query}&fold={id}"));
    assert_eq!(opened["total"], fold["count"]);
    assert_eq!(opened["members"].as_array().unwrap().len(), opened["total"]);
    // Forwards, one hop at a time, at the level of processes.
    let version = server.version(&place.path("a"));
    let near = format!("/lineage/hop?node={version}&direction=uses&level=process");
    let near = server.get(&near);
    let reader = near["nodes"].as_array().unwrap().iter();
    let mut reader = reader.filter(|node| node["type"] == "process");
    let reader = reader.next().unwrap();
    let next = format!(
        "/lineage/hop?node={}&direction=uses&level=process&reach={}",
        reader["id"].as_str().unwrap(),
        reader["reach"].as_str().unwrap()
    );
    let written = server.get(&next);
    assert!(
        written
            .to_string()
            .contains(place.path("s").to_str().unwrap()),
        "{written}"
    );
}

#[test]
fn a_content_is_shown_by_its_kind_and_two_versions_are_compared() {
    let place = ServedPlace::new();
    if !place.has_worker() {
        return;
    }
    place.write("a.csv", "k,v\nx,1\ny,2\n");
    place.record(&["cp", "a.csv", "t.csv"]);
    let server = place.serve(&[]);
    let first = server.version(&place.path("t.csv"));
    place.write("a.csv", "k,v\nx,1\ny,3\n");
    place.record(&["cp", "a.csv", "t.csv"]);
    let second = server.version(&place.path("t.csv"));
    assert_ne!(first, second);
    let view = server.get(&format!("/versions/{first}/preview"));
    assert_eq!(view["body"]["view"], "table", "{view}");
    assert_eq!(view["body"]["total"], 2);
    assert_eq!(view["body"]["rows"][1][1], "2");
    assert_eq!(view["body"]["columns"][1]["type"], "integer");
    let text = server.get(&format!(
        "/versions/{first}/preview?view=text&first=1&limit=1"
    ));
    assert_eq!(text["body"]["lines"], serde_json::json!(["x,1"]));
    let hex = server.get(&format!("/versions/{first}/preview?view=hex"));
    assert_eq!(hex["body"]["rows"][0]["text"], "k,v.x,1.y,2.");
    let diff = server.get(&format!("/diff?a={first}&b={second}"));
    assert_eq!(diff["body"]["kind"], "table");
    assert_eq!(diff["body"]["cells"][0]["b"], "3");
    let content = format!("/versions/{first}/content");
    let part = server.ask("GET", &content, &[("Range", "bytes=4-6")]);
    assert_eq!((part.status, part.body.as_slice()), (206, &b"x,1"[..]));
    assert_eq!(part.header("content-range"), "bytes 4-6/12");
    let compared = server.get(&format!("/compare?a={first}&b={second}"));
    assert_eq!(compared["same"], false, "{compared}");
    assert!(!compared["aligned"].as_array().unwrap().is_empty());
}

#[test]
fn a_difference_is_stated_in_the_terms_of_the_format() {
    let place = ServedPlace::new();
    if !place.has_worker() || !needs("archives", &["python3"]) {
        return;
    }
    let program = "import sys, zipfile\n\
        member = zipfile.ZipInfo('one.txt')\n\
        zipfile.ZipFile('out.zip', 'w').writestr(member, sys.argv[1])\n";
    place.write("pack.py", program);
    let mut versions = Vec::new();
    for content in ["1", "2"] {
        place.record(&["python3", "pack.py", content]);
        let server = place.serve(&[]);
        versions.push(server.version(&place.path("out.zip")));
    }
    let server = place.serve(&[]);
    let [a, b] = &versions[..] else { panic!() };
    let diff = server.get(&format!("/diff?a={a}&b={b}"));
    let told = "1 member changed: `one.txt` crc32 83dcefb7 → 1ad5be0d";
    assert_eq!(diff["sentences"], serde_json::json!([told]), "{diff}");
    assert_eq!(diff["inspector"], "zip");
    assert_eq!(diff["summary"], told);
    let command = place.backstory(&["diff", "out.zip"]).output().unwrap();
    let command = String::from_utf8_lossy(&command.stdout);
    assert!(command.contains(told), "{command}");
}

#[test]
fn runs_are_searched_sorted_and_paged_and_streamed_one_a_line() {
    let place = ServedPlace::new();
    place.write("a", "x");
    for name in ["b", "c", "d"] {
        place.record(&["cp", "a", name]);
    }
    let server = place.serve(&[]);
    let first = server.get("/runs?limit=2");
    assert_eq!(
        (&first["total"], first["runs"].as_array().unwrap().len()),
        (&3.into(), 2)
    );
    assert_eq!(first["runs"][0]["line"], "cp a d");
    let next = format!("/runs?limit=2&cursor={}", first["next"].as_str().unwrap());
    let second = server.get(&next);
    assert_eq!(second["runs"][0]["line"], "cp a b");
    assert!(second["next"].is_null());
    assert_eq!(server.get("/runs?text=A%20C")["total"], 1);
    assert_eq!(server.get("/runs?command=cp")["total"], 3);
    assert_eq!(server.get("/runs?file=c")["total"], 1);
    assert_eq!(server.get("/runs?status=failed")["total"], 0);
    let oldest = server.get("/runs?sort=started&order=asc");
    assert_eq!(oldest["runs"][0]["line"], "cp a b");
    let bars = server.get("/runs/activity?buckets=5");
    let bars = bars["bars"].as_array().unwrap().iter();
    assert_eq!(
        bars.map(|bar| bar["runs"].as_u64().unwrap()).sum::<u64>(),
        3
    );
    let lines = server.ask("GET", "/runs", &[("Accept", "application/x-ndjson")]);
    assert_eq!(lines.text().lines().count(), 3);
    let found = server.get("/search?text=work/c");
    assert_eq!(found["files"][0]["path"], place.path("c").to_str().unwrap());
}

#[test]
fn the_page_tells_the_rows_of_a_database_that_are_in_its_log() {
    let place = ServedPlace::new();
    if !place.has_worker() || !needs("a write-ahead log", &["python3"]) {
        return;
    }
    let program = "import os, sqlite3, sys\n\
        bank = sqlite3.connect('bank.db', isolation_level=None)\n\
        bank.execute('pragma journal_mode = wal')\n\
        bank.execute('create table if not exists t (id integer primary key, v int)')\n\
        bank.execute(sys.argv[1])\nos._exit(0)\n";
    place.write("logged.py", program);
    let mut versions = Vec::new();
    for statement in ["insert into t values (7, 1)", "update t set v = 2"] {
        place.record(&["python3", "logged.py", statement]);
        let server = place.serve(&[]);
        versions.push(server.version(&place.path("bank.db-wal")));
    }
    let server = place.serve(&[]);
    let [a, b] = &versions[..] else { panic!() };
    let told = "`t`: 1 row changed";
    let inside = server.get(&format!("/versions/{b}/inside"));
    assert_eq!(inside["sentences"][0], told, "{inside}");
    assert_eq!(inside["inspector"], "sqlite", "{inside}");
    let diff = server.get(&format!("/diff?a={a}&b={b}"));
    let summary = diff["summary"].as_str().unwrap();
    assert_eq!(summary, format!("{told}, `t.v` of row 7: 1 → 2"));
}

#[test]
fn the_page_of_a_version_says_what_changed_inside_of_it() {
    let place = ServedPlace::new();
    let mut versions = Vec::new();
    for dt in ["0.1", "0.01"] {
        place.write("in", format!("steps = 10\ndt = {dt}\n"));
        place.record(&["cp", "in", "out.txt"]);
        let server = place.serve(&[]);
        versions.push(server.version(&place.path("out.txt")));
    }
    let server = place.serve(&[]);
    let inside = |version: &str| server.get(&format!("/versions/{version}/inside"));
    let first = inside(&versions[0]);
    assert!(first["former"].is_null(), "{first}");
    let second = inside(&versions[1]);
    assert_eq!(second["former"], versions[0].as_str(), "{second}");
    if !place.has_worker() {
        return;
    }
    assert_eq!(second["inspector"], "text", "{second}");
    let sentences = second["sentences"].to_string();
    assert!(sentences.contains("`dt` 0.1 → 0.01"), "{sentences}");
    let unknown = server.ask("GET", "/versions/none/inside", &[]);
    assert!((400..500).contains(&unknown.status), "{}", unknown.text());
}
