//! The names of C++ functions in symbols, as the ABI of C++ for Itanium mangles them.
//!
//! Only names of namespaces, classes and functions are read. `None` for all others, as templates
//! and operators: the debugging information names them, if there is some.

/// The qualified name of a symbol, without its parameters.
pub(crate) fn qualified_name(symbol: &str) -> Option<String> {
    let rest = symbol.strip_prefix("_Z")?;
    let Some(nested) = rest.strip_prefix('N') else {
        return Some(identifier(rest)?.0.to_owned());
    };
    // `const` and `&` behind the parameters.
    let mut rest = nested.trim_start_matches(['r', 'V', 'K', 'R', 'O']);
    let mut names: Vec<String> = Vec::new();
    while !rest.starts_with('E') {
        if let Some((name, after)) = identifier(rest) {
            names.push(name.to_owned());
            rest = after;
            continue;
        }
        let own = names.last()?.clone();
        let kind = rest.get(..2)?;
        names.push(match kind {
            "C1" | "C2" => own,
            "D0" | "D1" | "D2" => format!("~{own}"),
            _ => return None,
        });
        rest = &rest[2..];
    }
    Some(names.join("::"))
}

/// The identifier that begins here behind its length, and the rest.
fn identifier(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = text.get(..digits)?.parse().ok()?;
    let end = digits.checked_add(length)?;
    let name = text.get(digits..end).filter(|name| !name.is_empty())?;
    let name = match name.starts_with("_GLOBAL__N") {
        true => "(anonymous namespace)",
        false => name,
    };
    Some((name, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_namespaces_classes_and_functions_are_read() {
        for (symbol, expected) in [
            ("_ZN4data5Table5writeEPKc", Some("data::Table::write")),
            ("_ZNK4data5Table4sizeEv", Some("data::Table::size")),
            ("_Z4downi", Some("down")),
            ("_ZN4data5TableC2Ei", Some("data::Table::Table")),
            ("_ZN4data5TableD1Ev", Some("data::Table::~Table")),
            (
                "_ZN12_GLOBAL__N_14readEv",
                Some("(anonymous namespace)::read"),
            ),
            ("_ZN4dataplERKS0_", None),
            ("_ZNSt6vectorIiE4sizeEv", None),
            ("_ZN99999999999999999999xE", None),
            ("_ZN4da", None),
            ("main", None),
        ] {
            assert_eq!(qualified_name(symbol).as_deref(), expected, "{symbol}");
        }
    }
}
