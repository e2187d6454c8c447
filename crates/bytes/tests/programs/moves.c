/* The kernel moves the bytes: sendfile, copy_file_range, splice, tee and vmsplice. */
#include "files.h"

int main(void)
{
    char in[N], out[N], first[N / 2];
    int pair[2], copy[2];
    read_in(in);
    reverse(out, in, N);
    need(pipe(pair) == 0 && pipe(copy) == 0);
    /* Memory, pipe, second pipe, file. */
    struct iovec vector = {out, N / 2};
    need(vmsplice(pair[1], &vector, 1, 0) == N / 2);
    need(tee(pair[0], copy[1], N / 2, 0) == N / 2);
    int middle = open("middle", O_RDWR | O_CREAT | O_TRUNC, 0600);
    need(splice(copy[0], NULL, middle, NULL, N / 2, 0) == N / 2);
    /* tee left the bytes in the first pipe. */
    read_all(pair[0], first, N / 2);
    need(write(middle, out + N / 2, N / 2) == N / 2);
    int second = open("second", O_RDWR | O_CREAT | O_TRUNC, 0600);
    loff_t from = 0, to = 0;
    need(copy_file_range(middle, &from, second, &to, N, 0) == N);
    int last = create_out();
    off_t start = N / 2;
    need(write(last, first, N / 2) == N / 2);
    need(sendfile(last, second, &start, N / 2) == N / 2);
}
