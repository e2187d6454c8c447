//! Runs the recorder's logic that needs no arena under AddressSanitizer and
//! UndefinedBehaviorSanitizer (`tests/sanitized/driver.c`).

use std::path::Path;
use std::process::Command;

#[test]
fn the_recorders_logic_touches_no_byte_that_is_not_its_own() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sanitized");
    let compile = |source: &Path, program: &Path| {
        let mut gcc = Command::new("gcc");
        gcc.args([
            "-std=gnu17",
            "-g",
            "-O1",
            "-fno-builtin",
            "-fno-strict-aliasing",
        ])
        .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
        .arg("-I")
        .arg(here.join("c"))
        .arg("-I")
        .arg(here.join("../abi/include"))
        .arg(source)
        .arg("-o")
        .arg(program);
        gcc.output()
    };
    let empty = program.with_extension("c");
    std::fs::write(&empty, "int main(void) { return 0; }\n").unwrap();
    if !compile(&empty, &program).is_ok_and(|output| output.status.success()) {
        backstory_testkit::need::skipped(
            "the sanitized recorder",
            "needs gcc with AddressSanitizer",
        );
        return;
    }
    let compiled = compile(&here.join("tests/sanitized/driver.c"), &program).unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let run = Command::new(&program).output().unwrap();
    let text =
        String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && text.starts_with("fine"), "{text}");
}
