//! `record --functions` records calls of functions in Node and R, without a change of the program.

use backstory_testkit::need::needs;

use super::Place;
use super::functions::makers;

/// A place, if the machine has this program.
fn place_with(program: &str) -> Option<Place> {
    needs("functions of R and Node", &[program]).then(Place::new)
}

/// The function that made a file, if the program did not make it outside of functions.
fn maker(place: &Place, file: &str) -> Option<String> {
    let of = place.run(&["of", file]).out;
    let lines: Vec<&str> = of.lines().map(str::trim).collect();
    let made = format!("made {file}");
    let at = lines
        .iter()
        .position(|line| line.starts_with(&made))
        .unwrap();
    // `2 × write_table() in plot.R`
    let maker = lines[at - 1].rsplit("× ").next().unwrap();
    maker.contains("()").then(|| maker.to_owned())
}

/// The output of a command without recording, and with it.
fn printed_twice(place: &Place, command: &str, options: &[&str]) -> [String; 2] {
    let alone = place.shell(&format!("{command} 2>&1"));
    place.keep(&format!("{command} > printed.txt 2>&1"), options);
    let recorded = std::fs::read_to_string(place.path("printed.txt")).unwrap();
    [alone.out, recorded]
}

/// The same for a command of which no function may be recorded, so that `record` says why.
fn printed_twice_with_a_message(place: &Place, command: &str) -> [String; 2] {
    let alone = place.shell(&format!("{command} 2>&1"));
    let line = format!("{command} > printed.txt 2>&1");
    place.run(&["record", "--functions", "write_*", "--", "sh", "-c", &line]);
    let recorded = std::fs::read_to_string(place.path("printed.txt")).unwrap();
    [alone.out, recorded]
}

/// Functions of each form. The program prints values that depend on `this`, `arguments`, errors and
/// suspended calls.
const PLOT: &str = r#"'use strict';
const fs = require('fs');
function write_table(path) { "use strict"; fs.writeFileSync(path, '1'); return [this, arguments.length]; }
const write_short = (path) => (fs.writeFileSync(path, '2'), { path });
class Table {
  write(path) { fs.writeFileSync(path, '3'); return this; }
  get size() { return 3; }
}
async function write_later(path) {
  await new Promise((done) => setTimeout(done, 1));
  fs.writeFileSync(path, '4');
  try { await Promise.reject(new Error('no')); } catch (error) { fs.writeFileSync('rejected.csv', '4'); return error.message; }
}
function* write_each(paths) { for (const path of paths) { fs.writeFileSync(path, '5'); const got = yield path; if (got) return got; } }
function* write_once() { try { yield 1; } finally { fs.writeFileSync('once.csv', '7'); } }
async function* lines() { for (const line of [1, 2, 3]) { await null; fs.writeFileSync('between.csv', '0'); yield line; } }
async function write_lines() {
  const seen = [];
  outer: for (const round of [1, 2]) {
    for await (const line of lines()) if (line === 1) continue; else { fs.writeFileSync('line.csv', '8'); seen.push(line); if (round === 1) continue outer; }
  }
  fs.writeFileSync('lines.csv', '8');
  return seen;
}
function write_same() { var own; function own() {} fs.writeFileSync('same.csv', '0'); return typeof own; }
const write_made = { write_of: (path) => fs.writeFileSync(path, '6') }.write_of;
console.log(write_table('table.csv'), write_short('short.csv'), write_table.name, write_table.length);
for (const one of write_once()) break;
console.log(write_same(), Object.keys(require.cache).length);
console.log(new Table().write('method.csv').size, [...write_each(['each.csv'])]);
write_made('of.csv');
try { (function write_thrown() { throw new Error('here'); })(); } catch (error) { console.log(error.stack.split('\n')[1].split(':')[1]); }
write_later('later.csv').then(async (text) => {
  console.log(text, await write_lines());
  fs.writeFileSync('main.csv', '0');
  console.log(process.env.NODE_OPTIONS, Object.keys(process.env).filter((name) => name.startsWith('BACKSTORY_NODE')));
});
"#;

#[test]
fn functions_of_node_that_made_files_are_named_and_the_program_does_the_same() {
    let Some(place) = place_with("node") else {
        return;
    };
    place.write("plot.js", PLOT);
    let functions = ["--functions", "write_*", "--functions", "plot.js:Table.*"];
    for command in ["node plot.js", "NODE_OPTIONS=--no-deprecation node plot.js"] {
        let [alone, recorded] = printed_twice(&place, command, &functions);
        assert_eq!(alone, recorded, "{command}");
        for (file, function) in [
            ("table.csv", "write_table() in plot.js:3"),
            ("short.csv", "write_short() in plot.js:4"),
            ("method.csv", "Table.write() in plot.js:6"),
            ("later.csv", "write_later() in plot.js:9"),
            ("rejected.csv", "write_later() in plot.js:9"),
            ("each.csv", "write_each() in plot.js:14"),
            ("once.csv", "write_once() in plot.js:15"),
            ("line.csv", "write_lines() in plot.js:17"),
            ("lines.csv", "write_lines() in plot.js:17"),
            ("of.csv", "write_of() in plot.js:26"),
        ] {
            assert_eq!(maker(&place, file).as_deref(), Some(function), "{command}");
        }
        for file in ["main.csv", "between.csv", "same.csv"] {
            assert_eq!(maker(&place, file), None, "{command}");
        }
        let of = place.run(&["of", "table.csv"]).out;
        assert!(!of.contains("backstory-functions"), "{of}");
    }
    // Without the option, nothing is loaded.
    place.keep("node plot.js", &[]);
    assert_eq!(makers(&place, "table.csv"), [""; 0]);
}

