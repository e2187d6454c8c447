/*
 * Forks while other threads load libraries and open files. The child finds the locks of the loader
 * and of the recorder in any state.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;

static void *work(void *unused)
{
    struct stat s;
    while (!stop) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        FILE *file = fopen("input", "r");
        stat("/", &s);
        if (file)
            fclose(file);
        if (library)
            dlclose(library);
    }
    return unused;
}

/* In the child: calls functions that were not called before. */
static void child(void)
{
    alarm(20);
    DIR *dir = opendir("/");
    if (dir && readdir(dir) && closedir(dir) == 0 && access("input", R_OK) == 0)
        execlp("true", "true", (char *)0);
    _exit(9);
}

int main(void)
{
    pthread_t threads[3];
    int bad = 0, status;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 30; i++) {
        pid_t pid = fork();
        if (pid == 0)
            child();
        bad += waitpid(pid, &status, 0) != pid || status != 0;
    }
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return bad;
}
