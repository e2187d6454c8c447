//! The crates depend on each other in one direction only: ARCHITECTURE.md has the ranks.

/// Crates by rank, lowest first. A crate may depend on those of lower ranks.
const RANKS: [&[&str]; 7] = [
    &["abi", "eventlog"],
    &["recorder", "graph"],
    &["capture", "store", "contents"],
    &["query"],
    &["export"],
    &["replay"],
    &["cli"],
];

/// Within a rank, the only dependency allowed: the log's chunks are the ABI's.
const BESIDE: [(&str, &str); 1] = [("eventlog", "abi")];

/// Crates that know nothing of how events are captured.
const PURE: [&str; 6] = ["graph", "store", "contents", "query", "export", "replay"];

fn dependencies(name: &str) -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(name)
        .join("Cargo.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| {
            line.strip_prefix("backstory-")?
                .split(['.', ' ', '='])
                .next()
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn dependencies_point_to_lower_ranks_only() {
    let rank = |name: &str| RANKS.iter().position(|names| names.contains(&name));
    for name in RANKS.concat() {
        for dependency in dependencies(name) {
            let beside = BESIDE.contains(&(name, dependency.as_str()));
            assert!(
                beside || rank(&dependency) < rank(name),
                "{name} depends on {dependency}"
            );
        }
    }
    assert!(
        dependencies("capture").contains(&"recorder".to_owned()),
        "the manifests are read"
    );
}

#[test]
fn graph_store_and_query_know_nothing_of_capture() {
    for name in PURE {
        for dependency in dependencies(name) {
            assert!(
                !["capture", "recorder", "abi"].contains(&dependency.as_str()),
                "{name} depends on {dependency}"
            );
        }
    }
}
