/*
 * One interface to the ordered maps of C libraries. Each library has a table of functions.
 *
 * Rules that the files of src keep, and each library relies on:
 *
 * - One process at a time has the directory of a map.
 * - A map is closed after its snapshots, cursors and changes.
 * - At most one `struct changes` of a map exists at a time.
 * - A snapshot and its cursors are used by one thread at a time. A map is used by any.
 *
 * A function returns 0, or else fills the failure. `NOTHING`: there is no such row, and no failure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    NOTHING = -1,
    /* The files of the map are damaged, or of something else. */
    DAMAGED = -2,
    /* Any other failure that is not a number of the system. */
    OTHER = -3,
};

/* `error` is the number of the system (errno), or one of the above. */
struct failure {
    int error;
    char message[256];
};

struct bytes {
    const uint8_t *at;
    size_t length;
};

struct map;
struct snapshot;
struct cursor;
struct changes;

struct library {
    /* Opens the map in a directory, which exists. `memory`: bytes for caches. `synced`: each commit
     * waits for the disk. */
    int (*open)(const char *directory, size_t memory, int synced, struct map **map,
                struct failure *failure);
    void (*close)(struct map *map);

    int (*take_snapshot)(struct map *map, struct snapshot **snapshot, struct failure *failure);
    void (*drop_snapshot)(struct snapshot *snapshot);

    /* The value lives until `drop_value`. */
    int (*get)(struct snapshot *snapshot, struct bytes key, struct bytes *value,
               struct failure *failure);
    void (*drop_value)(struct bytes value);

    int (*open_cursor)(struct snapshot *snapshot, struct cursor **cursor, struct failure *failure);
    /* Goes to the first row whose key is not less than `key`; backwards: to the last row before it.
     * Key and value live until the cursor moves. */
    int (*seek)(struct cursor *cursor, struct bytes key, int backwards, struct bytes row[2],
                struct failure *failure);
    /* Goes to the next row; backwards: to the one before. */
    int (*step)(struct cursor *cursor, int backwards, struct bytes row[2], struct failure *failure);
    void (*close_cursor)(struct cursor *cursor);

    int (*begin)(struct map *map, struct changes **changes, struct failure *failure);
    int (*put)(struct changes *changes, struct bytes key, struct bytes value,
               struct failure *failure);
    /* It is no failure if there is no such row. */
    int (*erase)(struct changes *changes, struct bytes key, struct failure *failure);
    /* Both free the changes, whatever happens. */
    int (*commit)(struct changes *changes, struct failure *failure);
    void (*drop_changes)(struct changes *changes);

    int (*compact)(struct map *map, struct failure *failure);
};
