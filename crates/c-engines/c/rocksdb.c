/*
 * RocksDB 7 through its C interface: one LSM tree.
 *
 * A commit is one write batch: it is in the log as a whole or not at all. It waits for the disk if
 * the map is synced. When a changed map is closed, its newest rows become a table. Then the next
 * process has no log to read.
 */
#include "ordered_map.h"

#include <errno.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct map {
    rocksdb_t *rows;
    rocksdb_options_t *options;
    rocksdb_writeoptions_t *writing;
    int changed;
};

struct snapshot {
    struct map *map;
    const rocksdb_snapshot_t *state;
    rocksdb_readoptions_t *reading;
};

struct cursor {
    rocksdb_iterator_t *iterator;
};

struct changes {
    struct map *map;
    rocksdb_writebatch_t *batch;
};

static int fail(struct failure *failure, int error, const char *message)
{
    snprintf(failure->message, sizeof failure->message, "%s", message);
    return failure->error = error;
}

/* Frees a message of the library. Its first words name the kind of failure. */
static int failed(struct failure *failure, char *message)
{
    int error = OTHER;
    if (strstr(message, "No space left on device"))
        error = ENOSPC;
    else if (!strncmp(message, "Corruption", 10) || !strncmp(message, "Invalid argument", 16) ||
             strstr(message, "No such file"))
        error = DAMAGED;
    fail(failure, error, message);
    rocksdb_free(message);
    return error;
}

/* Half of the memory is for blocks that were read, a quarter for each of two tables in memory. */
static rocksdb_options_t *new_options(size_t memory)
{
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, memory / 4);
    rocksdb_options_set_max_write_buffer_number(options, 2);
    /* Most values are compressed already. */
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    /* Only errors are in the library's text file. */
    rocksdb_options_set_info_log_level(options, 3);
    rocksdb_options_set_keep_log_file_num(options, 1);
    rocksdb_block_based_table_options_t *tables = rocksdb_block_based_options_create();
    rocksdb_cache_t *cache = rocksdb_cache_create_lru(memory / 2);
    rocksdb_block_based_options_set_block_cache(tables, cache);
    rocksdb_cache_destroy(cache);
    rocksdb_block_based_options_set_filter_policy(tables,
                                                  rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_options_set_block_based_table_factory(options, tables);
    rocksdb_block_based_options_destroy(tables);
    return options;
}

static void close_map(struct map *map)
{
    if (map->rows && map->changed) {
        char *message = NULL;
        rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
        rocksdb_flush(map->rows, flush, &message);
        rocksdb_flushoptions_destroy(flush);
        /* The rows are in the log. */
        if (message)
            rocksdb_free(message);
    }
    if (map->rows)
        rocksdb_close(map->rows);
    rocksdb_writeoptions_destroy(map->writing);
    rocksdb_options_destroy(map->options);
    free(map);
}

static int open_map(const char *directory, size_t memory, int synced, struct map **opened,
                    struct failure *failure)
{
    struct map *map = calloc(1, sizeof *map);
    if (!map)
        return fail(failure, ENOMEM, strerror(ENOMEM));
    map->options = new_options(memory);
    map->writing = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(map->writing, synced);
    char *message = NULL;
    map->rows = rocksdb_open(map->options, directory, &message);
    if (message) {
        map->rows = NULL;
        close_map(map);
        return failed(failure, message);
    }
    *opened = map;
    return 0;
}

static int take_snapshot(struct map *map, struct snapshot **taken, struct failure *failure)
{
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot)
        return fail(failure, ENOMEM, strerror(ENOMEM));
    snapshot->map = map;
    snapshot->state = rocksdb_create_snapshot(map->rows);
    snapshot->reading = rocksdb_readoptions_create();
    rocksdb_readoptions_set_snapshot(snapshot->reading, snapshot->state);
    *taken = snapshot;
    return 0;
}

static void drop_snapshot(struct snapshot *snapshot)
{
    rocksdb_readoptions_destroy(snapshot->reading);
    rocksdb_release_snapshot(snapshot->map->rows, snapshot->state);
    free(snapshot);
}