#[test]
fn a_node_that_may_not_read_the_hooks_runs_without_them() {
    let Some(place) = place_with("node") else {
        return;
    };
    place.write("plot.js", "function write_one() { console.log(1); } write_one(); console.log(process.env.NODE_OPTIONS);");
    let help = place.shell("node --help").out;
    let known = ["--permission", "--experimental-permission"];
    let Some(option) = known.into_iter().find(|option| help.contains(*option)) else {
        return;
    };
    let readable = place.path("*");
    let command = format!("node --no-warnings {option} --allow-fs-read='{readable}' plot.js");
    let [alone, recorded] = printed_twice_with_a_message(&place, &command);
    assert_eq!(alone, recorded);
    assert!(alone.starts_with("1\n"), "{alone}");
}

/// Parses a file as ES5, with the parser of Node.
const PARSE_ES5: &str = r#"
const exports_ = {};
const source = process.binding('natives')['internal/deps/acorn/acorn/dist/acorn'];
require('vm').compileFunction(source, ['exports', 'module'])(exports_, { exports: exports_ });
exports_.parse(require('fs').readFileSync(process.argv[2], 'utf8'), { ecmaVersion: 5 });
console.log('parsed');
"#;

#[test]
fn an_old_node_can_read_the_file_that_loads_the_hooks() {
    let Some(place) = place_with("node") else {
        return;
    };
    place.write("parse.js", PARSE_ES5);
    let hooks = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../recorder/interpreters/backstory-functions.cjs"
    );
    let parsed = place.shell(&format!("node --no-deprecation parse.js {hooks} 2>&1"));
    assert_eq!(parsed.out, "parsed\n");
}

#[test]
fn a_program_sees_its_own_environment_if_a_link_leads_to_the_hooks() {
    let Some(place) = place_with("node") else {
        return;
    };
    place.shell("mkdir real && ln -s real linked");
    place.write("plot.js", PLOT);
    let store = place.path("linked/store");
    let recorded = place
        .run(&[
            "--store",
            &store,
            "record",
            "--functions",
            "write_*",
            "--",
            "node",
            "plot.js",
        ])
        .out;
    assert!(recorded.contains("\nundefined []\n"), "{recorded}");
}

#[test]
fn functions_of_a_module_of_node_that_made_files_are_named() {
    let Some(place) = place_with("node") else {
        return;
    };
    place.write(
        "lib.mjs",
        "import fs from 'fs';\nexport function write_table(path) { fs.writeFileSync(path, '1'); }\n",
    );
    place.write(
        "main.mjs",
        "import { write_table } from './lib.mjs';\nwrite_table('table.csv');\n",
    );
    place.keep("node main.mjs", &["--functions", "lib:write_*"]);
    assert_eq!(
        maker(&place, "table.csv").as_deref(),
        Some("write_table() in lib.mjs:2")
    );
}

/// Functions whose frames, formals and dispatch are printed.
const PLOT_R: &str = r#"write_table <- function(path, ...) {
  cat(1, file = path)
  invisible(match.call())
}
write_left <- function(path, more) {
  on.exit(cat("left\n"))
  if (missing(more)) return(cat(2, file = path))
  parent.frame()
}
write_kind <- function(x, path) UseMethod("write_kind")
write_kind.default <- function(x, path) cat(3, file = path)
write_kind.own <- function(x, path) NextMethod()
write_deep <- function(depth, path) if (depth > 0) write_deep(depth - 1, path) else {
  cat(4, file = path)
  sys.call()
}
write_table("table.csv")
print(write_table("table.csv", depth = 3))
write_left("left.csv")
print(write_left("left.csv", 1))
write_kind(structure(1, class = "own"), "kind.csv")
print(write_deep(2, "deep.csv"))
print(tryCatch({ write_fails <- function() stop("oops"); write_fails() }, error = conditionMessage))
print(write_table)
print(names(formals(write_table)))
cat(0, file = "main.csv")
print(stats::sd(c(1, 2, 3)))
print(Sys.getenv(c("R_PROFILE_USER", "BACKSTORY_R_PROFILE_USER", "OF_PROFILE"), unset = "none"))
write_other <- write_table
write_other("other.csv")
formals(write_left)$more <- "more"
invisible(write_left("formals.csv", 1))
cat(0, file = "end.csv")
"#;

