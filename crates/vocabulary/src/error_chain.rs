//! An error and its causes as one text. In: an error. Out: the message that the user reads.

use std::error::Error;

/// An error and its causes, with `: ` between. A cause is left out if the text before contains it,
/// because many libraries repeat the cause in their own message.
pub fn error_chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        cause = error.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use std::fmt::{Display, Formatter, Result};
    use std::io;

    use super::*;

    #[test]
    fn a_reported_cause_is_not_repeated() {
        let inner = io::Error::other("no space");
        let outer = io::Error::other(Wrapped(inner));
        assert_eq!(error_chain(&outer), "append: no space");
    }

    #[derive(Debug)]
    struct Wrapped(io::Error);

    impl Display for Wrapped {
        fn fmt(&self, f: &mut Formatter<'_>) -> Result {
            write!(f, "append: {}", self.0)
        }
    }

    impl Error for Wrapped {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }
}
