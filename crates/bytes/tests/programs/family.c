/* A child has what its parent read in memory, and sends it to its own child through a pipe. */
#include "files.h"

int main(void)
{
    char in[N], out[N];
    int ends[2];
    read_in(in);
    pid_t child = fork();
    if (child)
        return wait_for(child), 0;
    need(pipe(ends) == 0);
    child = fork();
    if (child == 0) {
        read_all(ends[0], out, N);
        write_out(out);
        _exit(0);
    }
    reverse(out, in, N);
    need(write(ends[1], out, N) == N);
    wait_for(child);
    _exit(0);
}