#[test]
fn functions_of_r_that_made_files_are_named_and_the_program_does_the_same() {
    let Some(place) = place_with("Rscript") else {
        return;
    };
    place.write("plot.R", PLOT_R);
    place.write(".Rprofile", "Sys.setenv(OF_PROFILE = 'here')\n");
    place.write("mine", "Sys.setenv(OF_PROFILE = 'mine'); 42\n");
    let functions = ["--functions", "write_*", "--functions", "stats:sd"];
    for command in ["Rscript plot.R", "R_PROFILE_USER=mine Rscript plot.R"] {
        let [alone, recorded] = printed_twice(&place, command, &functions);
        let (alone, printed) = (function_printed(&alone), function_printed(&recorded));
        assert_eq!(alone, printed, "{command}");
        for (file, function) in [
            ("table.csv", "write_table() in plot.R"),
            ("left.csv", "write_left() in plot.R"),
            ("kind.csv", "write_kind.default() in plot.R"),
            ("deep.csv", "write_deep() in plot.R"),
            ("other.csv", "write_other() in plot.R"),
        ] {
            assert_eq!(maker(&place, file).as_deref(), Some(function), "{command}");
        }
        for file in ["main.csv", "end.csv"] {
            assert_eq!(maker(&place, file), None, "{command}");
        }
        let processes = place.run(&["processes"]).out;
        assert!(
            processes.contains("calls of sd() in stats=1"),
            "{processes}"
        );
    }
}

#[test]
fn an_r_without_a_profile_reads_none_and_sees_its_own_environment() {
    let Some(place) = place_with("Rscript") else {
        return;
    };
    place.write(
        "plot.R",
        "write_one <- function() cat(1, file = 'one.csv')\nwrite_one()\nprint(Sys.getenv(c('R_PROFILE_USER', 'BACKSTORY_R_PROFILE_USER'), unset = 'none'))\n",
    );
    place.write(".Rprofile", "cat('profile\\n')\n");
    place.write("twice.R", "system('Rscript plot.R')\n");
    for (command, profile, one) in [
        (
            "R_PROFILE_USER= Rscript plot.R",
            false,
            Some("write_one() in plot.R"),
        ),
        ("Rscript --vanilla plot.R", false, None),
        ("Rscript --no-init-file plot.R", false, None),
        ("Rscript twice.R", true, Some("write_one() in plot.R")),
        (
            "Rscript --vanilla twice.R",
            false,
            Some("write_one() in plot.R"),
        ),
    ] {
        let [alone, recorded] = printed_twice_with_a_message(&place, command);
        assert_eq!(alone, recorded, "{command}");
        assert_eq!(alone.contains("profile\n"), profile, "{command}: {alone}");
        assert_eq!(maker(&place, "one.csv").as_deref(), one, "{command}");
    }
}

/// Without the printed body of a function, which has the statements of backstory.
fn function_printed(text: &str) -> (String, String) {
    let (before, rest) = text.split_once("function (path").unwrap_or((text, ""));
    let after = rest.find("[1] \"path\"").map_or("", |at| &rest[at..]);
    (before.to_owned(), after.to_owned())
}

#[test]
fn a_shell_and_a_node_that_a_node_starts_have_its_own_environment() {
    let Some(place) = place_with("node") else {
        return;
    };
    place.write("child.js", "console.log(process.env.NODE_OPTIONS);\n");
    place.write(
        "parent.js",
        "function write_all() { console.log(require('child_process').execFileSync('sh', ['-c', 'env | grep -c NODE; node child.js; true']).toString()); }\nwrite_all();\n",
    );
    let [alone, recorded] = printed_twice(&place, "node parent.js", &["--functions", "write_*"]);
    assert_eq!(alone, recorded);
    assert!(alone.starts_with("0\nundefined"), "{alone}");
}

#[test]
fn a_pattern_that_recorded_nothing_advises_what_helps_in_this_language() {
    let place = Place::new();
    place.write("plot.js", "console.log(1);\n");
    place.write("plot.R", "cat(1)\n");
    place.write("plot.py", "print(1)\n");
    for (program, file, advice) in [
        ("node", "plot.js", "FILE:uv_*"),
        ("Rscript", "plot.R", "PACKAGE:uv_*"),
        ("/usr/bin/python3", "plot.py", "the package `backstory`"),
    ] {
        if !needs("advice about functions", &[program]) {
            continue;
        }
        let recorded = place.run(&["record", "--functions", "uv_*", "--", program, file]);
        assert_eq!(recorded.status, 0, "{recorded:?}");
        assert!(recorded.err.contains(advice), "{}", recorded.err);
        assert!(!recorded.err.contains("backstory cc"), "{}", recorded.err);
    }
}
