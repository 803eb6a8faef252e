/* plan.c - one sampling step as plain data: the settings of a step, and plans as bytes.
 *
 * The bytes are: the struct `fixed` below, then the edits in ascending order of tokens, then the words of the mask. All
 * numbers have the byte order of the machine. A reader with another byte order reads another magic number and refuses
 * the plan.
 */
#include "plan.h"

#include <string.h>

#include "ranges.h"

typedef struct fixed {
    uint32_t magic, version;
    int32_t n_vocab, sign_aware;
    uint64_t n_edits, n_words; /* n_words: number of words of the mask; 0 if the plan has no mask */
    float temperature;
    int32_t temperature_last, top_k;
    float top_p, min_p;
    int32_t ties;
    uint64_t seed, position;
} fixed;

enum { MAGIC = 0x4e505a4c /* "LZPN" */, VERSION = 1 };

_Static_assert(sizeof(fixed) == 72 && sizeof(fixed) % 8 == 0, "the bytes of a plan have no padding");
_Static_assert(sizeof(lzs_edit) == 12, "edits are three packed 32-bit numbers");

void lzs_plan_settings(lzs_plan *plan, int32_t n_vocab, const lzs_params *params) {
    *plan = (lzs_plan){
        .n_vocab = n_vocab,
        .sign_aware = params->sign_aware,
        .temperature = params->temperature,
        .temperature_last = params->temperature_last,
        .top_k = params->top_k,
        .top_p = params->top_p,
        .min_p = params->min_p,
        .ties = params->ties,
        .seed = params->seed,
    };
}

const char *lzs_plan_invalid(const lzs_plan *plan) {
    lzs_params params = {
        .temperature = plan->temperature,
        .temperature_last = plan->temperature_last,
        .top_k = plan->top_k,
        .top_p = plan->top_p,
        .min_p = plan->min_p,
        .ties = plan->ties,
    };
    if (plan->n_vocab < 1 || plan->n_vocab > LZS_MAX_VOCAB) return "n_vocab";
    if (plan->n_edits > (size_t)plan->n_vocab || (plan->n_edits && !plan->edits)) return "edits";
    if (!lzs_choice(plan->sign_aware, 1)) return "sign_aware";
    return lzs_sampling_invalid(&params);
}

size_t lzs_plan_size(const lzs_plan *plan) {
    return sizeof(fixed) + plan->n_edits * sizeof *plan->edits + (plan->mask ? lzs_mask_words(plan->n_vocab) * 4 : 0);
}

/* Sorts edits by token (Shell's sort), so that a reader can check in one pass that no token has two edits. `bytes`
 * needs no alignment. */
static void sort_edits(char *bytes, size_t n) {
    enum { SIZE = sizeof(lzs_edit) };
    for (size_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
        for (size_t i = gap; i < n; i++) {
            lzs_edit moved, other;
            size_t at = i;
            memcpy(&moved, bytes + i * SIZE, SIZE);
            for (; at >= gap; at -= gap) {
                memcpy(&other, bytes + (at - gap) * SIZE, SIZE);
                if (other.token <= moved.token) break;
                memcpy(bytes + at * SIZE, &other, SIZE);
            }
            memcpy(bytes + at * SIZE, &moved, SIZE);
        }
    }
}

lzs_status lzs_plan_write(const lzs_plan *plan, void *bytes, size_t capacity) {
    if (lzs_plan_invalid(plan)) return LZS_EINVAL;
    if (capacity < lzs_plan_size(plan)) return LZS_ESPACE;
    const fixed f = {
        .magic = MAGIC,
        .version = VERSION,
        .n_vocab = plan->n_vocab,
        .sign_aware = plan->sign_aware,
        .n_edits = plan->n_edits,
        .n_words = plan->mask ? lzs_mask_words(plan->n_vocab) : 0,
        .temperature = plan->temperature,
        .temperature_last = plan->temperature_last,
        .top_k = plan->top_k,
        .top_p = plan->top_p,
        .min_p = plan->min_p,
        .ties = plan->ties,
        .seed = plan->seed,
        .position = plan->position,
    };
    char *at = bytes;
    memcpy(at, &f, sizeof f);
    at += sizeof f;
    if (plan->n_edits) memcpy(at, plan->edits, plan->n_edits * sizeof *plan->edits);
    sort_edits(at, plan->n_edits);
    at += plan->n_edits * sizeof *plan->edits;
    if (plan->mask) memcpy(at, plan->mask, (size_t)f.n_words * 4);
    return LZS_OK;
}

static bool edits_valid(const lzs_edit *edits, size_t n, int32_t n_vocab) {
    for (size_t i = 0; i < n; i++) {
        if (edits[i].token < 0 || edits[i].token >= n_vocab) return false;
        if (i && edits[i].token <= edits[i - 1].token) return false;
        if (!(edits[i].repeat >= FLT_MIN && edits[i].repeat <= FLT_MAX && edits[i].bias <= FLT_MAX)) return false;
    }
    return true;
}

lzs_status lzs_plan_read(const void *bytes, size_t n, lzs_plan *plan) {
    fixed f;
    if (!bytes || (uintptr_t)bytes % 8 || n < sizeof f) return LZS_EINVAL;
    memcpy(&f, bytes, sizeof f);
    if (f.magic != MAGIC || f.version != VERSION || f.n_vocab < 1 || f.n_edits > (uint64_t)f.n_vocab) return LZS_EINVAL;
    if (f.n_words && f.n_words != lzs_mask_words(f.n_vocab)) return LZS_EINVAL;
    if (n != sizeof f + f.n_edits * sizeof(lzs_edit) + f.n_words * 4) return LZS_EINVAL; /* the sum has 64 bits, so it
                                                                                          * cannot overflow */
    const char *at = (const char *)bytes + sizeof f;
    lzs_plan read = {
        .n_vocab = f.n_vocab,
        .sign_aware = f.sign_aware,
        .edits = (const lzs_edit *)(const void *)at,
        .n_edits = (size_t)f.n_edits,
        .temperature = f.temperature,
        .temperature_last = f.temperature_last,
        .top_k = f.top_k,
        .top_p = f.top_p,
        .min_p = f.min_p,
        .ties = f.ties,
        .seed = f.seed,
        .position = f.position,
    };
    at += read.n_edits * sizeof(lzs_edit);
    if (f.n_words) read.mask = (const uint32_t *)(const void *)at;
    if (lzs_plan_invalid(&read) || !edits_valid(read.edits, read.n_edits, read.n_vocab)) return LZS_EINVAL;
    *plan = read;
    return LZS_OK;
}
