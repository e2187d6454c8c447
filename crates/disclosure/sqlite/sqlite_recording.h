/*
 * The parts of the SQLite extension.
 *
 * The extension is loaded into a program that uses SQLite. It says which rows each transaction
 * changed and which tables it read, by the statements of backstory.h. Where the program is not
 * recorded, it sets no hook.
 *
 *     statement begins ─> tables.c: the tables that it opens ─┐
 *     row changes ──────> rows.c: the row before and after ───┼─> extension.c: said at the commit
 *     commit, rollback ───────────────────────────────────────┘
 *
 * Invariants:
 *
 * - Nothing is said about a change before it is committed, or about one that was rolled back.
 * - No hook changes the database or fails. A change that does not fit into memory is counted.
 * - A connection is used by one thread at a time, as SQLite demands.
 */
#ifndef SQLITE_RECORDING_H
#define SQLITE_RECORDING_H

#include <sqlite3ext.h>
#include <stddef.h>

/* One extension, several files: extension.c defines what the others use. */
extern const sqlite3_api_routines *sqlite3_api;

/* The most rows of a transaction that are said one by one. The others count for their table. */
#define MOST_ROWS 10000
/* The most bytes of a row's JSON, so that its mark is not cut. */
#define MOST_JSON 1200
/* The most characters of a statement. */
#define MOST_STATEMENT 600

/* A text that grows up to a limit. */
struct text {
    size_t length;
    size_t limit;
    int is_cut;
    char bytes[MOST_JSON * 2];
};

void text_begin(struct text *text, size_t limit);
void text_add(struct text *text, const char *bytes);
/* A JSON string, quotes included. */
void text_add_json(struct text *text, const char *bytes, size_t length);
/* A part of a name: bytes with a meaning in names are written as `%` and two digits. */
void text_add_name(struct text *text, const char *bytes, size_t length);

/* A table of the database, as it was when a statement opened it. */
struct table {
    struct table *next;
    char *schema;
    char *name;
    char *uri; /* sqlite:///PATH/NAME */
    int columns;
    char **column;
    unsigned char *is_key; /* by column: a part of the primary key */
    int has_key;           /* else the key is the rowid */
    int is_stale;          /* the columns may have changed since */
    size_t left_out;       /* changes of rows that are not said one by one */
};

/* The tables that a statement reads, found once for each text. */
struct statement {
    struct statement *next;
    char *sql;
    int count;
    struct table **table;
};

/* A changed row. */
struct row {
    char *uri;
    char *json;
    char operation; /* i, u or d */
};

#define MOST_SAVEPOINTS 16
#define SAVEPOINT_NAME 64

/* A savepoint, and how many rows had changed before it. */
struct savepoint {
    char name[SAVEPOINT_NAME];
    size_t count;
};

/* A connection. */
struct connection {
    sqlite3 *db;
    struct table *tables;
    struct statement *statements;
    struct row *rows;
    size_t count;
    size_t room;
    size_t left_out;
    /* The rows before the present statement, and the changes that SQLite had counted. */
    size_t before;
    sqlite3_int64 changes;
    int is_looking; /* the extension's own statement runs */
    int running;    /* statements of the program that have begun and not ended */
    int committed;
    int rolled_back;
    char handle[40];
    int is_said; /* the transaction has begun in the record */
    unsigned long number;
    struct text statements_said;
    struct savepoint savepoint[MOST_SAVEPOINTS];
    int depth;
    int unknown_savepoints;
};

/* tables.c */
/*
 * The tables that a statement reads. NULL if memory is scarce. Tables that it only writes are known
 * to `table_named` afterwards.
 */
const struct statement *tables_of(struct connection *connection, const char *sql);
struct table *table_named(struct connection *connection, const char *schema, const char *name);
void forget_tables(struct connection *connection);
/* The next statements look at the tables anew. */
void expect_other_tables(struct connection *connection);
/* True if a statement begins with this word. */
int begins_with(const char *sql, const char *word);

/* savepoints.c: follows SAVEPOINT, RELEASE and ROLLBACK TO; any other statement is ignored. */
void note_savepoint(struct connection *connection, const char *sql);

/* rows.c */
/* Notes a change. `before` and `after` give the values of a column, or are NULL. */
typedef int (*column_value)(sqlite3 *db, int column, sqlite3_value **value);
void note_change(struct connection *connection, struct table *table, const char *operation,
                 column_value before, column_value after, sqlite3_int64 old_rowid,
                 sqlite3_int64 new_rowid);
void forget_rows(struct connection *connection, size_t from);

#endif
