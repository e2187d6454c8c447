//! `replay --deep`: a program gets the recorded listings of directories of the system. The root has
//! only the files that the run used.

use super::Place;
use super::deep_equal::{is_equal, program_is_equal_again};
use super::deep_replay::{compiled, replayed_program};

/// Lists a directory of the system: whole, again from its beginning, and from a place in it. Then
/// from that place and from the beginning, behind the end. Also by two descriptors of one open
/// directory, with little room, and behind calls without room or memory for entries.
const LISTS: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static void print(DIR *all)
{
    struct dirent *entry;
    while ((entry = readdir(all)))
        printf("%s %d %llu\n", entry->d_name, entry->d_type, (unsigned long long)entry->d_ino);
    puts("end");
}
int main(void)
{
    DIR *all = opendir("/usr/bin");
    print(all);
    rewinddir(all);
    for (int n = 0; n < 10; n++)
        readdir(all);
    long place = telldir(all);
    char name[256];
    strcpy(name, readdir(all)->d_name);
    seekdir(all, place);
    printf("%s %d\n", name, strcmp(name, readdir(all)->d_name));
    print(all);
    seekdir(all, place);
    print(all);
    rewinddir(all);
    print(all);
    closedir(all);
    char room[400];
    int one = open("/usr/bin", O_RDONLY | O_DIRECTORY), other = dup(one);
    long got, sum = 0;
    for (long space = -1; space < 1000; space += 500) {
        got = syscall(SYS_getdents64, one, 8, space);
        printf("%ld %d\n", got, errno);
    }
    while ((got = syscall(SYS_getdents64, sum % 2 ? one : other, room, sizeof room)) > 0)
        sum += got + 1;
    printf("%ld %ld\n", got, sum);
    return 0;
}
"#;

#[test]
fn directories_of_the_system_have_all_their_names_in_the_recorded_order() {
    program_is_equal_again("", "lists", LISTS);
}

/// Makes files, but for the one that its argument names, and removes one. Lists their directory
/// behind each of that. It fails if the list has a file that is not there.
const CHANGES: &str = r#"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
static void print(void)
{
    char here[4096];
    DIR *all = opendir(realpath("made", here));
    struct dirent *entry;
    while ((entry = readdir(all))) {
        if (faccessat(dirfd(all), entry->d_name, F_OK, 0))
            exit(9);
        printf("%s ", entry->d_name);
    }
    puts("");
    closedir(all);
}
int main(int count, char **words)
{
    (void)count;
    mkdir("made", 0755);
    for (char name[] = "made/a"; name[5] < 'h'; name[5]++) {
        if (name[5] == *words[1])
            continue;
        close(open(name, O_WRONLY | O_CREAT, 0644));
        print();
    }
    unlink("made/c");
    print();
    return 0;
}
"#;

#[test]
fn a_directory_that_the_program_changes_lists_what_is_in_it() {
    let line = "RECORD ./changes - > out";
    let Some((place, answer)) = replayed_program("", "changes", CHANGES, line) else {
        return;
    };
    assert!(is_equal(&answer), "{answer:?}");
    let Some(other) = place.report(&["--arg", "1=d"], 1) else {
        return;
    };
    assert_eq!(other["exit"], 0, "a file that was not made: {other}");
    let states = other["outputs"].as_array().unwrap().iter();
    let missing: Vec<_> = states.filter(|file| file["state"] == "missing").collect();
    assert_eq!(missing.len(), 1, "{other}");
}

/// Makes directories with many files, which the program does not use. So the root lacks them. In
/// most file systems, their order is not that of their names.
const MAKE: &str = "mkdir -p top/inner && ln -s inner top/link && \
    for n in $(seq 200); do : > top/file$n; : > top/inner/other$n; done";

/// Lists directories that it opens relative to a descriptor and to its current directory, which it
/// changes. Some are behind a symbolic link.
const WALKS: &str = r#"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static void print(DIR *all)
{
    struct dirent *entry;
    while (all && (entry = readdir(all)))
        printf("%s %d %llu\n", entry->d_name, entry->d_type, (unsigned long long)entry->d_ino);
    puts("end");
    if (all)
        closedir(all);
}
static DIR *below(int directory, const char *name)
{
    return fdopendir(openat(directory, name, O_RDONLY | O_DIRECTORY));
}
int main(void)
{
    int top = open("top", O_RDONLY | O_DIRECTORY);
    print(below(top, "inner"));
    print(below(top, "link"));
    print(below(top, "."));
    print(opendir("top/inner"));
    if (chdir("top"))
        return 1;
    print(opendir("."));
    print(opendir("link"));
    if (fchdir(dirfd(below(top, "inner"))))
        return 1;
    print(below(AT_FDCWD, "."));
    print(opendir(".."));
    return 0;
}
"#;

#[test]
fn directories_that_are_opened_by_a_relative_path_have_the_recorded_order() {
    let place = Place::new();
    if !compiled(&place, "", "walks", WALKS) {
        return;
    }
    let made = place.shell(MAKE);
    assert_eq!(made.status, 0, "{made:?}");
    place.deep("RECORD ./walks > out");
    let out = place.out();
    assert_eq!(out.lines().filter(|line| *line == "end").count(), 8);
    for (name, count) in [("file1 ", 3), ("other1 ", 5)] {
        let all = out.lines().filter(|line| line.starts_with(name));
        assert_eq!(all.count(), count, "{name}");
    }
    place.is_equal_again();
}
