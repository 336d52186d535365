/* Preloaded into a process: the addresses of the host "customer.test" are the lines of the file
 * RESOLVER_FILE, which is read at each lookup. All other names are looked up as always.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    lookup *real = (lookup *)dlsym(RTLD_NEXT, "getaddrinfo");
    if (node == NULL || strcmp(node, "customer.test") != 0)
        return real(node, service, hints, result);
    FILE *file = fopen(getenv("RESOLVER_FILE"), "r");
    if (file == NULL)
        return EAI_AGAIN;
    struct addrinfo numeric = hints ? *hints : (struct addrinfo){0};
    numeric.ai_flags = AI_NUMERICHOST;
    numeric.ai_family = AF_UNSPEC;
    struct addrinfo **end = result;
    *result = NULL;
    char line[64];
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        struct addrinfo *found;
        if (real(line, service, &numeric, &found) != 0)
            continue;
        *end = found;
        while (*end)
            end = &(*end)->ai_next;
    }
    fclose(file);
    return *result ? 0 : EAI_NONAME;
}
