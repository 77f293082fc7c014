/* Preloaded into slurmdbd, which has no setting for the address that it listens on (22.05): any address becomes
   127.0.0.1. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

int bind(int handle, const struct sockaddr *address, socklen_t length)
{
    int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "bind");
    struct sockaddr_storage changed;
    memset(&changed, 0, sizeof changed);
    memcpy(&changed, address, length < sizeof changed ? length : sizeof changed);
    if (address->sa_family == AF_INET) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)&changed;
        if (v4->sin_addr.s_addr == htonl(INADDR_ANY))
            v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&changed;
        if (IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr))
            inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6->sin6_addr);
    }
    return real(handle, (struct sockaddr *)&changed, length);
}
