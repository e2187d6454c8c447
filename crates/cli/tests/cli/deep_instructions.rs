//! `record --deep --time exact`: instructions that ask the processor get the recorded answers.

use super::Place;
use super::deep_replay::{compiled, recorded_program};
use super::deep_time::{deep_log, record};
use backstory_abi::deep;
use backstory_deep::DeepLog;

/// The number of facts of a kind in the record of the first process.
fn facts(place: &Place, number: u16) -> usize {
    facts_of_each(place, number)[0]
}

/// The same for each process.
fn facts_of_each(place: &Place, number: u16) -> Vec<usize> {
    let log = DeepLog::open(deep_log(place)).unwrap();
    let processes = log.processes().iter();
    let calls = processes.map(|process| log.process_calls(process.epoch));
    let facts = calls.map(|calls| calls.filter(|call| call.number == number).count());
    facts.collect()
}

/// Asks in threads, in a child, in a signal handler, and behind a fault that it handles itself.
const ASKS: &str = r#"
#include <cpuid.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>
enum { THREADS = 3, TIMES = 40 };
static unsigned long long taken[THREADS][TIMES], in_handler, last;
static sigjmp_buf behind;
static void handler(int signal) { (void)signal; in_handler = __rdtsc(); }
static void fault(int signal) { in_handler = __rdtsc() + signal; siglongjmp(behind, 1); }
static void *take(void *own)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, 0);
    for (int n = 0; n < TIMES; n++)
        ((unsigned long long *)own)[n] = __rdtsc();
    return 0;
}
static void tell(const char *whose)
{
    unsigned a, b, c, d, processor;
    for (unsigned leaf = 0; leaf < 12; leaf++) {
        __cpuid_count(leaf, 1, a, b, c, d);
        printf("%s %u: %x %x %x %x\n", whose, leaf, a, b, c, d);
    }
    last = __rdtscp(&processor);
    printf("%s %llu %x %llu\n", whose, last, processor, __rdtsc());
}
int main(void)
{
    pthread_t threads[THREADS];
    signal(SIGUSR1, handler);
    signal(SIGSEGV, fault);
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], 0, take, taken[t]);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], 0);
    for (int t = 0; t < THREADS; t++)
        for (int n = 0; n < TIMES; n++)
            printf("%d %llu\n", t, taken[t][n]);
    raise(SIGUSR1);
    printf("%llu\n", in_handler);
    if (!sigsetjmp(behind, 1))
        *(volatile int *)8 = 1;
    printf("%llu\n", in_handler);
    tell("parent");
    fflush(stdout);
    if (fork() == 0) {
        tell("child");
        return 0;
    }
    wait(0);
    tell("parent");
    return 0;
}
"#;

#[test]
fn what_the_processor_told_comes_again() {
    for options in ["-O2 -pthread", "-O0 -pthread"] {
        let place = Place::new();
        if !compiled(&place, options, "asks", ASKS) {
            return;
        }
        record(&place, "RECORD ./asks > out");
        let answers = facts(&place, deep::COUNTER);
        assert!(answers >= 126, "{options}: {answers}");
        assert_eq!(facts(&place, deep::UNCOUNTED), 0, "{options}");
        place.is_equal_again();
    }
}

/// Says 0 if an instruction changes nothing but what it sets: registers, flags, and the memory
/// behind the stack pointer. A branch and an address move with it.
const CAREFUL: &str = r#"
static unsigned counted = 1;
int main(void)
{
    long bad = 0;
    __asm__ volatile("mov $7, %%rbx; mov $8, %%rcx; mov $9, %%rsi; mov $10, %%rdi; mov $11, %%r8;"
                     "mov $12, %%r9; mov $13, %%r10; mov $14, %%r11; mov $15, %%r12;"
                     "mov $16, %%r13; mov $17, %%r14; mov $18, %%r15;"
                     "pcmpeqd %%xmm15, %%xmm15; movq %%rsi, -8(%%rsp); movq %%rdi, -128(%%rsp);"
                     "xor %%eax, %%eax; cmp $1, %%eax; rdtsc; jc 1f; movq $1, %0; 1:"
                     "jns 2f; add %%rcx, %%rbx; add %%rsi, %%rbx; add %%rdi, %%rbx;"
                     "add %%r8, %%rbx; add %%r9, %%rbx; add %%r10, %%rbx; add %%r11, %%rbx;"
                     "add %%r12, %%rbx; add %%r13, %%rbx; add %%r14, %%rbx; add %%r15, %%rbx;"
                     "add -8(%%rsp), %%rbx; add -128(%%rsp), %%rbx; movq %%xmm15, %%rcx;"
                     "add %%rcx, %%rbx; cmp $168, %%rbx; je 3f; 2: movq $2, %0; 3:"
                     "rdtsc; movl %%eax, %1"
                     : "+m"(bad), "+m"(counted)::"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8",
                     "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm15", "memory", "cc");
    return bad ? bad : counted == 1 ? 3 : 0;
}
"#;

