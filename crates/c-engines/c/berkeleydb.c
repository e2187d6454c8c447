/*
 * Berkeley DB 5.3: one B-tree in a transactional environment of this process alone.
 *
 * - Snapshots are transactions of multiversion concurrency control. There is one writer, so that
 *   the subsystem of locks is not needed.
 * - A page has a checksum.
 * - A commit writes the log. It waits for the disk if the map is synced. The pages of the tree are
 *   written by a checkpoint when the map is closed.
 */
#include "ordered_map.h"

#include <db.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct map {
    DB_ENV *environment;
    DB *rows;
    u_int32_t commit_flags;
    int changed;
    char message[200];
};

struct snapshot {
    struct map *map;
    DB_TXN *transaction;
};

struct cursor {
    struct map *map;
    DBC *cursor;
};

struct changes {
    struct map *map;
    DB_TXN *transaction;
};

/* The library's own message is more precise than the name of its error. */
static void keep_message(const DB_ENV *environment, const char *prefix, const char *message)
{
    (void)prefix;
    struct map *map = environment->app_private;
    /* The first message names the cause. */
    if (map && !map->message[0])
        snprintf(map->message, sizeof map->message, "%s", message);
}

static int fail(struct map *map, struct failure *failure, int error)
{
    const char *message = map && map->message[0] ? map->message : db_strerror(error);
    snprintf(failure->message, sizeof failure->message, "%s", message);
    switch (error) {
    case DB_NOTFOUND: return failure->error = NOTHING;
    /* The library reports a page of the wrong kind as EINVAL, and a missing log file as ENOENT. */
    case EINVAL:
    case ENOENT:
    case DB_RUNRECOVERY:
    case DB_VERIFY_BAD:
    case DB_PAGE_NOTFOUND:
    case DB_OLD_VERSION:
    case DB_CHKSUM_FAIL: return failure->error = DAMAGED;
    default: return failure->error = error > 0 ? error : OTHER;
    }
}

static DBT borrowed(struct bytes bytes)
{
    DBT dbt = {.data = (void *)bytes.at,
               .size = bytes.length,
               .ulen = bytes.length,
               .flags = DB_DBT_USERMEM};
    return dbt;
}

static void close_map(struct map *map)
{
    if (map->rows)
        map->rows->close(map->rows, DB_NOSYNC);
    if (map->environment) {
        /* The next process then finds nothing in the log. A failure leaves the log to it. */
        if (map->changed)
            map->environment->txn_checkpoint(map->environment, 0, 0, 0);
        map->environment->close(map->environment, 0);
    }
    free(map);
}

static int open_rows(struct map *map)
{
    DB_ENV *environment = map->environment;
    int error = db_create(&map->rows, environment, 0);
    if (!error)
        error = map->rows->set_flags(map->rows, DB_CHKSUM);
    DB_TXN *transaction = NULL;
    if (!error)
        error = environment->txn_begin(environment, NULL, &transaction, 0);
    if (error)
        return error;
    u_int32_t flags = DB_CREATE | DB_MULTIVERSION | DB_THREAD;
    error = map->rows->open(map->rows, transaction, "rows.db", NULL, DB_BTREE, flags, 0600);
    if (error) {
        transaction->abort(transaction);
        return error;
    }
    return transaction->commit(transaction, DB_TXN_WRITE_NOSYNC);
}

static int open_environment(struct map *map, const char *directory, size_t memory)
{
    int error = db_env_create(&map->environment, 0);
    if (error)
        return error;
    DB_ENV *environment = map->environment;
    environment->app_private = map;
    environment->set_errcall(environment, keep_message);
    error = environment->set_cachesize(environment, memory >> 30, memory & ((1u << 30) - 1), 1);
    if (!error)
        error = environment->log_set_config(environment, DB_LOG_AUTO_REMOVE, 1);
    u_int32_t parts = DB_INIT_MPOOL | DB_INIT_LOG | DB_INIT_TXN | DB_PRIVATE | DB_THREAD;
    if (!error)
        error = environment->open(environment, directory, parts | DB_CREATE | DB_RECOVER, 0600);
    return error;
}

static int open_map(const char *directory, size_t memory, int synced, struct map **opened,
                    struct failure *failure)
{
    struct map *map = calloc(1, sizeof *map);
    if (!map)
        return fail(NULL, failure, ENOMEM);
    map->commit_flags = synced ? DB_TXN_SYNC : DB_TXN_WRITE_NOSYNC;
    int error = open_environment(map, directory, memory);
    if (!error)
        error = open_rows(map);
    if (error) {
        fail(map, failure, error);
        close_map(map);
        return failure->error;
    }
    *opened = map;
    return 0;
}

static void drop_snapshot(struct snapshot *snapshot)
{
    /* It has read only: there is nothing to undo, and nothing to write. */
    snapshot->transaction->abort(snapshot->transaction);
    free(snapshot);
}

