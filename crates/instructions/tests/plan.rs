//! Plans for programs that are compiled here.
#![allow(clippy::unwrap_used)]

use backstory_instructions::{Plan, plan};
use backstory_plain::Object;
use std::fs;
use std::process::Command;

/// Compiles a program.
fn compiled(text: &str, options: &[&str]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let (source, made) = (dir.path().join("asks.c"), dir.path().join("asks"));
    fs::write(&source, text).unwrap();
    let mut compiler = Command::new("cc");
    let status = compiler
        .args(["-O1", "-o"])
        .arg(&made)
        .arg(&source)
        .args(options);
    assert!(status.status().unwrap().success(), "{text}");
    fs::read(made).unwrap()
}

fn plan_of(text: &str) -> Plan {
    let file = compiled(text, &[]);
    plan(&Object::parse(&file).unwrap())
}

/// A program whose `main` executes these instructions.
fn executing(instructions: &str) -> String {
    format!(
        "int main(int n, char **a) {{ (void)a; __asm__ volatile(\"{instructions}\" : \"+c\"(n) :: \
         \"eax\", \"ebx\", \"edx\", \"memory\"); return 0; }}"
    )
}

#[test]
fn each_instruction_is_redirected() {
    for (instructions, jumps) in [
        ("rdtsc; shl $32, %%rdx; or %%rdx, %%rax", 1),
        ("rdtscp; mov %%eax, %%ebx", 1),
        (
            "xor %%eax, %%eax; cpuid; test %%eax, %%eax; je 1f; nop; 1: nop",
            1,
        ),
        // The second one moves with the first one.
        ("cpuid; rdtsc; mov %%eax, %%ebx", 1),
        ("nop; nop; nop; nop; nop", 0),
    ] {
        let plan = plan_of(&executing(instructions));
        assert_eq!((plan.jumps.len(), plan.left), (jumps, 0), "{instructions}");
        assert_eq!(plan.entries.len(), jumps.min(1));
        for jump in &plan.jumps {
            assert!(jump.code.len() >= 5 && jump.code[0] == 0xe9, "{jump:x?}");
            assert_eq!(jump.code.len(), jump.before.len());
        }
    }
}

#[test]
fn an_instruction_stays_where_something_may_jump_behind_it() {
    for instructions in [
        // A branch leads to the second instruction.
        "rdtsc; 1: nop; nop; nop; dec %%ecx; jg 1b",
        // Its address is taken.
        "lea 1f(%%rip), %%rbx; rdtsc; 1: nop; nop; nop",
        // The function may jump to any address.
        "lea 1f(%%rip), %%rbx; jmp *%%rbx; 1: rdtsc; nop; nop; nop",
        // A return address would be another one.
        "rdtsc; call 1f; 1: pop %%rbx",
    ] {
        let plan = plan_of(&executing(instructions));
        assert_eq!((plan.jumps.len(), plan.left), (0, 1), "{instructions}");
    }
}

#[test]
fn a_function_that_is_not_decoded_to_its_end_stays() {
    // 0x06 is no instruction. Behind it, a branch may lead anywhere.
    let plan = plan_of(&executing("rdtsc; nop; nop; nop; jmp 1f; .byte 6; 1: nop"));
    assert_eq!((plan.jumps.len(), plan.left), (0, 1));
}

#[test]
fn code_that_can_be_written_to_stays() {
    let text = executing("rdtsc; nop; nop; nop");
    let alone = ["-nostdlib", "-static", "-no-pie"];
    for (linker, jumps) in [("", 1), (",-N", 0)] {
        let linker = format!("-Wl,-e,main,--eh-frame-hdr{linker}");
        let file = compiled(&text, &[&alone[..], &[linker.as_str()]].concat());
        let plan = plan(&Object::parse(&file).unwrap());
        assert_eq!(
            (plan.jumps.len(), plan.left),
            (jumps, 1 - jumps),
            "{linker}"
        );
    }
}

#[test]
fn bytes_within_another_instruction_are_none() {
    let plan = plan_of(&executing("mov $0x310f, %%eax; mov $0xa20f, %%ebx"));
    assert_eq!(plan, Plan::default());
}

#[test]
fn a_damaged_program_has_a_plan_or_none() {
    let file = compiled(&executing("rdtsc; nop; nop; nop"), &[]);
    for at in (0..file.len()).step_by(97) {
        let mut damaged = file.clone();
        damaged[at] ^= 0xff;
        for bytes in [&file[..at], &damaged] {
            if let Ok(object) = Object::parse(bytes) {
                let _ = plan(&object);
            }
        }
    }
}
