/* test_dispatch.c - the environment variable LZS_KERNELS names a table of kernels; a name that does not run here is ignored.
 * The choice is made once in a process, so each name is a run of its own.
 *
 * usage: test_dispatch <value of LZS_KERNELS> (or none, for an empty environment)
 */
#if defined(__unix__) || defined(__APPLE__)
#  define _DEFAULT_SOURCE /* setenv */
#  include <string.h>

#  include "backend/backend.h"
#  include "check.h"

int main(int argc, char **argv) {
    const lzs_kernels *named = NULL, *fastest = NULL, *table;
    unsetenv("LZS_KERNELS");
    if (argc > 1) CHECK(setenv("LZS_KERNELS", argv[1], 1) == 0);
    for (int i = 0; (table = lzs_kernels_at(i)); i++) {
        fastest = table;
        if (argc > 1 && strcmp(argv[1], table->name) == 0) named = table;
    }
    const lzs_kernels *expected = named ? named : fastest;
    CHECK(strcmp(lzs_kernels_name(), expected->name) == 0 && lzs_kernels_best() == expected);
    CHECK(setenv("LZS_KERNELS", "scalar", 1) == 0);
    CHECK(lzs_kernels_best() == expected); /* it is asked for once */

    /* And everything works with it. */
    lzs_params p;
    lzs_sampler *s;
    float row[100] = {0};
    int32_t token;
    lzs_params_init(&p);
    CHECK(lzs_params_invalid(&p, 100) == NULL && lzs_sampler_new(100, &p, &s) == LZS_OK);
    CHECK(lzs_sample(s, row, &token) == LZS_OK && token >= 0);
    lzs_sampler_free(s);
    return 0;
}
#else
int main(void) {
    return 0;
}
#endif
