#include <stdio.h>

#include "convert.h"

int parse(const char *text, double *length, char unit[16])
{
    return sscanf(text, "%lf %15s", length, unit) == 2;
}
