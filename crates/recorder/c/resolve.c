/*
 * Records which names the program looks up, and the addresses that it gets: `getaddrinfo`,
 * `gethostbyname` and their kin. It makes no difference where libc finds the answer: a name server,
 * a file, a daemon.
 */
#include "bs.h"

enum { AF_INET = 2, AF_INET6 = 10 };
/* The most addresses of one answer that are logged. */
enum { MOST = 32 };

/* glibc's and musl's `struct addrinfo` and `struct hostent`. */
struct address_info {
    int flags, family, kind, protocol;
    u32 size;
    const void *address;
    char *name;
    struct address_info *next;
};
struct host {
    char *name;
    char **aliases;
    int family, size;
    char **addresses;
};

/* Logs one answer, the address as hexadecimal digits. Without an address, the look-up failed. */
static void log_answer(const char *name, const u8 *address, u32 size)
{
    char digits[2 * 16 + 1];
    for (u32 i = 0; i < size; i++) {
        digits[2 * i] = "0123456789abcdef"[address[i] >> 4];
        digits[2 * i + 1] = "0123456789abcdef"[address[i] & 15];
    }
    digits[2 * size] = 0;
    bs_end(bs_begin_paths(BS_OP_RESOLVE, 0, 0, 0, name, digits), 0);
}

static BS_COLD void log_infos(const char *name, const struct address_info *info)
{
    const u8 *last = 0;
    u32 last_size = 0;
    for (u32 n = 0; info && n < MOST; info = info->next) {
        bool wide = info->family == AF_INET6;
        u32 size = wide ? 16 : 4;
        if ((!wide && info->family != AF_INET) || info->size < (wide ? 28 : 16))
            continue;
        /* behind the family and the port, and in IPv6 the flow information */
        const u8 *address = (const u8 *)info->address + (wide ? 8 : 4);
        bool same = last && last_size == size;
        for (u32 i = 0; same && i < size; i++)
            same = last[i] == address[i];
        last = address;
        last_size = size;
        if (same)
            continue; /* the same for another type of socket */
        log_answer(name, address, size);
        n++;
    }
}

static BS_COLD void log_host(const char *name, const struct host *host)
{
    if (!host) {
        log_answer(name, 0, 0);
        return;
    }
    if (host->size != 4 && host->size != 16)
        return;
    for (u32 n = 0; host->addresses && host->addresses[n] && n < MOST; n++)
        log_answer(name, (const u8 *)host->addresses[n], (u32)host->size);
}

int getaddrinfo(const char *name, const char *service, const struct address_info *hints,
                struct address_info **found);

BS_INTERCEPTED int getaddrinfo(const char *name, const char *service,
                               const struct address_info *hints, struct address_info **found)
{
    int result = BS_NEXT(getaddrinfo)(name, service, hints, found);
    if (name && result == 0)
        log_infos(name, *found);
    else if (name)
        log_answer(name, 0, 0);
    return result;
}

struct host *gethostbyname(const char *name);

BS_INTERCEPTED struct host *gethostbyname(const char *name)
{
    struct host *found = BS_NEXT(gethostbyname)(name);
    log_host(name, found);
    return found;
}

struct host *gethostbyname2(const char *name, int family);

BS_INTERCEPTED struct host *gethostbyname2(const char *name, int family)
{
    struct host *found = BS_NEXT(gethostbyname2)(name, family);
    log_host(name, found);
    return found;
}

int gethostbyname_r(const char *name, struct host *host, char *room, size_t size,
                    struct host **found, int *error);

BS_INTERCEPTED int gethostbyname_r(const char *name, struct host *host, char *room, size_t size,
                                   struct host **found, int *error)
{
    int result = BS_NEXT(gethostbyname_r)(name, host, room, size, found, error);
    if (result != BS_ERANGE) /* the program tries again with more room */
        log_host(name, result ? 0 : *found);
    return result;
}

int gethostbyname2_r(const char *name, int family, struct host *host, char *room, size_t size,
                     struct host **found, int *error);

BS_INTERCEPTED int gethostbyname2_r(const char *name, int family, struct host *host, char *room,
                                    size_t size, struct host **found, int *error)
{
    int result = BS_NEXT(gethostbyname2_r)(name, family, host, room, size, found, error);
    if (result != BS_ERANGE)
        log_host(name, result ? 0 : *found);
    return result;
}
