//! `replay --deep`: what a program asks about the machine and its file systems.

use super::deep_equal::program_is_equal_again;

/// Prints figures that another moment, and another root, do not have.
const ASKER: &str = r#"
#include <stdio.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
int main(void) {
    struct statfs kernels;
    struct statvfs libcs;
    struct sysinfo machine;
    if (statfs("/", &kernels) || statvfs("/", &libcs) || sysinfo(&machine)) return 1;
    printf("%lx %lu %lu\n", (long)kernels.f_type, kernels.f_blocks, kernels.f_files);
    printf("%lu %lu %lu %lx\n", libcs.f_frsize, libcs.f_blocks, libcs.f_namemax, libcs.f_flag);
    printf("%lx %d\n", libcs.f_fsid, statvfs("/is/not/there", &libcs));
    printf("%ld %lu %lu\n", machine.uptime, machine.freeram, machine.loads[0]);
}
"#;

#[test]
fn figures_of_the_machine_and_of_file_systems_come_again() {
    program_is_equal_again("", "asker", ASKER);
}
