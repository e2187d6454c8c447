/* Cancels a thread that waits in an open: the thread ends, and its cleanup runs. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int cleaned;
static int at_work[2];

static void clean(void *unused)
{
    (void)unused;
    cleaned = 1;
}

static void *wait_in_open(void *unused)
{
    pthread_cleanup_push(clean, NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* cancellable only in the open */
    write(at_work[1], "x", 1);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    open("fifo", O_RDONLY);
    pthread_cleanup_pop(0);
    return unused;
}

int main(void)
{
    pthread_t thread;
    void *result;
    char byte;
    if (mkfifo("fifo", 0600) || pipe(at_work) || pthread_create(&thread, NULL, wait_in_open, NULL))
        return 1;
    if (read(at_work[0], &byte, 1) != 1 || pthread_cancel(thread) || pthread_join(thread, &result))
        return 2;
    puts(result == PTHREAD_CANCELED && cleaned ? "cancelled" : "not cancelled");
    return 0;
}
