/* Installs a filter that allows everything, and writes before and after. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void)
{
    if (write(1, "before\n", 7) != 7)
        abort();
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {1, &allow};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter, 0, 0))
        abort();
    if (write(1, "after\n", 6) != 6)
        abort();
    return 0;
}
