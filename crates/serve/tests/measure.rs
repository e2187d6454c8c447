//! Measures a server over its port: the first view with ten thousand runs, and single questions to
//! a store of ten million edges.
//!
//! ```text
//! cargo test --release -p backstory-serve --test measure -- --ignored --nocapture
//! ```
//!
//! - `BACKSTORY_MEASURE_EDGES`: size of the synthetic store (10,000,000 edges).
//! - `BACKSTORY_MEASURE_RUNS`: number of runs of the other store (10,000).
//! - `BACKSTORY_MEASURE_PROGRAM`: a program whose `serve` is measured instead of the server of this
//!   build. So a small build of this test can measure a release.
//! - `BACKSTORY_MEASURE_KEEP`: a directory where the stores are made and stay: `runs` and `edges`.
//!   A store that is there already is used as it is. `npm run measure` can use it, too.
//!
//! `docs/performance.md` has the figures.
#![allow(clippy::unwrap_used, clippy::print_stdout, dead_code)]

#[path = "../../query/tests/measure/report.rs"]
mod report;
#[path = "../../query/tests/measure/synthetic.rs"]
mod synthetic;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_inspection::TableKeys;
use backstory_serve::{AccessToken, Hooks, Setup, Start, serve};
use backstory_store::{GraphStore, Home, SqliteStore};
use backstory_testkit::http::{HttpAnswer, request};

/// A server in this process, or of another program.
struct MeasuredServer {
    port: u16,
    bearer: String,
    other: Option<Child>,
}

impl Drop for MeasuredServer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.other {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl MeasuredServer {
    fn start(home: Home) -> MeasuredServer {
        match std::env::var_os("BACKSTORY_MEASURE_PROGRAM") {
            Some(program) => MeasuredServer::of(&program, &home),
            None => MeasuredServer::here(home),
        }
    }

    fn of(program: &OsStr, home: &Home) -> MeasuredServer {
        let mut command = Command::new(program);
        command.arg("serve").env("BACKSTORY_STORE", home.dir());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut address).unwrap();
        let port = address.split([':', '/']).nth(4).unwrap().parse().unwrap();
        let token = address.trim().split("token=").nth(1).unwrap();
        MeasuredServer {
            port,
            bearer: format!("Bearer {token}"),
            other: Some(child),
        }
    }

    fn here(home: Home) -> MeasuredServer {
        let token = AccessToken::random().unwrap();
        let bearer = format!("Bearer {}", token.as_str());
        let setup = Setup {
            home,
            port: 0,
            token,
            allow_rerun: false,
            start: Start::Home,
            project: None,
            keys: TableKeys::default(),
            hooks: Hooks {
                refresh: Arc::new(|| Ok(())),
                is_recording: |_| false,
                inside: Arc::new(|_, _, _| None),
                stated: Arc::new(|_, _, _| None),
                bytes: Arc::new(|_, _, _| Ok(None)),
                program: "/bin/false".into(),
            },
        };
        let (sender, address) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            serve(setup, |address| sender.send(address.to_owned()).unwrap()).unwrap();
        });
        let address: String = address.recv().unwrap();
        let port = address.split([':', '/']).nth(4).unwrap().parse().unwrap();
        MeasuredServer {
            port,
            bearer,
            other: None,
        }
    }

    fn ask(&self, route: &str) -> (HttpAnswer, Duration) {
        let start = Instant::now();
        let headers = [("Authorization", self.bearer.as_str())];
        let answer = request(self.port, "GET", &format!("/api/v1{route}"), &headers).unwrap();
        (answer, start.elapsed())
    }

    fn get(&self, route: &str) -> serde_json::Value {
        let (answer, _) = self.ask(route);
        assert_eq!(answer.status, 200, "{route}: {}", answer.text());
        answer.json()
    }
}

/// A store, filled if it is new. It is removed with the guard, unless the user wants to keep it.
fn store(name: &str, fill: impl FnOnce(&mut SqliteStore)) -> (Home, Option<tempfile::TempDir>) {
    let (directory, guard) = match std::env::var_os("BACKSTORY_MEASURE_KEEP") {
        Some(kept) => (PathBuf::from(kept).join(name), None),
        None => {
            let tmp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            (tmp.path().to_owned(), Some(tmp))
        }
    };
    std::fs::create_dir_all(&directory).unwrap();
    let home = Home::open(&directory).unwrap();
    let mut store = SqliteStore::open(&home).unwrap();
    if store.run_ids().unwrap().is_empty() {
        fill(&mut store);
    }
    (home, guard)
}

