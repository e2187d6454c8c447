/* Calls each function of library.cpp, and checks what comes back. */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdexcept>
#include <ucontext.h>
#include <unistd.h>

#define CHECK(what) ((what) ? (void)0 : (std::printf("wrong: %s\n", #what), std::exit(3)))

struct parts {
    long a, b, c;
};
extern "C" {
long put_many(long, long, long, long, long, long, long, long, const char *);
double put_floats(double, double, double, double, double, double, double, double, double);
long double put_long_double(long double);
parts put_structure(long);
int put_varying(const char *, ...);
void put_and_throw(int);
int put_and_catch(int);
void put_and_jump(jmp_buf *);
void throw_alone();
void jump_alone(jmp_buf *);
int put_recursive(int);
int put_by_jump(int);
int put_last(int);
int put_back(int (*)(int), int);
int put_and_fork();
void put_and_exit_thread();
void put_and_wait(void (*)());
void put_switch(ucontext_t *, ucontext_t *);
}

static sem_t is_ready;
static ucontext_t outer, inner[2];
static int steps;
static char stacks[2][65536];

static void coroutine(int own) {
    for (int i = 0; i < 3; i++) {
        steps++;
        put_switch(&inner[own], &inner[!own]);
    }
    put_switch(&inner[own], &outer);
}

static void *calls(void *) {
    for (int i = 0; i < 2000; i++)
        CHECK(put_varying("%d", i) > 0);
    return nullptr;
}

static void *exits(void *) {
    put_and_exit_thread();
    return nullptr;
}

static void ready() { sem_post(&is_ready); }

static void *waits(void *) {
    put_and_wait(ready);
    return nullptr;
}

static void check_values() {
    CHECK(put_many(1, 2, 3, 4, 5, 6, 7, 8, "many.csv") == 204);
    CHECK(put_floats(1, 2, 3, 4, 5, 6, 7, 8, 9) == 45);
    CHECK(put_long_double(1.5L) == 3);
    parts p = put_structure(5);
    CHECK(p.a == 5 && p.b == 6 && p.c == 7);
    CHECK(put_varying("%d %.1f %s", 1, 2.5, "x") == 7);
    CHECK(put_recursive(1000) == 1000);
    CHECK(put_by_jump(4) == 5);
    CHECK(put_back(put_last, 3) == 4);
}

/* More of them than the recorder remembers calls that have not returned. */
static void check_leaving() {
    CHECK(put_and_catch(3) == 1);
    for (int i = 0; i < 6000; i++)
        try {
            throw_alone();
            CHECK(false);
        } catch (const std::runtime_error &) {
        }
    jmp_buf back;
    if (!setjmp(back))
        put_and_jump(&back);
    for (volatile int i = 0; i < 6000; i++)
        if (!setjmp(back))
            jump_alone(&back);
}

static void check_threads() {
    int status = put_and_fork();
    if (status == 100) {
        put_last(1);
        _exit(9);
    }
    CHECK(status == 9);
    pthread_t threads[4];
    for (auto &one : threads)
        pthread_create(&one, nullptr, calls, nullptr);
    for (auto &one : threads)
        pthread_join(one, nullptr);
    void *result = nullptr;
    pthread_create(&threads[0], nullptr, exits, nullptr);
    pthread_join(threads[0], &result);
    CHECK(result == (void *)7);
    sem_init(&is_ready, 0, 0);
    pthread_create(&threads[0], nullptr, waits, nullptr);
    sem_wait(&is_ready);
    pthread_cancel(threads[0]);
    pthread_join(threads[0], &result);
    CHECK(result == PTHREAD_CANCELED);
}

static void check_stacks() {
    for (int i = 0; i < 2; i++) {
        getcontext(&inner[i]);
        inner[i].uc_stack.ss_sp = stacks[i];
        inner[i].uc_stack.ss_size = sizeof stacks[i];
        makecontext(&inner[i], (void (*)())coroutine, 1, i);
    }
    put_switch(&outer, &inner[0]);
    CHECK(steps == 6);
}

static void check_pointers() {
    Dl_info info;
    CHECK(dladdr((void *)put_last, &info) && !std::strcmp(info.dli_sname, "put_last"));
    CHECK(dlsym(dlopen(nullptr, RTLD_NOW), "put_last") == (void *)put_last);
}

int main() {
    check_values();
    check_leaving();
    check_threads();
    check_stacks();
    check_pointers();
    std::printf("right\n");
}