#[test]
fn an_instruction_changes_nothing_but_what_it_sets() {
    let place = Place::new();
    if !compiled(&place, "-O0 -mno-red-zone", "careful", CAREFUL) {
        return;
    }
    assert_eq!(place.shell("./careful").status, 0);
    record(&place, "RECORD ./careful");
    assert_eq!(facts(&place, deep::COUNTER), 2);
    place.is_equal_again();
}

/// A library that asks.
const COUNT: &str = "unsigned long long count(void) { return __builtin_ia32_rdtsc() + 1; }";

/// Loads a library that asks, asks it, and does so again. The library then has the same place.
const LOADS: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
static void ask(void)
{
    void *library = dlopen("./libcount.so", RTLD_NOW);
    unsigned long long (*count)(void) = library ? dlsym(library, "count") : 0;
    for (int n = 0; count && n < 20; n++)
        printf("%llu\n", count());
    if (library)
        dlclose(library);
}
int main(void)
{
    ask();
    ask();
    return 0;
}
"#;

#[test]
fn a_library_that_is_loaded_later_asks_again() {
    let place = Place::new();
    let is_made = compiled(&place, "", "loads", LOADS)
        && compiled(&place, "-O1 -shared -fPIC", "libcount", COUNT);
    if !is_made {
        return;
    }
    assert_eq!(place.shell("mv libcount libcount.so").status, 0);
    record(&place, "RECORD ./loads > out");
    assert_eq!(facts(&place, deep::COUNTER), 40);
    assert_eq!(facts(&place, deep::UNCOUNTED), 0);
    place.is_equal_again();
}

/// Asks, maps the code of a library without the loader, protects memory, and says whether the code
/// is that of the file.
const MAPS: &str = r#"
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static char head[4096], code[65536];
int main(void)
{
    printf("%llu\n", __builtin_ia32_rdtsc());
    int file = open("./libcount.so", O_RDONLY);
    if (read(file, head, sizeof head) != sizeof head)
        return 1;
    Elf64_Phdr *part = (void *)(head + ((Elf64_Ehdr *)head)->e_phoff);
    while (!(part->p_flags & PF_X))
        part++;
    long size = pread(file, code, part->p_filesz, part->p_offset);
    char *mapped = mmap(0, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, part->p_offset);
    char *other = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (size <= 0 || mapped == MAP_FAILED || mprotect(other, 4096, PROT_READ))
        return 2;
    puts(memcmp(mapped, code, size) ? "other code" : "the same code");
    return 0;
}
"#;

#[test]
fn code_that_a_program_maps_by_itself_stays_as_in_the_record() {
    let place = Place::new();
    let is_made = compiled(&place, "", "maps", MAPS)
        && compiled(&place, "-O1 -shared -fPIC", "libcount", COUNT);
    if !is_made {
        return;
    }
    assert_eq!(place.shell("mv libcount libcount.so").status, 0);
    record(&place, "RECORD ./maps > out");
    let out = place.out();
    assert!(out.ends_with("\nthe same code\n"), "{out}");
    place.is_equal_again();
}

/// The branch leads behind the instruction, where a jump would have its address. A child has the
/// same code.
const ENTERED: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    if (fork() != 0)
        return wait(0) < 0;
    int left = 3;
    __asm__ volatile("rdtsc; 1: nop; nop; nop; dec %0; jg 1b" : "+c"(left)::"eax", "edx");
    printf("%d\n", left);
    return 0;
}
"#;

#[test]
fn an_instruction_that_stays_is_not_recorded_and_the_verdict_says_so() {
    let place = Place::new();
    if !compiled(&place, "", "entered", ENTERED) {
        return;
    }
    record(&place, "RECORD ./entered > out");
    assert_eq!(place.out(), "0\n");
    assert_eq!(facts(&place, deep::COUNTER), 0);
    assert_eq!(facts_of_each(&place, deep::UNCOUNTED), [1, 1]);
    if let Some(answer) = place.again(&[]) {
        assert!(answer.err.contains("ask the processor"), "{answer:?}");
    }
}

#[test]
fn an_ordinary_deep_record_leaves_the_instructions_alone() {
    let options = "-O0 -mno-red-zone";
    if let Some(place) = recorded_program(options, "careful", CAREFUL, "RECORD ./careful") {
        assert_eq!(facts(&place, deep::COUNTER), 0);
        assert_eq!(facts(&place, deep::UNCOUNTED), 0);
    }
}
