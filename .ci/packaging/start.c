/* Starts Python, or wolo, of the folder that this program lies in, with the folder's own loader and libraries.
   Statically linked, so that the folder needs nothing of the system it is unpacked on, whether that has glibc, musl or neither. */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static char *below(const char *root, const char *name) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s", root, name) < 0) {
        perror("wolo");
        exit(126);
    }
    return path;
}

int main(int argc, char **argv) {
    char self[PATH_MAX], name[PATH_MAX];
    if (!realpath((const char *)getauxval(AT_EXECFN), self)) {
        perror("wolo: cannot find its own folder");
        return 126;
    }
    strcpy(name, self);
    int is_wolo = strcmp(basename(name), "wolo") == 0;
    const char *root = dirname(dirname(self));
    char **arguments = calloc((size_t)argc + 12, sizeof *arguments);
    if (!arguments) {
        perror("wolo");
        return 126;
    }
    int n = 0;
    arguments[n++] = below(root, "lib/loader");
    arguments[n++] = "--library-path";
    arguments[n++] = below(root, "lib");
    arguments[n++] = "--argv0";
    arguments[n++] = below(root, "bin/python3");
    arguments[n++] = below(root, "lib/interpreter");
    if (is_wolo) {
        arguments[n++] = "-I";
        arguments[n++] = "-m";
        arguments[n++] = "wolo";
    }
    for (int i = 1; i < argc; i++)
        arguments[n++] = argv[i];
    execv(arguments[0], arguments);
    perror("wolo: cannot start the Python of its folder");
    return 126;
}
