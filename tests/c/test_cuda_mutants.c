/* test_cuda_mutants.c - that test_cuda would find a barrier or an atomic operation missing: the twin leaves out one at a time.
 *
 * Three kinds of mutants, of all that a run without any meets:
 * - a barrier between two phases: each thread runs on into the next phase;
 * - a barrier in front of an LZS_READ: what is read is the memory before the last thread arrived;
 * - an atomic operation: it overlooks the one just before it at the same address.
 * Each must give a wrong token or edit, read where it must not (which sanitizers see), or not end. The exceptions are in `benign`,
 * each with an argument, and one that is found out after all is a failure, too.
 */
#define _DEFAULT_SOURCE 1 /* fork, setrlimit */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_case.h"

enum { ROWS = 1000, HISTORIES = 2000, TIES = 12, SECONDS = 60 };

typedef enum mutant_kind { BARRIER, READ, ATOMIC, KINDS } mutant_kind;

static const char *const kinds[KINDS] = {"barrier", "read", "atomic"};

/* Mutants that change no result:
 * - 61, and READ 9: the least bound of the groups says which of them are opened first. Those that are not come later.
 * - READ 10 and 12: a score that is higher than need be opens groups, or runs edited tokens, that cannot win.
 * - READ 14: edits are judged in the phase before the last one.
 * - READ 50: DRY looks at distances that can add nothing. */
static const struct {
    mutant_kind kind;
    int id;
} benign[] = {{BARRIER, 61}, {READ, 9}, {READ, 10}, {READ, 12}, {READ, 14}, {READ, 50}};

static bool is_benign(mutant_kind kind, int id) {
    if (kind == ATOMIC && lzs_the_twin.harmless[id]) return true; /* phases.h says why */
    for (size_t i = 0; i < sizeof benign / sizeof *benign; i++) {
        if (benign[i].kind == kind && benign[i].id == id) return true;
    }
    return false;
}

/* Whether all agree; returns at the first that does not. */
static bool battery(lzs_backend *b) {
    uint64_t state = 77;
    for (int i = 0; i < ROWS; i++) {
        int32_t n = 1 + random_below(&state, i % 16 == 0 ? 9000 : i % 2 == 0 ? 3000 : 300);
        choose_schedule(&state);
        if (!pick_agrees(b, n, (row_kind)(i % ROW_KINDS), &state)) return false;
    }
    for (int i = 0; i < TIES; i++) {
        choose_schedule(&state);
        if (!tie_agrees(b)) return false;
    }
    for (int i = 0; i < HISTORIES; i++) {
        choose_schedule(&state);
        if (!fold_agrees(&state)) return false;
    }
    return true;
}

/* Runs the battery with a mutant in a process of its own. */
static bool survives(lzs_backend *b, mutant_kind kind, int id) {
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int nothing = open("/dev/null", O_WRONLY);
        dup2(nothing, STDERR_FILENO);
        setrlimit(RLIMIT_CPU, &(struct rlimit){SECONDS, SECONDS}); /* of work, on a machine that is busy, too */
        if (kind == BARRIER) lzs_the_twin.dropped = id;
        if (kind == READ) lzs_the_twin.stale = id;
        if (kind == ATOMIC) lzs_the_twin.lossy = id;
        _exit(battery(b) ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void) {
    lzs_backend *b;
    CHECK(lzs_backend_new(CUDA_VOCAB, CUDA_EDITS + 1, 0, &b) == LZS_OK);
    b->kernels = &lzs_kernels_scalar;
    CHECK(battery(b));
    const bool *met[KINDS] = {lzs_the_twin.phases, lzs_the_twin.reads, lzs_the_twin.sites};
    const int most[KINDS] = {LZS_MAX_BARRIERS, LZS_MAX_BARRIERS, LZS_MAX_SITES};
    int n_wrong = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        int n = 0, n_benign = 0;
        for (int id = 0; id < most[kind]; id++) {
            if (!met[kind][id]) continue;
            bool expected = is_benign((mutant_kind)kind, id), survived = survives(b, (mutant_kind)kind, id);
            n++;
            n_benign += expected;
            if (survived != expected) {
                printf("%s %d (file %d, line %d) %s\n", kinds[kind], id, id / 1024, id % 1024, survived ? "survived" : "is not benign");
                n_wrong++;
            }
        }
        printf("%s: %d mutants, %d of them benign\n", kinds[kind], n, n_benign);
    }
    lzs_backend_free(b);
    CHECK(n_wrong == 0);
    return 0;
}
