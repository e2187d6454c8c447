/*
 * Figures of several ways to do the same, measured in rounds in turn: their medians, and a CSV.
 *
 * For programs of one file. `NAME … --csv FILE` keeps each round in FILE: the first line names the
 * machine and the command, the second one the columns. Figures are ns, unless their column says
 * otherwise.
 *
 * Invariants:
 *
 * - The CSV is written before the medians are, because those need sorted rounds.
 * - Each error ends the program with status 1. A FILE that cannot be made ends it at once.
 */
#ifndef MEDIANS_H
#define MEDIANS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

static inline void need(int holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(1);
}

/* User and system time so far, of RUSAGE_SELF, RUSAGE_CHILDREN or RUSAGE_THREAD. */
static inline double processor_time(int who)
{
    struct rusage r;
    getrusage(who, &r);
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e9 +
           (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e3;
}

/* `columns` are the names of the figures of a round, in the CSV: "wall_ns,cpu_ns". */
struct series {
    int ways, rounds, figures;
    const char *const *titles, *columns;
    double *ns;
};

static inline struct series new_series(const char *const *titles, int ways, int rounds,
                                       const char *columns)
{
    int figures = 1;
    for (const char *c = columns; *c; c++)
        figures += *c == ',';
    double *ns = calloc((size_t)ways * figures * rounds, sizeof *ns);
    need(ns != NULL, "calloc");
    return (struct series){ways, rounds, figures, titles, columns, ns};
}

/* The rounds of one figure of a way. */
static inline double *rounds_of(const struct series *s, int way, int figure)
{
    return s->ns + ((size_t)way * s->figures + figure) * s->rounds;
}

/* Removes `--csv FILE` from the end of the arguments. NULL if it is not there. */
static inline FILE *csv_of(int *argc, char **argv)
{
    if (*argc < 3 || strcmp(argv[*argc - 2], "--csv") != 0)
        return NULL;
    FILE *csv = fopen(argv[*argc - 1], "w");
    need(csv != NULL, argv[*argc - 1]);
    *argc -= 2;
    return csv;
}

static inline void write_csv(FILE *csv, const struct series *s, int argc, char **argv)
{
    if (!csv)
        return;
    struct utsname machine;
    need(uname(&machine) == 0, "uname");
    fprintf(csv, "# %s-%s-%s cpus=%ld;", machine.sysname, machine.release, machine.machine,
            sysconf(_SC_NPROCESSORS_ONLN));
    for (int i = 0; i < argc; i++)
        fprintf(csv, " %s", argv[i]);
    fprintf(csv, "\nway,round,%s\n", s->columns);
    for (int r = 0; r < s->rounds; r++)
        for (int w = 0; w < s->ways; w++) {
            fprintf(csv, "\"%s\",%d", s->titles[w], r);
            for (int f = 0; f < s->figures; f++)
                fprintf(csv, ",%.1f", rounds_of(s, w, f)[r]);
            fprintf(csv, "\n");
        }
    need(!ferror(csv) && fclose(csv) == 0, "the CSV");
}

static inline int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the rounds of one figure of a way. The median is in the middle. */
static inline const double *sorted(const struct series *s, int way, int figure)
{
    double *rounds = rounds_of(s, way, figure);
    qsort(rounds, s->rounds, sizeof *rounds, compare);
    return rounds;
}

/* Prints the median, the least and the most of a figure for each way. */
static inline void print_medians(const struct series *s)
{
    for (int w = 0; w < s->ways; w++) {
        const double *ns = sorted(s, w, 0);
        printf("%s: %.0f ns (%.0f to %.0f)\n", s->titles[w], ns[s->rounds / 2], ns[0],
               ns[s->rounds - 1]);
    }
}

#endif
