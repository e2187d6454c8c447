//! `record --deep` of calls that return the addresses of sockets, or look at messages.

use super::deep_equal::{program_is_equal_again, program_writes_again};
use super::deep_replay::recorded_program;

/// The kernel returns the lengths of whole addresses. The program has less room for them, at the
/// end of readable memory.
const ROOMS: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
static socklen_t length;
enum { ROOM = 4 };
/* The last bytes before memory that nobody may read. */
static void *edge(void)
{
    char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + 4096, 4096, PROT_NONE))
        exit(1);
    length = ROOM;
    return pages + 4096 - ROOM;
}
static int bound(int kind, const char *name)
{
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    strcpy(own.sun_path, name);
    int fd = socket(AF_UNIX, kind, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof own))
        exit(2);
    return fd;
}
int main(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "receiver"};
    int receiver = bound(SOCK_DGRAM, "receiver"), sender = bound(SOCK_DGRAM, "sender");
    char byte;
    if (getsockname(receiver, edge(), &length))
        return 3;
    printf("%u\n", length);
    for (int n = 0; n < 3; n++)
        if (sendto(sender, "x", 1, 0, (struct sockaddr *)&to, sizeof to) != 1)
            return 4;
    if (recvfrom(receiver, &byte, 1, 0, edge(), &length) != 1)
        return 5;
    printf("%u\n", length);
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_name = edge(), .msg_namelen = ROOM, .msg_iov = &part, .msg_iovlen = 1};
    if (recvmsg(receiver, &message, 0) != 1)
        return 6;
    printf("%u\n", message.msg_namelen);
    struct mmsghdr many = {.msg_hdr = message};
    many.msg_hdr.msg_name = edge();
    many.msg_hdr.msg_namelen = ROOM;
    if (recvmmsg(receiver, &many, 1, 0, 0) != 1)
        return 7;
    const struct sockaddr_un *from = many.msg_hdr.msg_name;
    printf("%u %d %.2s\n", many.msg_hdr.msg_namelen, from->sun_family, from->sun_path);
    return 0;
}
"#;

#[test]
fn an_address_is_read_no_further_than_the_program_has_room_for_it() {
    program_writes_again("", "rooms", ROOMS, "11\n9\n9\n9 1 se\n");
}

/// Asks the kernel for the network interfaces, as `ip link` does. It asks for the length of each
/// message without taking any of it, and then takes it.
const LOOKS_FIRST: &str = r#"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg link;
    } ask = {{sizeof ask, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 7, 0}, {0}};
    static char room[1 << 16];
    int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    unsigned short type;
    if (netlink < 0 || send(netlink, &ask, sizeof ask, 0) != sizeof ask)
        return 1;
    do {
        struct sockaddr_nl from = {0};
        struct iovec none = {0, 0}, all = {room, sizeof room};
        struct msghdr message = {&from, sizeof from, &none, 1, 0, 0, 0};
        long whole = recvmsg(netlink, &message, MSG_PEEK | MSG_TRUNC);
        printf("%ld %d %d\n", whole, message.msg_flags, message.msg_namelen);
        long short_look = recv(netlink, room, 8, MSG_PEEK);
        message.msg_iov = &all;
        long got = recvmsg(netlink, &message, 0);
        memcpy(&type, room + 4, 2);
        printf("%ld %ld %d %d\n", short_look, got, message.msg_flags, type);
        if (got <= 0)
            return 2;
    } while (type != NLMSG_DONE);
    return 0;
}
"#;

#[test]
fn a_look_at_a_message_has_its_whole_length() {
    program_is_equal_again("", "looks", LOOKS_FIRST);
}

