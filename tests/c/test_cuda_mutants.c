/* test_cuda_mutants.c - that test_cuda would find a barrier or an atomic operation missing: the twin leaves out one at a time.
 *
 * Four kinds of mutants, of all that a run without any meets:
 * - a barrier between two phases: each thread runs on into the next phase;
 * - a barrier in front of an LZS_READ: what is read is the memory before the last thread arrived;
 * - an atomic operation: it overlooks the one just before it at the same address;
 * - any barrier at which threads wait that have stacks of their own (cuda_fibers.h), also those behind a read.
 * Each must give a wrong token or edit, read where it must not (which sanitizers see), or not end. The exceptions are in `benign`,
 * each with an argument, and one that is found out after all is a failure, too.
 */
#define _DEFAULT_SOURCE 1 /* fork, setrlimit */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_fibers.h"

enum { ROWS = 1000, HISTORIES = 2000, TIES = 12, SECONDS = 60 };

typedef enum mutant_kind { BARRIER, READ, ATOMIC, WAIT, KINDS } mutant_kind;

static const char *const kinds[KINDS] = {"barrier", "read", "atomic", "wait"};

/* Mutants that change no result:
 * - BARRIER 61, READ 5: the least bound says which tokens run first. Those that do not run later.
 * - READ 6: a score that is higher than need be lets tokens run that cannot win.
 * - ATOMIC 227 (least_top, row.h): top-k's bound without one share. It is no argument, but a gap of these tests: their
 *   rows have no bound so near the k-th token.
 * - READ 50: DRY looks at distances that can add nothing.
 * - WAIT 61, 62: as 61 above.
 * - WAIT 11, 15, 23, 48 and 82 end a step. The twin's threads meet between two steps. On a GPU, a row of one block needs
 *   these barriers.
 * - WAIT 208: READ 51 waits before the slots are counted, and a token outside the vocabulary has been found before.
 * - WAIT 54 and 221: nothing comes after the last phase.
 * - WAIT LZS_READ_BARRIER + n: the phase that follows that read does not write what was read; where the next read follows at
 *   once, that one waits. The rule that each read waits is simpler than these exceptions, and cannot be broken by a change elsewhere. */
static const struct {
    mutant_kind kind;
    int id;
} benign[] = {{BARRIER, 61}, {READ, 5}, {READ, 6}, {READ, 50}, {ATOMIC, 227}, {WAIT, 11}, {WAIT, 15}, {WAIT, 23}, {WAIT, 48}, {WAIT, 54}, {WAIT, 61},
              {WAIT, 62}, {WAIT, 82}, {WAIT, 208}, {WAIT, 221}};

/* Reads of which the barrier is needed. */
static const int needed_reads[] = {50};

static bool is_benign(mutant_kind kind, int id) {
    if (kind == ATOMIC && lzs_the_twin.harmless[id]) return true; /* phases.h says why */
    if (kind == WAIT && id >= LZS_READ_BARRIER) {
        for (size_t i = 0; i < sizeof needed_reads / sizeof *needed_reads; i++) {
            if (id == LZS_READ_BARRIER + needed_reads[i]) return false;
        }
        return true;
    }
    for (size_t i = 0; i < sizeof benign / sizeof *benign; i++) {
        if (benign[i].kind == kind && benign[i].id == id) return true;
    }
    return false;
}

/* Whether all agree; returns at the first that does not. */
static bool battery(lzs_backend *b, bool fibers) {
    uint64_t state = 77;
    lzs_run_step = fibers ? fibers_step : lzs_twin_step;
    run_fold = fibers ? fibers_fold : lzs_twin_fold;
    const int part = fibers ? 2 : 1; /* their rows take longer */
    for (int i = 0; i < ROWS / part; i++) {
        int32_t n = 1 + random_below(&state, i % 16 == 0 ? 9000 : i % 2 == 0 ? 3000 : 300);
        choose_schedule(&state);
        if (!pick_agrees(b, n, (row_kind)(i % ROW_KINDS), &state)) return false;
    }
    for (int i = 0; i < TIES / part; i++) {
        choose_schedule(&state);
        if (!tie_agrees(b, 1 + i % 3)) return false;
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
        if (kind == WAIT) lzs_the_twin.skipped = id;
        _exit(battery(b, kind == WAIT) ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void) {
    lzs_backend *b;
    CHECK(lzs_backend_new(CUDA_VOCAB, CUDA_EDITS + 1, &b) == LZS_OK);
    b->kernels = &lzs_kernels_scalar;
    CHECK(battery(b, false) && battery(b, true));
    const bool *met[KINDS] = {lzs_the_twin.phases, lzs_the_twin.reads, lzs_the_twin.sites, lzs_the_twin.waits};
    const int most[KINDS] = {LZS_MAX_BARRIERS, LZS_MAX_BARRIERS, LZS_MAX_SITES, LZS_MAX_WAITS};
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
