/*
 * The hooks of the SQLite extension: statements, changes, commits and rollbacks.
 *
 * It uses sqlite3_trace_v2, the commit hook, the rollback hook and the preupdate hook. SQLite has
 * one of each for a connection. A program that sets its own replaces that of the extension. Without
 * the preupdate hook in the library, the update hook gives the rowid alone.
 */
#define _GNU_SOURCE
#include "../include/backstory.h"
#include "sqlite_recording.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SQLITE_EXTENSION_INIT1

/*
 * Functions that the library has only if it was built with them. They are in no table of the
 * extension interface, so they are looked up in the library that the interface's functions are in.
 */
static void *(*preupdate_hook)(sqlite3 *,
                               void (*)(void *, sqlite3 *, int, char const *, char const *,
                                        sqlite3_int64, sqlite3_int64),
                               void *);
static column_value preupdate_old;
static column_value preupdate_new;

static void find_preupdate(void)
{
    Dl_info library;
    if (!dladdr((void *)sqlite3_api->libversion_number, &library))
        return;
    void *handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    /* SQLite may be a part of the program. */
    handle = handle ? handle : dlopen(NULL, RTLD_LAZY);
    if (!handle)
        return;
    *(void **)&preupdate_old = dlsym(handle, "sqlite3_preupdate_old");
    *(void **)&preupdate_new = dlsym(handle, "sqlite3_preupdate_new");
    *(void **)&preupdate_hook = dlsym(handle, "sqlite3_preupdate_hook");
}

int sqlite3_backstorysqlite_init(sqlite3 *db, char **message, const sqlite3_api_routines *api);

/* ---- what is said ---------------------------------------------------------------------------- */

static void begin_transaction(struct connection *connection)
{
    static unsigned long begun;
    connection->number = __atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
    snprintf(connection->handle, sizeof connection->handle, "sqlite-%d-%lu", (int)getpid(),
             connection->number);
    connection->committed = connection->rolled_back = 0;
    connection->depth = connection->unknown_savepoints = 0;
    connection->is_said = 0;
    text_begin(&connection->statements_said, MOST_JSON);
}

/* True if the statement only begins or ends a transaction or a part of one. */
static int only_controls(const char *sql)
{
    static const char *const words[] = {"BEGIN",    "COMMIT",    "END",
                                        "ROLLBACK", "SAVEPOINT", "RELEASE"};
    for (size_t at = 0; at < sizeof words / sizeof *words; at++)
        if (begins_with(sql, words[at]))
            return 1;
    return 0;
}

/* Says the transaction, by its first statement that reads or changes something. */
static void say_transaction(struct connection *connection, const char *sql)
{
    if (connection->is_said || only_controls(sql))
        return;
    sql += strspn(sql, " \t\r\n;");
    char shown[MOST_STATEMENT + 1];
    snprintf(shown, sizeof shown, "%s", sql);
    backstory_begin_in(connection->handle, NULL, "transaction", shown);
    connection->is_said = 1;
}

static void add_statement(struct connection *connection, const char *sql)
{
    struct text *said = &connection->statements_said;
    struct text one;
    size_t length = strnlen(sql, MOST_STATEMENT);
    text_begin(&one, MOST_JSON);
    text_add(&one, said->length ? ",{\"text\":" : "{\"text\":");
    text_add_json(&one, sql, length);
    text_add(&one, "}");
    if (!one.is_cut && said->length + one.length < said->limit - 200)
        text_add(said, one.bytes);
}

static void say_rows(struct connection *connection)
{
    for (size_t at = 0; at < connection->count; at++) {
        const struct row *row = &connection->rows[at];
        switch (row->operation) {
        case 'i': backstory_write_in(connection->handle, row->uri); break;
        case 'u': backstory_change_in(connection->handle, row->uri); break;
        default: backstory_delete_in(connection->handle, row->uri);
        }
        backstory_record_in(connection->handle, "sqlite.row", row->json);
        /* The rows of a table follow each other: one statement about the table is enough. */
        size_t table = strcspn(row->uri, "?");
        const struct row *last = at ? row - 1 : NULL;
        if (!last || strncmp(last->uri, row->uri, table + 1)) {
            char uri[1000];
            snprintf(uri, sizeof uri, "%.*s", (int)table, row->uri);
            backstory_change_in(connection->handle, uri);
        }
    }
    for (struct table *table = connection->tables; table; table = table->next)
        if (table->left_out)
            backstory_change_in(connection->handle, table->uri);
}

static void say_end(struct connection *connection)
{
    if (connection->committed && !connection->rolled_back)
        say_rows(connection);
    struct text fact;
    char number[120];
    text_begin(&fact, sizeof fact.bytes - 1);
    snprintf(number, sizeof number,
             "{\"number\":%lu,\"committed\":%s,\"rows\":%zu,\"rows_left_out\":%zu",
             connection->number,
             connection->committed && !connection->rolled_back ? "true" : "false",
             connection->count, connection->left_out);
    text_add(&fact, number);
    text_add(&fact, ",\"statements\":[");
    text_add(&fact, connection->statements_said.bytes);
    text_add(&fact, "]}");
    backstory_record_in(connection->handle, "sqlite.transaction", fact.bytes);
    backstory_end_in(connection->handle);
}

static void end_transaction(struct connection *connection)
{
    if (connection->is_said)
        say_end(connection);
    forget_rows(connection, 0);
    for (struct table *table = connection->tables; table; table = table->next)
        table->left_out = 0;
    connection->left_out = 0;
    connection->handle[0] = 0;
}