/// Takes messages with less room than they need: none, some, by three calls, and behind a look.
const CUT: &str = r#"
#define _GNU_SOURCE
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void)
{
    struct sockaddr_in own = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}};
    socklen_t size = sizeof own;
    int here = socket(AF_INET, SOCK_DGRAM, 0), other = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(here, (void *)&own, size) || getsockname(here, (void *)&own, &size))
        return 1;
    char room[300] = "";
    for (int n = 0; n < 9; n++) {
        room[0] = 'a' + n;
        if (sendto(other, room, 100 + n, 0, (void *)&own, size) < 0)
            return 2;
    }
    struct iovec some = {room, 8};
    struct mmsghdr one = {{0, 0, &some, 1, 0, 0, 0}, 0};
    printf("%zd\n", recv(here, room, 8, MSG_TRUNC));
    printf("%c\n", *room);
    printf("%zd\n", recv(here, 0, 0, MSG_TRUNC));
    printf("%zd\n", recv(here, 0, 0, 0));
    printf("%zd\n", recvmsg(here, &one.msg_hdr, 0));
    printf("%c %d\n", *room, one.msg_hdr.msg_flags == MSG_TRUNC);
    printf("%d\n", recvmmsg(here, &one, 1, MSG_TRUNC, 0));
    printf("%c %u %d\n", *room, one.msg_len, one.msg_hdr.msg_flags == MSG_TRUNC);
    printf("%zd\n", recv(here, 0, 0, MSG_PEEK | MSG_TRUNC));
    printf("%zd\n", read(here, room, 8));
    printf("%c\n", *room);
    printf("%zd\n", recv(here, 0, 0, MSG_PEEK | MSG_TRUNC));
    printf("%zd\n", recv(here, 0, 0, 0));
    printf("%zd\n", recv(here, room, 1, MSG_PEEK | MSG_TRUNC));
    printf("%zd\n", recv(here, room, sizeof room, MSG_TRUNC));
    printf("%c\n", *room);
    some.iov_len = sizeof room;
    printf("%zd\n", recvmsg(here, &one.msg_hdr, 0));
    printf("%c %d\n", *room, one.msg_hdr.msg_flags);
    return 0;
}
"#;

#[test]
fn a_message_that_was_cut_is_cut_again_and_has_its_whole_length() {
    program_is_equal_again("", "cut", CUT);
}

/// Asks for the network interfaces, as `ifconfig` does. It asks for the length of their list, for a
/// short list and the whole one. Then it asks for facts about each interface.
const INTERFACES: &str = r#"
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
int main(void)
{
    static struct ifreq room[64];
    struct ifconf all = {0};
    int facts[] = {SIOCGIFFLAGS, SIOCGIFADDR, SIOCGIFNETMASK, SIOCGIFMTU, SIOCGIFINDEX};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0 || ioctl(fd, SIOCGIFCONF, &all))
        return 1;
    printf("%d\n", all.ifc_len);
    for (int most = 0; most < 2; most++) {
        all.ifc_len = most ? sizeof room : sizeof room[0] + 3;
        all.ifc_req = room;
        if (ioctl(fd, SIOCGIFCONF, &all))
            return 2;
        printf("%d %s\n", all.ifc_len, room[0].ifr_name);
    }
    for (int n = 0; n < all.ifc_len / (int)sizeof room[0]; n++)
        for (unsigned f = 0; f < sizeof facts / sizeof facts[0]; f++) {
            struct ifreq one = {0};
            strcpy(one.ifr_name, room[n].ifr_name);
            int result = ioctl(fd, facts[f], &one);
            printf("%s %d", one.ifr_name, result);
            for (int byte = 0; byte < 8; byte++)
                printf(" %02x", (unsigned char)one.ifr_ifru.ifru_slave[byte]);
            puts("");
        }
    return 0;
}
"#;

#[test]
fn a_program_gets_the_recorded_network_interfaces() {
    program_is_equal_again("", "interfaces", INTERFACES);
}

/// Discards the first bytes of a connection. TCP does not look at the buffer then.
const DISCARDS: &str = r#"
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void)
{
    struct sockaddr_in own = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}};
    socklen_t size = sizeof own;
    int listens = socket(AF_INET, SOCK_STREAM, 0), other = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listens, (void *)&own, size) || listen(listens, 1) ||
        getsockname(listens, (void *)&own, &size) || connect(other, (void *)&own, size))
        return 1;
    int here = accept(listens, 0, 0);
    if (write(other, "discarded, read", 15) != 15)
        return 2;
    char room[16] = "";
    struct iovec parts[] = {{room, 2}, {(void *)16, 3}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    long discarded = recv(here, (void *)16, 6, MSG_TRUNC);
    discarded += recvmsg(here, &message, MSG_TRUNC);
    long got = read(here, room, sizeof room - 1);
    printf("%ld %ld %s\n", discarded, got, room);
    return 0;
}
"#;

#[test]
fn a_buffer_is_not_read_where_bytes_of_a_connection_were_discarded() {
    let line = "RECORD ./discards > out";
    if let Some(place) = recorded_program("", "discards", DISCARDS, line) {
        assert_eq!(place.out(), "11 4 read\n");
    }
}
