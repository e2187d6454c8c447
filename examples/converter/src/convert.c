#include "convert.h"

#include <math.h>
#include <string.h>

static double metres(const char *name)
{
    for (const struct unit *unit = units; unit->name; unit++) {
        if (strcmp(unit->name, name) == 0) {
            return unit->metres;
        }
    }
    return NAN;
}

double convert(double length, const char *from, const char *to)
{
    return length * metres(from) / metres(to);
}
