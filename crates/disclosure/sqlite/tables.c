/*
 * The tables that a statement opens: SQLite's own plan of the statement (EXPLAIN) names their root
 * pages, behind views, triggers and common table expressions, too.
 */
#include "sqlite_recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SQLITE_EXTENSION_INIT3

/* The most texts of statements that are kept. A program that makes each text anew has many. */
#define MOST_STATEMENTS 500

static void forget_columns(struct table *table)
{
    for (int at = 0; at < table->columns; at++)
        free(table->column[at]);
    free(table->column);
    free(table->is_key);
    table->column = NULL;
    table->is_key = NULL;
    table->columns = table->has_key = table->is_stale = 0;
}

static void free_table(struct table *table)
{
    forget_columns(table);
    free(table->schema);
    free(table->name);
    free(table->uri);
    free(table);
}

static void forget_statements(struct connection *connection)
{
    while (connection->statements) {
        struct statement *statement = connection->statements;
        connection->statements = statement->next;
        free(statement->table);
        free(statement->sql);
        free(statement);
    }
}

void expect_other_tables(struct connection *connection)
{
    forget_statements(connection);
    for (struct table *table = connection->tables; table; table = table->next)
        table->is_stale = 1;
}

void forget_tables(struct connection *connection)
{
    forget_statements(connection);
    while (connection->tables) {
        struct table *table = connection->tables;
        connection->tables = table->next;
        free_table(table);
    }
}

static sqlite3_stmt *prepare(struct connection *connection, const char *format, const char *one,
                             const char *two)
{
    char *sql = sqlite3_mprintf(format, one, two);
    sqlite3_stmt *found = NULL;
    if (sql && sqlite3_prepare_v2(connection->db, sql, -1, &found, NULL) != SQLITE_OK)
        found = NULL;
    sqlite3_free(sql);
    return found;
}

static int add_column(struct table *table, const char *name, int is_key)
{
    int count = table->columns + 1;
    char **column = realloc(table->column, (size_t)count * sizeof *column);
    if (column)
        table->column = column;
    unsigned char *keys = realloc(table->is_key, (size_t)count);
    if (keys)
        table->is_key = keys;
    char *copy = name ? strdup(name) : NULL;
    if (!column || !keys || !copy) {
        free(copy);
        return 0;
    }
    table->column[table->columns] = copy;
    table->is_key[table->columns] = is_key != 0;
    table->has_key |= is_key != 0;
    table->columns = count;
    return 1;
}

static void find_columns(struct connection *connection, struct table *table)
{
    /* Hidden columns of virtual tables and generated columns are left out, as in the hooks. */
    sqlite3_stmt *list = prepare(connection, "SELECT name, pk FROM pragma_table_info(%Q, %Q)",
                                 table->name, table->schema);
    while (
        list && sqlite3_step(list) == SQLITE_ROW &&
        add_column(table, (const char *)sqlite3_column_text(list, 0), sqlite3_column_int(list, 1)))
        ;
    sqlite3_finalize(list);
}

static char *uri_of(const struct connection *connection, const char *schema, const char *name)
{
    const char *file = sqlite3_db_filename(connection->db, schema);
    struct text uri;
    text_begin(&uri, 800);
    text_add(&uri, "sqlite://");
    if (file && *file) {
        for (const char *at = file; *at; at++) {
            if (*at == '/')
                text_add(&uri, "/");
            else
                text_add_name(&uri, at, 1);
        }
    } else {
        char memory[64];
        snprintf(memory, sizeof memory, "/memory-%d-%p", (int)getpid(), (void *)connection->db);
        text_add(&uri, memory);
    }
    text_add(&uri, "/");
    text_add_name(&uri, name, strlen(name));
    return uri.is_cut ? NULL : strdup(uri.bytes);
}

struct table *table_named(struct connection *connection, const char *schema, const char *name)
{
    for (struct table *table = connection->tables; table; table = table->next)
        if (!sqlite3_stricmp(table->schema, schema) && !sqlite3_stricmp(table->name, name)) {
            if (table->is_stale) {
                forget_columns(table);
                find_columns(connection, table);
            }
            return table;
        }
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->schema = strdup(schema);
    table->name = strdup(name);
    table->uri = uri_of(connection, schema, name);
    if (!table->schema || !table->name || !table->uri) {
        free_table(table);
        return NULL;
    }
    find_columns(connection, table);
    table->next = connection->tables;
    connection->tables = table;
    return table;
}

static void add_table(struct statement *statement, struct table *table)
{
    for (int at = 0; at < statement->count; at++)
        if (statement->table[at] == table)
            return;
    struct table **all =
        realloc(statement->table, (size_t)(statement->count + 1) * sizeof(struct table *));
    if (!table || !all)
        return;
    statement->table = all;
    all[statement->count++] = table;
}

/* The table with a root page. An index has a root page of its own. */
static struct table *table_at(struct connection *connection, int database, int root)
{
    sqlite3_stmt *list = prepare(connection, "PRAGMA database_list", NULL, NULL);
    char schema[200] = "";
    while (list && sqlite3_step(list) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(list, 1);
        if (sqlite3_column_int(list, 0) == database && name)
            snprintf(schema, sizeof schema, "%s", name);
    }
    sqlite3_finalize(list);
    if (!*schema)
        return NULL;
    const char *master = database == 1 ? "sqlite_temp_master" : "sqlite_master";
    sqlite3_stmt *find =
        prepare(connection, "SELECT tbl_name FROM \"%w\".%s WHERE rootpage = ?1", schema, master);
    struct table *found = NULL;
    if (find && sqlite3_bind_int(find, 1, root) == SQLITE_OK && sqlite3_step(find) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(find, 0);
        if (name && sqlite3_strnicmp(name, "sqlite_", 7))
            found = table_named(connection, schema, name);
    }
    sqlite3_finalize(find);
    return found;
}

int begins_with(const char *sql, const char *word)
{
    sql += strspn(sql, " \t\r\n;(");
    return !sqlite3_strnicmp(sql, word, (int)strlen(word));
}

static void find_tables(struct connection *connection, struct statement *statement)
{
    /* An update reads the rows that it changes. An insert reads none of its table. */
    int inserts = begins_with(statement->sql, "INSERT") || begins_with(statement->sql, "REPLACE");
    sqlite3_stmt *plan = prepare(connection, "EXPLAIN %s", statement->sql, NULL);
    while (plan && sqlite3_step(plan) == SQLITE_ROW) {
        const char *operation = (const char *)sqlite3_column_text(plan, 1);
        int writes = operation && !strcmp(operation, "OpenWrite");
        int reads =
            operation && (!strcmp(operation, "OpenRead") || !strcmp(operation, "ReopenIdx"));
        if (!reads && !writes)
            continue;
        struct table *table =
            table_at(connection, sqlite3_column_int(plan, 4), sqlite3_column_int(plan, 3));
        if (reads || !inserts)
            add_table(statement, table);
    }
    sqlite3_finalize(plan);
}

const struct statement *tables_of(struct connection *connection, const char *sql)
{
    int count = 0;
    for (struct statement *known = connection->statements; known; known = known->next, count++)
        if (!strcmp(known->sql, sql))
            return known;
    if (count >= MOST_STATEMENTS)
        forget_statements(connection);
    struct statement *statement = calloc(1, sizeof *statement);
    if (!statement || !(statement->sql = strdup(sql))) {
        free(statement);
        return NULL;
    }
    find_tables(connection, statement);
    statement->next = connection->statements;
    connection->statements = statement;
    return statement;
}
