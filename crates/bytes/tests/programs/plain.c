/* Plainly, in one thread. */
#include "files.h"

int main(void)
{
    char in[N], out[N];
    read_in(in);
    reverse(out, in, N);
    write_out(out);
}
