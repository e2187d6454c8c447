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
  try { await Promise.reject(new Error('no')); } catch (error) { return error.message; }
}
function* write_each(paths) { for (const path of paths) { fs.writeFileSync(path, '5'); const got = yield path; if (got) return got; } }
const write_made = { write_of: (path) => fs.writeFileSync(path, '6') }.write_of;
console.log(write_table('table.csv'), write_short('short.csv'), write_table.name, write_table.length);
console.log(new Table().write('method.csv').size, [...write_each(['each.csv'])]);
write_made('of.csv');
try { (function write_thrown() { throw new Error('here'); })(); } catch (error) { console.log(error.stack.split('\n')[1].split(':')[1]); }
write_later('later.csv').then((text) => {
  console.log(text);
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
            ("each.csv", "write_each() in plot.js:14"),
            ("of.csv", "write_of() in plot.js:15"),
        ] {
            assert_eq!(maker(&place, file).as_deref(), Some(function), "{command}");
        }
        assert_eq!(maker(&place, "main.csv"), None, "{command}");
        let of = place.run(&["of", "table.csv"]).out;
        assert!(!of.contains("backstory-functions"), "{of}");
    }
    // Without the option, nothing is loaded.
    place.keep("node plot.js", &[]);
    assert_eq!(makers(&place, "table.csv"), [""; 0]);
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
print(Sys.getenv(c("R_PROFILE_USER", "BACKSTORY_R_PROFILE_USER", "OF_PROFILE")))
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
        ] {
            assert_eq!(maker(&place, file).as_deref(), Some(function), "{command}");
        }
        assert_eq!(maker(&place, "main.csv"), None, "{command}");
        let processes = place.run(&["processes"]).out;
        assert!(
            processes.contains("calls of sd() in stats=1"),
            "{processes}"
        );
    }
}

/// Without the printed body of a function, which has the statements of backstory.
fn function_printed(text: &str) -> (String, String) {
    let (before, rest) = text.split_once("function (path").unwrap_or((text, ""));
    let after = rest.find("[1] \"path\"").map_or("", |at| &rest[at..]);
    (before.to_owned(), after.to_owned())
}

#[test]
fn a_script_that_starts_node_and_r_gives_them_its_own_environment() {
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
