/*
 * Savepoints: `ROLLBACK TO` undoes the changes since a savepoint of that name.
 *
 * Where the name cannot be followed, all changes of the transaction are forgotten: nothing is said
 * that did not happen.
 */
#include "sqlite_recording.h"

#include <stdio.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

/* The word after `sql`, without quotes. Returns the position after it. */
static const char *word(const char *sql, char *to, size_t room)
{
    sql += strspn(sql, " \t\r\n");
    int quoted = *sql == '"' || *sql == '`' || *sql == '[' || *sql == '\'';
    size_t length = quoted ? strcspn(sql + 1, "\"`]'") : strcspn(sql, " \t\r\n;");
    snprintf(to, room, "%.*s", (int)length, sql + quoted);
    sql += length + (size_t)quoted;
    return *sql && quoted ? sql + 1 : sql;
}

static int is(const char *one, const char *other)
{
    return !sqlite3_stricmp(one, other);
}

/* The newest savepoint of a name, or -1. */
static int find(const struct connection *connection, const char *name)
{
    int at = connection->depth - 1;
    while (at >= 0 && !is(connection->savepoint[at].name, name))
        at--;
    return at;
}

void note_savepoint(struct connection *connection, const char *sql)
{
    char verb[SAVEPOINT_NAME], name[SAVEPOINT_NAME];
    sql = word(sql + strspn(sql, " \t\r\n;"), verb, sizeof verb);
    sql = word(sql, name, sizeof name);
    if (is(verb, "SAVEPOINT")) {
        connection->unknown_savepoints += connection->depth == MOST_SAVEPOINTS;
        if (connection->depth < MOST_SAVEPOINTS) {
            struct savepoint *one = &connection->savepoint[connection->depth++];
            snprintf(one->name, sizeof one->name, "%s", name);
            one->count = connection->count;
        }
        return;
    }
    int goes_back = is(verb, "ROLLBACK");
    if (goes_back && (is(name, "TRANSACTION")))
        sql = word(sql, name, sizeof name);
    if (goes_back && !is(name, "TO"))
        return;
    if (goes_back)
        sql = word(sql, name, sizeof name);
    if (!goes_back && !is(verb, "RELEASE"))
        return;
    if (is(name, "SAVEPOINT"))
        word(sql, name, sizeof name);
    int at = find(connection, name);
    if (goes_back && (at < 0 || connection->unknown_savepoints)) {
        connection->left_out += connection->count;
        forget_rows(connection, 0);
    } else if (goes_back) {
        forget_rows(connection, connection->savepoint[at].count);
        connection->depth = at + 1;
    } else if (at >= 0) {
        connection->depth = at;
    }
    connection->before = connection->count;
}
