//! The columns that a statement of a watched database used, in a line.
//!
//! In: the facts that the source recorded. Out: `wrote sum; read id, rates.factor`. Columns of the
//! table in question stand without its name.

use serde_json::Value;

/// The number of columns of one kind that are printed.
const COLUMNS: usize = 8;

/// The kinds of use, and their words.
const USES: [(&str, &str); 4] = [
    ("written", "wrote"),
    ("possibly_written", "possibly wrote"),
    ("read", "read"),
    ("possibly_read", "possibly read"),
];

/// The columns that a statement used. `table`: `SCHEMA.TABLE`.
pub fn line(columns: &Value, table: &str) -> Option<String> {
    let parts = USES.iter().filter_map(|(list, word)| {
        let names = names(&columns[*list]).map(|name| short(name, table));
        Some(format!("{word} {}", joined(names.collect())?))
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The columns of other tables that a statement read.
pub fn read_elsewhere(columns: &Value, table: &str) -> Option<String> {
    let parts = USES[2..].iter().filter_map(|(list, word)| {
        let is_other = |name: &&str| column_of(name, table).is_none();
        let names = names(&columns[*list]).filter(is_other);
        let names = names.map(|name| short(name, table));
        Some(format!("{word} {}", joined(names.collect())?))
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn names(list: &Value) -> impl Iterator<Item = &str> {
    let names = list.as_array().into_iter().flatten();
    names.filter_map(Value::as_str)
}

fn column_of<'n>(name: &'n str, table: &str) -> Option<&'n str> {
    name.strip_prefix(table)?.strip_prefix('.')
}

/// The name without its table, if that is the one in question, or without its schema, if that is
/// the same.
fn short(name: &str, table: &str) -> String {
    let schema = table.split('.').next().unwrap_or_default();
    let own = column_of(name, table);
    let name = own.or_else(|| column_of(name, schema)).unwrap_or(name);
    name.to_owned()
}

fn joined(names: Vec<String>) -> Option<String> {
    let more = names.len().saturating_sub(COLUMNS);
    let first = names.get(..names.len() - more)?;
    (!first.is_empty()).then(|| match more {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_of_the_table_stand_without_its_name_and_others_with_theirs() {
        let columns = json!({
            "written": ["public.a.x"],
            "read": ["public.a.id", "public.b.y", "other.c.z"],
            "possibly_read": ["public.ab.*"],
        });
        let text = line(&columns, "public.a").unwrap();
        assert_eq!(text, "wrote x; read id, b.y, other.c.z; possibly read ab.*");
        let elsewhere = read_elsewhere(&columns, "public.a").unwrap();
        assert_eq!(elsewhere, "read b.y, other.c.z; possibly read ab.*");
        assert_eq!(line(&json!(["id"]), "public.a"), None);
    }

    #[test]
    fn many_columns_are_counted() {
        let names: Vec<String> = (0..COLUMNS + 2).map(|at| format!("s.t.c{at}")).collect();
        let text = line(&json!({"written": names}), "s.t").unwrap();
        assert!(text.ends_with("c7 and 2 more"), "{text}");
    }
}
