/* Prints the environment that it was started with. */
#include <stdio.h>

int main(int argc, char **argv, char **env)
{
    (void)argc, (void)argv;
    for (; *env; env++)
        puts(*env);
    return 0;
}