/// Prints median, 99th percentile and longest time.
fn print_times(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{what:<44} median {:8.2?}  p99 {:8.2?}  longest {:8.2?}  ({} times)",
        at(0.5),
        at(0.99),
        at(1.0),
        times.len()
    );
}

fn append_runs(store: &mut SqliteStore, runs: u32) {
    for number in 0..runs {
        let header = RunHeader {
            id: format!("run{number:07}"),
            command: ["python3", "train.py", "--seed"]
                .iter()
                .map(|word| word.as_bytes().to_vec())
                .chain([number.to_string().into_bytes()])
                .collect(),
            // A usual environment takes some kilobytes.
            environment: (0..60)
                .map(|n| format!("VARIABLE_{n}={}", "value".repeat(8)).into_bytes())
                .collect(),
            cwd: b"/home/user/work".to_vec(),
            started: 1_700_000_000_000_000_000 + i64::from(number) * 60_000_000_000,
            ..RunHeader::default()
        };
        let end = RunEnd {
            exit: Some(i32::from(number % 10 == 0)),
            command_ended: header.started + 1_000_000_000,
            ended: header.started + 1_000_000_000,
            ..RunEnd::default()
        };
        store.append(&header, &end, 1000, &mut |_| Ok(())).unwrap();
    }
}

#[test]
#[ignore = "a measurement, of some minutes"]
fn the_first_view_is_measured_with_ten_thousand_runs() {
    let runs = std::env::var("BACKSTORY_MEASURE_RUNS").map_or(10_000, |n| n.parse().unwrap());
    let (home, _guard) = store("runs", |store| append_runs(store, runs));
    let server = MeasuredServer::start(home);
    let view = ["/store", "/runs?limit=100", "/runs/activity"];
    let all = || {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for route in view {
                let server = &server;
                scope.spawn(move || server.get(route));
            }
        });
        start.elapsed()
    };
    std::thread::sleep(Duration::from_millis(100));
    print_times("first view, the first time", vec![all()]);
    print_times("first view, again", (0..50).map(|_| all()).collect());
    let search = |n: usize| server.ask(&format!("/runs?text={n}")).1;
    print_times("a search in the runs", (0..50).map(search).collect());
}

#[test]
#[ignore = "a measurement, of some minutes"]
fn one_hop_is_measured_on_a_store_of_ten_million_edges() {
    let edges = std::env::var("BACKSTORY_MEASURE_EDGES").map_or(10_000_000, |n| n.parse().unwrap());
    let (home, _guard) = store("edges", |store| {
        let total = synthetic::fill(store, edges).edges;
        println!("{total} edges");
    });
    let server = MeasuredServer::start(home);
    let path = |n: u64| {
        use synthetic::{LIBRARIES, PROJECTS};
        let library = n / PROJECTS % LIBRARIES;
        format!(
            "/home/user/src/project{}/build/lib{library}.a",
            n % PROJECTS
        )
    };
    let (mut views, mut hops, mut graphs) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..500 {
        let (answer, time) = server.ask(&format!("/file?path={}", path(number)));
        views.push(time);
        let file = answer.json();
        // The newest event may be one without a version: the files of a made-up build are gone.
        let events = file["events"].as_array().unwrap().iter();
        let mut versions = events.filter_map(|event| event["version"].as_str());
        let version = versions.next().unwrap().to_owned();
        for direction in ["of", "uses"] {
            let mut node = version.clone();
            for _ in 0..3 {
                let route = format!("/lineage/hop?node={node}&direction={direction}&level=process");
                let (answer, time) = server.ask(&route);
                assert_eq!(answer.status, 200, "{}", answer.text());
                hops.push(time);
                let near = answer.json();
                let nodes = near["nodes"].as_array().unwrap().iter();
                let mut others = nodes.filter(|other| other["id"] != node.as_str());
                match others.find(|other| other["type"] != "fold") {
                    Some(other) => node = other["id"].as_str().unwrap().to_owned(),
                    None => break,
                }
            }
        }
        if number < 50 {
            graphs.push(server.ask(&format!("/lineage?version={version}")).1);
        }
    }
    print_times("the events of a file", views);
    print_times("one hop from a file or a process", hops);
    print_times("the graph of commands behind a file", graphs);
}