static int take_snapshot(struct map *map, struct snapshot **taken, struct failure *failure)
{
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot)
        return fail(NULL, failure, ENOMEM);
    snapshot->map = map;
    DB_ENV *environment = map->environment;
    int error = environment->txn_begin(environment, NULL, &snapshot->transaction, DB_TXN_SNAPSHOT);
    if (error) {
        free(snapshot);
        return fail(map, failure, error);
    }
    /* The state of a transaction is that of its first read. */
    struct bytes none = {(const uint8_t *)"", 0};
    DBT key = borrowed(none);
    error = map->rows->exists(map->rows, snapshot->transaction, &key, 0);
    if (error && error != DB_NOTFOUND) {
        fail(map, failure, error);
        drop_snapshot(snapshot);
        return failure->error;
    }
    *taken = snapshot;
    return 0;
}

static int get(struct snapshot *snapshot, struct bytes key, struct bytes *value,
               struct failure *failure)
{
    DB *rows = snapshot->map->rows;
    DBT wanted = borrowed(key);
    DBT found = {.flags = DB_DBT_MALLOC};
    int error = rows->get(rows, snapshot->transaction, &wanted, &found, 0);
    if (error)
        return fail(snapshot->map, failure, error);
    *value = (struct bytes){found.data, found.size};
    return 0;
}

static void drop_value(struct bytes value)
{
    free((void *)value.at);
}

static int open_cursor(struct snapshot *snapshot, struct cursor **opened, struct failure *failure)
{
    struct cursor *cursor = calloc(1, sizeof *cursor);
    if (!cursor)
        return fail(NULL, failure, ENOMEM);
    cursor->map = snapshot->map;
    DB *rows = snapshot->map->rows;
    int error = rows->cursor(rows, snapshot->transaction, &cursor->cursor, 0);
    if (error) {
        free(cursor);
        return fail(snapshot->map, failure, error);
    }
    *opened = cursor;
    return 0;
}

/* The cursor's own memory has the row until it moves. */
static int move(struct cursor *cursor, DBT *key, u_int32_t how, struct bytes row[2],
                struct failure *failure)
{
    DBT value = {0};
    int error = cursor->cursor->get(cursor->cursor, key, &value, how);
    if (error)
        return fail(cursor->map, failure, error);
    row[0] = (struct bytes){key->data, key->size};
    row[1] = (struct bytes){value.data, value.size};
    return 0;
}

static int step(struct cursor *cursor, int backwards, struct bytes row[2], struct failure *failure)
{
    DBT key = {0};
    return move(cursor, &key, backwards ? DB_PREV : DB_NEXT, row, failure);
}

static int seek(struct cursor *cursor, struct bytes at, int backwards, struct bytes row[2],
                struct failure *failure)
{
    DBT key = {.data = (void *)at.at, .size = at.length};
    int found = move(cursor, &key, DB_SET_RANGE, row, failure);
    if (!backwards || (found && found != NOTHING))
        return found;
    DBT last = {0};
    return found ? move(cursor, &last, DB_LAST, row, failure) : step(cursor, 1, row, failure);
}

static void close_cursor(struct cursor *cursor)
{
    cursor->cursor->close(cursor->cursor);
    free(cursor);
}

static int begin(struct map *map, struct changes **begun, struct failure *failure)
{
    struct changes *changes = calloc(1, sizeof *changes);
    if (!changes)
        return fail(NULL, failure, ENOMEM);
    changes->map = map;
    DB_ENV *environment = map->environment;
    int error = environment->txn_begin(environment, NULL, &changes->transaction, 0);
    if (error) {
        free(changes);
        return fail(map, failure, error);
    }
    *begun = changes;
    return 0;
}

static int put(struct changes *changes, struct bytes key, struct bytes value,
               struct failure *failure)
{
    DB *rows = changes->map->rows;
    DBT own_key = borrowed(key), own_value = borrowed(value);
    int error = rows->put(rows, changes->transaction, &own_key, &own_value, 0);
    return error ? fail(changes->map, failure, error) : 0;
}

static int erase(struct changes *changes, struct bytes key, struct failure *failure)
{
    DB *rows = changes->map->rows;
    DBT own_key = borrowed(key);
    int error = rows->del(rows, changes->transaction, &own_key, 0);
    return error && error != DB_NOTFOUND ? fail(changes->map, failure, error) : 0;
}

static int commit(struct changes *changes, struct failure *failure)
{
    struct map *map = changes->map;
    map->changed = 1;
    int error = changes->transaction->commit(changes->transaction, map->commit_flags);
    free(changes);
    return error ? fail(map, failure, error) : 0;
}

static void drop_changes(struct changes *changes)
{
    changes->transaction->abort(changes->transaction);
    free(changes);
}

static int compact(struct map *map, struct failure *failure)
{
    map->changed = 1;
    int error = map->rows->compact(map->rows, NULL, NULL, NULL, NULL, DB_FREE_SPACE, NULL);
    return error ? fail(map, failure, error) : 0;
}

const struct library backstory_berkeleydb = {
    .open = open_map,
    .close = close_map,
    .take_snapshot = take_snapshot,
    .drop_snapshot = drop_snapshot,
    .get = get,
    .drop_value = drop_value,
    .open_cursor = open_cursor,
    .seek = seek,
    .step = step,
    .close_cursor = close_cursor,
    .begin = begin,
    .put = put,
    .erase = erase,
    .commit = commit,
    .drop_changes = drop_changes,
    .compact = compact,
};
