//! The functions that wrote the bytes of a file: `of --bytes` of runs with functions.

use serde_json::Value;

use super::Place;
use super::bytes::{engine, refined};
use backstory_testkit::need::skipped;

/// Two functions write to one descriptor. The second one is called twice.
const REPORT: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int fd;
static void put(const char *text) {
    if (write(fd, text, strlen(text)) < 0)
        exit(1);
}
__attribute__((noinline)) void write_head(void) { put("head\n"); }
__attribute__((noinline)) void write_row(const char *text) { put(text); }
int main(void) {
    fd = open("out.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    write_head();
    write_row("one\n");
    write_row("two\n");
    put("end\n");
    close(fd);
    return 0;
}
"#;

#[test]
fn the_function_that_wrote_a_line_is_named_with_its_recorded_calls() {
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.write_aged("report.c", REPORT);
    let built = place.run(&[
        "cc",
        "--compiler=gcc",
        "-g",
        "-O0",
        "-o",
        "report",
        "report.c",
    ]);
    if built.status != 0 {
        return skipped("functions and bytes", "no gcc");
    }
    let functions = ["--functions", "write_*", "--arguments"];
    let wanted = [&["--name", "report"], &functions[..]].concat();
    place.keep("./report", &wanted);
    let Some(done) = refined(&place, &engine, "report") else {
        return;
    };
    assert_eq!(done.status, 0, "{done:?}");
    let of = |line: &str| place.run(&["of", "out.txt", "--line", line]).out;
    let put = "written by put() in report.c:8, called by ";
    let head = of("1");
    let expected = format!(
        "{put}write_head() in report.c:11, called by main() in report.c:15, in the recorded call write_head() in report.c:11"
    );
    assert!(head.contains(&expected), "{head}");
    // The graph does not say which of the calls wrote the line.
    let row = of("3");
    let expected = format!(
        "{put}write_row() in report.c:12, called by main() in report.c:17, in one of 2 recorded calls: write_row() in report.c:12 text=\"one"
    );
    assert!(row.contains(&expected), "{row}");
    let end = of("4");
    assert!(
        end.contains(&format!("{put}main() in report.c:18\n")),
        "{end}"
    );

    let all = place.json(&["of", "out.txt", "--bytes", "0-16", "--json"]);
    let writers = all["written_by"].as_array().unwrap();
    let told = |writer: &Value| {
        let innermost = &writer["functions"][1]["name"];
        (
            innermost.as_str().unwrap().to_owned(),
            writer["ranges"].to_string(),
            writer["calls"].as_array().unwrap().len(),
        )
    };
    let told: Vec<_> = writers.iter().map(told).collect();
    let one = |name: &str, ranges: &str, calls| (name.to_owned(), ranges.to_owned(), calls);
    let expected = [
        one("write_head", "[[0,5]]", 1),
        one("write_row", "[[5,9]]", 2),
        one("write_row", "[[9,13]]", 2),
        one("main", "[[13,17]]", 0),
    ];
    assert_eq!(told, expected, "{all}");
}
