/* Reads "month,station,temperature" lines from standard input and prints "station,count,mean" for
 * each station. */
#include <stdio.h>
#include <string.h>

enum { MOST_STATIONS = 64 };

struct station {
    char id[8];
    int count;
    double sum;
};

int main(void)
{
    struct station stations[MOST_STATIONS];
    int known = 0;
    char id[8];
    double temperature;
    while (scanf("%*[^,],%7[^,],%lf\n", id, &temperature) == 2) {
        int at = 0;
        while (at < known && strcmp(stations[at].id, id) != 0)
            at++;
        if (at == MOST_STATIONS)
            return 1;
        if (at == known) {
            memset(&stations[known], 0, sizeof stations[known]);
            strcpy(stations[known++].id, id);
        }
        stations[at].count++;
        stations[at].sum += temperature;
    }
    for (int at = 0; at < known; at++)
        printf("%s,%d,%.2f\n", stations[at].id, stations[at].count,
               stations[at].sum / stations[at].count);
    return 0;
}
