/* Prints the address and the content of the recorder's gate page. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int main(void)
{
    struct stat s;
    stat("/absent", &s);
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], gate[512] = "-\n", library[512] = "-\n";
    while (fgets(line, sizeof line, maps)) {
        if (!strncmp(line, "550000010000-", 13))
            strcpy(gate, line);
        if (strstr(line, "linux-backstory") && strstr(line, "r-xp"))
            strcpy(library, line);
    }
    printf("%s%s", gate, library);
    return 0;
}
