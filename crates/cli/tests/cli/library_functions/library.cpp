/* A library without hooks. Its functions pass and return values in every way, and leave in every. */
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <pthread.h>
#include <stdexcept>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static void put(const char *path) {
    FILE *file = std::fopen(path, "w");
    std::fputs("1\n", file);
    std::fclose(file);
}

extern "C" {
struct parts {
    long a, b, c;
};

long put_many(long a, long b, long c, long d, long e, long f, long g, long h, const char *path) {
    put(path);
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

double put_floats(double a, double b, double c, double d, double e, double f, double g, double h,
                  double i) {
    return a + b + c + d + e + f + g + h + i;
}

long double put_long_double(long double x) { return x * 2; }

parts put_structure(long a) { return {a, a + 1, a + 2}; }

int put_varying(const char *format, ...) {
    char text[100];
    va_list all;
    va_start(all, format);
    int n = std::vsnprintf(text, sizeof text, format, all);
    va_end(all);
    return n;
}

void put_and_throw(int depth) {
    if (depth)
        put_and_throw(depth - 1);
    put("thrown.csv");
    throw std::runtime_error("left");
}

int put_and_catch(int depth) {
    try {
        put_and_throw(depth);
    } catch (const std::runtime_error &) {
        put("caught.csv");
        return 1;
    }
    return 0;
}

void put_and_jump(jmp_buf *back) {
    put("jumped.csv");
    std::longjmp(*back, 1);
}

void throw_alone() { throw std::runtime_error("left"); }

void jump_alone(jmp_buf *back) { std::longjmp(*back, 1); }

int put_recursive(int n) {
    if (n)
        return put_recursive(n - 1) + 1;
    put("deep.csv");
    return 0;
}

int put_last(int n) {
    put("last.csv");
    return n;
}

__attribute__((optimize("O2"))) int put_by_jump(int n) { return put_last(n + 1); }

int put_back(int (*call)(int), int n) { return call(n) + 1; }

int put_and_fork() {
    pid_t child = fork();
    if (!child)
        return 100;
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

void put_and_exit_thread() {
    put("exited.csv");
    pthread_exit((void *)7);
}

void put_and_wait(void (*ready)()) {
    put("waiting.csv");
    ready();
    for (;;)
        pause();
}

void put_switch(ucontext_t *from, ucontext_t *to) { swapcontext(from, to); }
}