/* ---- statements ------------------------------------------------------------------------------ */

/* True if the statement may change what names mean. */
static int changes_schema(const char *sql)
{
    static const char *const words[] = {"CREATE", "ALTER", "DROP", "ATTACH", "DETACH", "VACUUM"};
    for (size_t at = 0; at < sizeof words / sizeof *words; at++)
        if (begins_with(sql, words[at]))
            return 1;
    return 0;
}

/* The changes of a statement that failed were undone: SQLite did not count them. */
static void forget_failed_changes(struct connection *connection)
{
    if (connection->count > connection->before &&
        sqlite3_total_changes64(connection->db) == connection->changes)
        forget_rows(connection, connection->before);
    connection->before = connection->count;
    connection->changes = sqlite3_total_changes64(connection->db);
}

static void statement_begins(struct connection *connection, sqlite3_stmt *statement)
{
    const char *sql = sqlite3_sql(statement);
    if (!sql)
        return;
    if (!connection->handle[0]) {
        begin_transaction(connection);
        connection->before = 0;
        connection->changes = sqlite3_total_changes64(connection->db);
    }
    forget_failed_changes(connection);
    connection->running++;
    say_transaction(connection, sql);
    add_statement(connection, sql);
    note_savepoint(connection, sql);
    if (changes_schema(sql)) {
        expect_other_tables(connection);
        return;
    }
    connection->is_looking = 1;
    const struct statement *opens = tables_of(connection, sql);
    connection->is_looking = 0;
    for (int at = 0; opens && at < opens->count; at++)
        backstory_read_in(connection->handle, opens->table[at]->uri);
}

static void statement_ended(struct connection *connection)
{
    forget_failed_changes(connection);
    if (connection->running > 0)
        connection->running--;
    if (connection->handle[0] && sqlite3_get_autocommit(connection->db) && !connection->running)
        end_transaction(connection);
}

static int on_trace(unsigned event, void *of, void *statement, void *detail)
{
    struct connection *connection = of;
    if (event == SQLITE_TRACE_CLOSE) {
        if (connection->handle[0])
            end_transaction(connection);
        forget_tables(connection);
        forget_rows(connection, 0);
        free(connection->rows);
        sqlite3_free(connection);
        return 0;
    }
    if (connection->is_looking)
        return 0;
    /* A trigger's program begins with a comment instead of a statement. */
    const char *text = detail;
    if (event == SQLITE_TRACE_STMT && !(text && text[0] == '-' && text[1] == '-'))
        statement_begins(connection, statement);
    if (event == SQLITE_TRACE_PROFILE)
        statement_ended(connection);
    return 0;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void on_change(void *of, sqlite3 *db, int operation, const char *schema, const char *name,
                      sqlite3_int64 old_rowid, sqlite3_int64 new_rowid)
{
    (void)db;
    struct connection *connection = of;
    if (!sqlite3_strnicmp(name, "sqlite_", 7))
        return;
    for (struct table *table = connection->tables; table; table = table->next) {
        if (sqlite3_stricmp(table->schema, schema) || sqlite3_stricmp(table->name, name))
            continue;
        switch (operation) {
        case SQLITE_INSERT:
            note_change(connection, table, "insert", NULL, preupdate_new, 0, new_rowid);
            return;
        case SQLITE_DELETE:
            note_change(connection, table, "delete", preupdate_old, NULL, old_rowid, 0);
            return;
        default:
            note_change(connection, table, "update", preupdate_old, preupdate_new, old_rowid,
                        new_rowid);
            return;
        }
    }
    /* No statement that was looked at opened the table. */
    connection->left_out++;
}

/* The library gives the rowid alone. */
static void on_update(void *of, int operation, const char *schema, const char *name,
                      sqlite3_int64 rowid)
{
    struct connection *connection = of;
    for (struct table *table = connection->tables; table; table = table->next)
        if (!sqlite3_stricmp(table->schema, schema) && !sqlite3_stricmp(table->name, name))
            note_change(connection, table,
                        operation == SQLITE_INSERT   ? "insert"
                        : operation == SQLITE_DELETE ? "delete"
                                                     : "update",
                        NULL, NULL, rowid, rowid);
}

static int on_commit(void *of)
{
    struct connection *connection = of;
    connection->committed = 1;
    return 0;
}

static void on_rollback(void *of)
{
    struct connection *connection = of;
    connection->rolled_back = 1;
    forget_rows(connection, 0);
    connection->before = 0;
}

__attribute__((visibility("default"))) int
sqlite3_backstorysqlite_init(sqlite3 *db, char **message, const sqlite3_api_routines *api)
{
    (void)message;
    SQLITE_EXTENSION_INIT2(api);
    if (!backstory_is_recorded())
        return SQLITE_OK;
    struct connection *connection = sqlite3_malloc(sizeof *connection);
    if (!connection)
        return SQLITE_NOMEM;
    memset(connection, 0, sizeof *connection);
    connection->db = db;
    sqlite3_trace_v2(db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE | SQLITE_TRACE_CLOSE, on_trace,
                     connection);
    sqlite3_commit_hook(db, on_commit, connection);
    sqlite3_rollback_hook(db, on_rollback, connection);
    find_preupdate();
    if (preupdate_hook && preupdate_old && preupdate_new)
        preupdate_hook(db, on_change, connection);
    else
        sqlite3_update_hook(db, on_update, connection);
    /* The extension stays while the process lives: its hooks may be called at any time. */
    return SQLITE_OK_LOAD_PERMANENTLY;
}
