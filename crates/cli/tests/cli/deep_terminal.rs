//! `record --deep` of programs whose input and output is a terminal, and their replay, which has no
//! terminal.

use backstory_testkit::need::needs;

use super::Place;
use super::deep_equal::is_equal;
use super::deep_replay::compiled;

/// Records a command deeply at a terminal that `script` makes, while two lines are typed there.
/// Returns all that is shown. `None`: there is no `script`.
fn at_a_terminal(place: &Place, command: &str) -> Option<String> {
    if !needs("a program at a terminal", &["script", "stty"]) {
        return None;
    }
    let record = "$B record --deep --outputs full --name deep --contents=lazy --";
    let line = format!(
        "printf 'one\\ntwo\\n' | script -qfec \"stty cols 100; exec {record} {command}\" /dev/null"
    );
    let answer = place.shell(&line);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    Some(answer.out)
}

/// The programs run again with the two lines, and their output is the same.
fn is_equal_again(place: &Place) {
    let Some(answer) = place.again(&[]) else {
        return;
    };
    assert!(is_equal(&answer), "{answer:?}");
    let fed = answer.err.contains(" 8 bytes fed, ");
    assert!(
        fed && !answer.err.contains(" 0 bytes compared"),
        "{answer:?}"
    );
}

#[test]
fn a_shell_reads_the_lines_again_that_were_typed_at_its_terminal() {
    let place = Place::new();
    let script = "test -t 0 && test -t 1 || exit 1\nread a\necho got $a\nread b\necho then $b\n";
    place.write_aged("typed.sh", script);
    let Some(shown) = at_a_terminal(&place, "sh typed.sh") else {
        return;
    };
    for part in ["got one", "then two"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    is_equal_again(&place);
}

/// Asks the terminal for its width, turns its echo off, and reads two lines.
const PROMPT: &str = r#"
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
int main(void)
{
    struct termios settings;
    struct winsize size;
    char line[100];
    if (!isatty(0) || !isatty(1) || ioctl(0, TIOCGWINSZ, &size) || tcgetattr(0, &settings))
        return 1;
    settings.c_lflag &= ~(tcflag_t)ECHO;
    if (tcsetattr(0, TCSANOW, &settings))
        return 2;
    printf("%d columns\n", size.ws_col);
    for (int n = 0; n < 2; n++) {
        printf("line %d: ", n);
        fflush(stdout);
        ssize_t length = read(0, line, sizeof line);
        if (length <= 0)
            return 3;
        printf("%.*s", (int)length, line);
    }
    return 0;
}
"#;

#[test]
fn a_program_that_sets_its_terminal_has_the_same_width_and_lines_again() {
    let place = Place::new();
    if !compiled(&place, "", "prompt", PROMPT) {
        return;
    }
    let Some(shown) = at_a_terminal(&place, "./prompt") else {
        return;
    };
    for part in ["100 columns", "line 0: one", "line 1: two"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    is_equal_again(&place);
}
