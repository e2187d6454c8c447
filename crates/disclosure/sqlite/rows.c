/* Changed rows: their names, and their columns before and after, as JSON. */
#include "sqlite_recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

/* The most characters of a value. */
#define MOST_VALUE 200

/* A beginning of a text that is whole characters of UTF-8. */
static size_t cut_at(const char *text, size_t length, size_t most)
{
    if (length <= most)
        return length;
    while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80)
        most--;
    return most;
}

static void add_value(struct text *json, sqlite3_value *value)
{
    char number[40];
    switch (sqlite3_value_type(value)) {
    case SQLITE_NULL: text_add(json, "null"); break;
    case SQLITE_INTEGER:
        snprintf(number, sizeof number, "\"%lld\"", (long long)sqlite3_value_int64(value));
        text_add(json, number);
        break;
    case SQLITE_BLOB:
        snprintf(number, sizeof number, "{\"bytes\":%d}", sqlite3_value_bytes(value));
        text_add(json, number);
        break;
    default: {
        const char *text = (const char *)sqlite3_value_text(value);
        size_t length = (size_t)sqlite3_value_bytes(value);
        size_t shown = text ? cut_at(text, length, MOST_VALUE) : 0;
        if (shown == length) {
            text_add_json(json, text ? text : "", shown);
            break;
        }
        text_add(json, "{\"begins\":");
        text_add_json(json, text, shown);
        snprintf(number, sizeof number, ",\"bytes\":%zu}", length);
        text_add(json, number);
    }
    }
}

/* The columns of a row as an object. Columns that do not fit are left out. */
static void add_image(struct text *json, sqlite3 *db, const struct table *table, column_value of)
{
    text_add(json, "{");
    int shown = 0, left_out = 0;
    for (int at = 0; at < table->columns; at++) {
        sqlite3_value *value = NULL;
        if (of(db, at, &value) != SQLITE_OK || !value)
            continue;
        struct text one;
        text_begin(&one, MOST_JSON / 2);
        text_add(&one, shown ? "," : "");
        text_add_json(&one, table->column[at], strlen(table->column[at]));
        text_add(&one, ":");
        add_value(&one, value);
        if (one.is_cut || json->length + one.length > json->limit / 2 + json->limit / 4) {
            left_out++;
            continue;
        }
        text_add(json, one.bytes);
        shown++;
    }
    if (left_out)
        text_add(json, shown ? ",\"…\":{\"unchanged\":false}" : "\"…\":{\"unchanged\":false}");
    text_add(json, "}");
}

static void add_key(struct text *uri, sqlite3_value *value)
{
    char number[32];
    if (sqlite3_value_type(value) == SQLITE_INTEGER) {
        snprintf(number, sizeof number, "%lld", (long long)sqlite3_value_int64(value));
        text_add(uri, number);
    } else {
        const char *text = (const char *)sqlite3_value_text(value);
        text_add_name(uri, text ? text : "", text ? (size_t)sqlite3_value_bytes(value) : 0);
    }
}

/* The name of a row: that of its table, and the columns of its key. */
static void name_row(struct text *uri, sqlite3 *db, const struct table *table, column_value of,
                     sqlite3_int64 rowid)
{
    char number[40];
    text_begin(uri, 900);
    text_add(uri, table->uri);
    if (!table->has_key || !of) {
        snprintf(number, sizeof number, "?rowid=%lld", (long long)rowid);
        text_add(uri, number);
        return;
    }
    const char *separator = "?";
    for (int at = 0; at < table->columns; at++) {
        sqlite3_value *value = NULL;
        if (!table->is_key[at] || of(db, at, &value) != SQLITE_OK || !value)
            continue;
        text_add(uri, separator);
        text_add_name(uri, table->column[at], strlen(table->column[at]));
        text_add(uri, "=");
        add_key(uri, value);
        separator = "&";
    }
}

static int has_room(struct connection *connection)
{
    if (connection->count >= MOST_ROWS)
        return 0;
    if (connection->count < connection->room)
        return 1;
    size_t room = connection->room ? connection->room * 2 : 64;
    struct row *rows = realloc(connection->rows, room * sizeof *rows);
    if (!rows)
        return 0;
    connection->rows = rows;
    connection->room = room;
    return 1;
}

void note_change(struct connection *connection, struct table *table, const char *operation,
                 column_value before, column_value after, sqlite3_int64 old_rowid,
                 sqlite3_int64 new_rowid)
{
    if (!has_room(connection)) {
        connection->left_out++;
        table->left_out++;
        return;
    }
    struct text uri, former, json;
    int deleted = !strcmp(operation, "delete");
    name_row(&uri, connection->db, table, deleted ? before : after,
             deleted ? old_rowid : new_rowid);
    text_begin(&json, MOST_JSON);
    text_add(&json, "{\"row\":");
    text_add_json(&json, uri.bytes, uri.length);
    if (!strcmp(operation, "update")) {
        name_row(&former, connection->db, table, before, old_rowid);
        if (strcmp(former.bytes, uri.bytes)) {
            text_add(&json, ",\"former\":");
            text_add_json(&json, former.bytes, former.length);
        }
    }
    text_add(&json, ",\"operation\":\"");
    text_add(&json, operation);
    text_add(&json, "\"");
    size_t whole = json.length;
    if (before) {
        text_add(&json, ",\"before\":");
        add_image(&json, connection->db, table, before);
    }
    if (after) {
        text_add(&json, ",\"after\":");
        add_image(&json, connection->db, table, after);
    }
    if (json.length + 1 > json.limit || json.is_cut) {
        /* The values do not fit. */
        json.length = whole;
        json.is_cut = 0;
        json.bytes[whole] = 0;
    }
    text_add(&json, "}");
    struct row *row = &connection->rows[connection->count];
    row->uri = strdup(uri.bytes);
    row->json = strdup(json.bytes);
    row->operation = operation[0];
    if (row->uri && row->json && !uri.is_cut) {
        connection->count++;
        return;
    }
    free(row->uri);
    free(row->json);
    connection->left_out++;
    table->left_out++;
}

void forget_rows(struct connection *connection, size_t from)
{
    while (connection->count > from) {
        struct row *row = &connection->rows[--connection->count];
        free(row->uri);
        free(row->json);
    }
}
