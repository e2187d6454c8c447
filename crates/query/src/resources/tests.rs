use super::*;

const ACCOUNTS: &str = "postgres://localhost:5432/bank/public.accounts";

#[test]
fn a_table_is_meant_by_each_part_of_its_name() {
    for part in [
        "accounts",
        "public.accounts",
        "bank/accounts",
        "bank/public.accounts",
    ] {
        assert!(is_table(ACCOUNTS, part), "{part}");
    }
    assert!(is_table(ACCOUNTS, ACCOUNTS));
    for part in ["account", "other.accounts", "shop/accounts"] {
        assert!(!is_table(ACCOUNTS, part), "{part}");
    }
}

#[test]
fn a_name_without_quotes_means_a_table_in_lower_case_in_its_schema_and_database() {
    for name in [
        "Accounts",
        "Public.ACCOUNTS",
        "bank.accounts",
        "Bank.Accounts",
        "bank.public.accounts",
        "bank/Public.Accounts",
    ] {
        assert!(!is_table(ACCOUNTS, name), "{name}");
        assert!(is_unquoted_table(ACCOUNTS, name), "{name}");
    }
    let quoted = "postgres://localhost:5432/Bank/public.Accounts";
    assert!(is_unquoted_table(
        "postgres://localhost:5432/Bank/public.accounts",
        "Bank.Accounts"
    ));
    for (full, name) in [
        (quoted, "accounts"),
        (ACCOUNTS, "shop.accounts"),
        (ACCOUNTS, "bankaccounts"),
        ("mariadb://localhost:3306/bank/accounts", "Accounts"),
    ] {
        assert!(!is_unquoted_table(full, name), "{name}");
    }
}

#[test]
fn a_table_of_a_database_without_schemas_is_meant_with_its_database() {
    let full = "mariadb://localhost:3306/bank/accounts";
    for part in ["accounts", "bank.accounts", "bank/accounts", full] {
        assert!(is_table(full, part), "{part}");
    }
    for part in ["shop.accounts", "shop/accounts", ".accounts", "bank"] {
        assert!(!is_table(full, part), "{part}");
    }
    assert!(is_of_database(full.as_bytes()) && !is_of_database(b"/mariadb://x"));
}

#[test]
fn a_table_of_a_file_is_meant_by_the_names_that_the_extension_gives_it() {
    let path = b"/data/my bank.db";
    let full = "sqlite:///data/my%20bank.db/accounts";
    for part in [
        "accounts",
        "my bank.db.accounts",
        "my bank.db/accounts",
        full,
    ] {
        let found = SqliteTable::meant(path, part).unwrap();
        let row = found.row(&found.table, &[("id".to_owned(), "4/2".to_owned())]);
        assert_eq!(row, format!("{full}?id=4%2f2"), "{part}");
        assert!(is_row(
            row.split_once('?').map(|parts| parts.1),
            Some("4/2")
        ));
    }
    assert_eq!(SqliteTable::meant(path, "shop.db/accounts"), None);
    assert_eq!(SqliteTable::meant(path, "sqlite:///shop.db/accounts"), None);
}

#[test]
fn a_row_is_meant_by_the_value_of_its_key_or_by_all_columns() {
    assert!(is_row(Some("id=42"), Some("42")));
    assert!(is_row(Some("id=42"), Some("id=42")));
    assert!(is_row(Some("a=1&b=x%26y"), Some("a=1,b=x&y")));
    assert!(!is_row(Some("a=1&b=2"), Some("1")));
    assert!(!is_row(Some("id=42"), None) && !is_row(None, Some("42")));
    assert!(is_row(None, None));
}
