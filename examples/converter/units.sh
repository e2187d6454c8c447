#!/bin/sh
# Writes the table of units as C.
echo '#include "convert.h"'
echo 'const struct unit units[] = {'
sed 's/^\([^ ]*\) \(.*\)$/    {"\1", \2},/' "$1"
echo '    {0, 0},'
echo '};'
