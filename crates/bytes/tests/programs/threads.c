/* Four threads take turns, and hand the bytes on through shared memory. */
#include "files.h"

static char in[N], out[N];
static int next;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *nothing)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        int at = next < N ? next++ : -1;
        pthread_mutex_unlock(&lock);
        if (at < 0)
            return NULL;
        char byte = in[N - 1 - at];
        sched_yield();
        out[at] = byte;
    }
}

int main(void)
{
    pthread_t threads[4];
    read_in(in);
    for (int i = 0; i < 4; i++)
        need(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    write_out(out);
}