static int get(struct snapshot *snapshot, struct bytes key, struct bytes *value,
               struct failure *failure)
{
    char *message = NULL;
    size_t length = 0;
    char *found = rocksdb_get(snapshot->map->rows, snapshot->reading, (const char *)key.at,
                              key.length, &length, &message);
    if (message)
        return failed(failure, message);
    if (!found)
        return NOTHING;
    *value = (struct bytes){(uint8_t *)found, length};
    return 0;
}

static void drop_value(struct bytes value)
{
    rocksdb_free((void *)value.at);
}

static int open_cursor(struct snapshot *snapshot, struct cursor **opened, struct failure *failure)
{
    struct cursor *cursor = calloc(1, sizeof *cursor);
    if (!cursor)
        return fail(failure, ENOMEM, strerror(ENOMEM));
    cursor->iterator = rocksdb_create_iterator(snapshot->map->rows, snapshot->reading);
    *opened = cursor;
    return 0;
}

/* The row that a cursor is at. */
static int row_of(struct cursor *cursor, struct bytes row[2], struct failure *failure)
{
    if (!rocksdb_iter_valid(cursor->iterator)) {
        char *message = NULL;
        rocksdb_iter_get_error(cursor->iterator, &message);
        return message ? failed(failure, message) : NOTHING;
    }
    row[0].at = (const uint8_t *)rocksdb_iter_key(cursor->iterator, &row[0].length);
    row[1].at = (const uint8_t *)rocksdb_iter_value(cursor->iterator, &row[1].length);
    return 0;
}

static int seek(struct cursor *cursor, struct bytes at, int backwards, struct bytes row[2],
                struct failure *failure)
{
    const char *key = (const char *)at.at;
    if (!backwards) {
        rocksdb_iter_seek(cursor->iterator, key, at.length);
        return row_of(cursor, row, failure);
    }
    rocksdb_iter_seek_for_prev(cursor->iterator, key, at.length);
    int found = row_of(cursor, row, failure);
    if (found || row[0].length != at.length || memcmp(row[0].at, at.at, at.length))
        return found;
    rocksdb_iter_prev(cursor->iterator);
    return row_of(cursor, row, failure);
}

static int step(struct cursor *cursor, int backwards, struct bytes row[2], struct failure *failure)
{
    if (backwards)
        rocksdb_iter_prev(cursor->iterator);
    else
        rocksdb_iter_next(cursor->iterator);
    return row_of(cursor, row, failure);
}

static void close_cursor(struct cursor *cursor)
{
    rocksdb_iter_destroy(cursor->iterator);
    free(cursor);
}

static int begin(struct map *map, struct changes **begun, struct failure *failure)
{
    struct changes *changes = calloc(1, sizeof *changes);
    if (!changes)
        return fail(failure, ENOMEM, strerror(ENOMEM));
    changes->map = map;
    changes->batch = rocksdb_writebatch_create();
    *begun = changes;
    return 0;
}

static int put(struct changes *changes, struct bytes key, struct bytes value,
               struct failure *failure)
{
    (void)failure;
    rocksdb_writebatch_put(changes->batch, (const char *)key.at, key.length, (const char *)value.at,
                           value.length);
    return 0;
}

static int erase(struct changes *changes, struct bytes key, struct failure *failure)
{
    (void)failure;
    rocksdb_writebatch_delete(changes->batch, (const char *)key.at, key.length);
    return 0;
}

static void drop_changes(struct changes *changes)
{
    rocksdb_writebatch_destroy(changes->batch);
    free(changes);
}

static int commit(struct changes *changes, struct failure *failure)
{
    struct map *map = changes->map;
    char *message = NULL;
    map->changed = 1;
    rocksdb_write(map->rows, map->writing, changes->batch, &message);
    drop_changes(changes);
    return message ? failed(failure, message) : 0;
}

static int compact(struct map *map, struct failure *failure)
{
    (void)failure;
    rocksdb_compact_range(map->rows, NULL, 0, NULL, 0);
    return 0;
}

const struct library backstory_rocksdb = {
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
