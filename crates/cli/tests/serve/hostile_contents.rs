//! Contents that were made to harm their reader: damaged Parquet files, images, tables, notebooks.

use super::server::ServedPlace;

#[test]
fn a_damaged_content_is_answered_and_the_server_goes_on() {
    asks_for_damaged(10);
}

#[test]
#[ignore = "half a minute, as the same test of fewer contents"]
fn many_damaged_contents_are_answered_and_the_server_goes_on() {
    asks_for_damaged(40);
}

/// Asks for this many Parquet files with one byte changed, or cut at one place, and for some other
/// kinds.
fn asks_for_damaged(count: usize) {
    let place = ServedPlace::new();
    if !place.has_worker() {
        return;
    }
    place.write("a", "x\n");
    place.record(&["cp", "a", "b"]);
    let whole = parquet(&place);
    // Two versions of each file, so that they are compared, too.
    for (round, directory) in ["one", "two"].into_iter().enumerate() {
        std::fs::create_dir(place.path(directory)).unwrap();
        for (number, content) in damaged(count, &whole, round).into_iter().enumerate() {
            place.write(format!("{directory}/{number}.parquet"), content);
        }
        for (name, content) in other_kinds(round) {
            place.write(format!("{directory}/{name}"), content);
        }
        place.record(&["cp", "-r", "--", directory, "copy"]);
        let moved = format!("mkdir -p seen; cp -f {directory}/* seen/; rm -r copy");
        place.record(&["sh", "-c", &moved]);
    }
    let server = place.serve(&[]);
    let names = std::fs::read_dir(place.path("seen")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.len() > count);
    let mut reasons = 0;
    for name in names {
        let version = server.version(&place.path("seen").join(&name));
        let older = server.version(&place.path("one").join(&name));
        for route in [
            format!("/versions/{version}/preview"),
            format!("/versions/{version}/preview?view=table"),
            format!("/versions/{version}/preview?first=1000000000000&limit=5000"),
            format!("/diff?a={older}&b={version}"),
        ] {
            let answer = server.ask("GET", &route, &[]);
            let status = answer.status;
            assert!(
                status == 200 || status == 400,
                "{name:?}: {route}: {status} {}",
                answer.text()
            );
            reasons += usize::from(status == 200 && answer.json()["note"].is_string());
        }
    }
    assert!(reasons > count, "{reasons}");
    // The server still answers.
    let runs = server.get("/runs");
    assert_eq!(runs["total"], 5, "{runs}");
}

#[test]
fn a_reader_that_fails_or_is_missing_leaves_the_server_alive_and_it_says_why() {
    let place = ServedPlace::without_worker();
    let mut versions = Vec::new();
    for value in ["1", "2"] {
        for (name, content) in [
            ("t.csv", format!("k,v\na,{value}\n").into_bytes()),
            (
                "i.png",
                [&b"\x89PNG\r\n\x1a\n\0"[..], value.as_bytes()].concat(),
            ),
            ("n.ipynb", format!("{{\"cells\": [{value}]}}").into_bytes()),
            ("p.parquet", format!("PAR1\0{value}PAR1").into_bytes()),
        ] {
            place.write(name, content);
        }
        place.record(&[
            "sh",
            "-c",
            "mkdir -p seen; cp t.csv i.png n.ipynb p.parquet seen",
        ]);
        let server = place.serve(&[]);
        let of = |name: &str| server.version(&place.path("seen").join(name));
        versions.push(["t.csv", "n.ipynb", "p.parquet", "i.png"].map(of));
    }
    let server = place.serve(&[]);
    for (script, why) in [
        (None, "backstory-inspect is not installed: install it"),
        (Some("kill -SEGV $$"), "crashed on"),
        (Some("kill -XCPU $$"), "took more than 2 s on"),
        (Some("echo '{'"), "is refused"),
    ] {
        if let Some(script) = script {
            place.replace_worker(script);
        }
        for (at, view) in ["text", "text", "hex"].into_iter().enumerate() {
            let answer = server.get(&format!("/versions/{}/preview", versions[1][at]));
            assert_eq!(answer["body"]["view"], view, "{answer}");
            let note = answer["note"].as_str().unwrap_or_default();
            assert!(note.contains(why), "{script:?}: {answer}");
        }
        for (at, kind) in [(0, "text"), (2, "binary"), (3, "binary")] {
            let route = format!("/diff?a={}&b={}", versions[0][at], versions[1][at]);
            let answer = server.get(&route);
            assert_eq!(answer["body"]["kind"], kind, "{answer}");
            let note = answer["note"].as_str().unwrap_or_default();
            assert!(note.contains(why), "{script:?}: {answer}");
        }
        // An image is drawn by the browser. Only its size is unknown.
        let image = server.get(&format!("/versions/{}/preview?view=hex", versions[1][3]));
        assert_eq!(image["note"], serde_json::Value::Null, "{image}");
    }
    assert_eq!(server.get("/runs")["total"], 2);
}

/// A whole Parquet file: the processes of a run, as `export` writes them.
fn parquet(place: &ServedPlace) -> Vec<u8> {
    let mut export = place.backstory(&["export", "parquet", "-o", "tables"]);
    let exported = export.output().unwrap();
    assert!(exported.status.success(), "{exported:?}");
    let found = std::fs::read_dir(place.path("tables")).unwrap();
    let mut files: Vec<_> = found.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let file = files.iter().find(|path| {
        let ending = path.extension().is_some_and(|ending| ending == "parquet");
        ending && std::fs::metadata(path).unwrap().len() > 200
    });
    std::fs::read(file.unwrap()).unwrap()
}

/// The same damage in each run of the test: in the data, in the footer, and cuts.
fn damaged(count: usize, whole: &[u8], round: usize) -> Vec<Vec<u8>> {
    let length = whole.len();
    let mut files = Vec::new();
    for number in 0..count {
        let mut file = whole.to_vec();
        // The footer has the numbers that a reader trusts: two thirds of the damage is there.
        let span = if number % 3 == 0 { length } else { length / 3 };
        let at = length - 1 - (number * 7919 + round * 31) % span;
        file[at] = [0xff, 0x00, 0x80, 0x7f][number % 4];
        if number % 10 == 9 {
            file.truncate(length - length / (number + 2));
            file.extend_from_slice(b"PAR1");
        }
        files.push(file);
    }
    files
}

fn other_kinds(round: usize) -> Vec<(&'static str, Vec<u8>)> {
    let mut png =
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xff\xff\xff\xff\xff\xff\xff\x08\x06\0\0\0".to_vec();
    png.extend([round as u8; 40]);
    let mut deep = vec![b'['; 100_000];
    deep.push(b'0' + round as u8);
    let mut wide = vec![b','; 300_000];
    wide.push(b'0' + round as u8);
    let quote = [b"a,b\n\"".to_vec(), vec![b'x'; 200_000 + round]].concat();
    vec![
        ("huge.png", png),
        ("deep.ipynb", deep),
        ("wide.csv", wide),
        ("quote.csv", quote),
        ("frame.jpg", vec![0xff, 0xd8, 0xff, 0xff, 0, round as u8]),
        ("short.parquet", vec![b'P', b'A', b'R', b'1', round as u8]),
    ]
}
