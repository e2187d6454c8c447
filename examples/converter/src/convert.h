/* Converts lengths. */
#pragma once

struct unit {
    const char *name;
    double metres;
};

/* Ends with a unit without a name. */
extern const struct unit units[];

/* The length in the other unit; NaN if a unit is unknown. */
double convert(double length, const char *from, const char *to);

/* Reads "12 km". Returns 0 if the text is no length. */
int parse(const char *text, double *length, char unit[16]);
