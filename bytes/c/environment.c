/* See environment.h. */
#include "environment.h"

static const HChar directory[] = "VALGRIND_LIB=", preload[] = "LD_PRELOAD=",
                   library[] = "/vgpreload_core-amd64-linux.so";

/* Takes an entry out of a list that ends with 0. The auxiliary vector stands behind the list. */
static void remove_entry(Addr *at)
{
    Addr *end = at;
    while (*end)
        end++;
    for (end++; *end; end += 2)
        ;
    for (end += 2; at + 1 < end; at++)
        at[0] = at[1];
}

/* The user's part of LD_PRELOAD, behind Valgrind's. NULL without Valgrind's. */
static const HChar *users_libraries(const HChar *value)
{
    SizeT own = VG_(strcspn)(value, ":"), length = sizeof library - 1;
    if (own < length || VG_(strncmp)(value + own - length, library, length) != 0)
        return NULL;
    return value + own;
}

void restore_environment(Addr stack)
{
    Addr *at = (Addr *)stack + 1 + *(ULong *)stack + 1;
    while (*at) {
        HChar *entry = (HChar *)*at;
        if (VG_(strncmp)(entry, directory, sizeof directory - 1) == 0) {
            remove_entry(at);
            continue;
        }
        if (VG_(strncmp)(entry, preload, sizeof preload - 1) == 0) {
            HChar *value = entry + sizeof preload - 1;
            const HChar *rest = users_libraries(value);
            if (rest && !*rest) {
                remove_entry(at);
                continue;
            }
            if (rest)
                VG_(memmove)(value, rest + 1, VG_(strlen)(rest + 1) + 1);
        }
        at++;
    }
}
