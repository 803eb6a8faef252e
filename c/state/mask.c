/* mask.c - the masks of one sequence: their owners, what they allow together, and their rewind.
 *
 * Each owner has a log of its last masks, so that a rewind can restore them. Drafts under a grammar need this, because
 * a grammar's mask changes with every token. Older masks are dropped. After a rewind to a position whose mask was
 * dropped, nothing is allowed until the owner sets a mask again.
 */
#include "mask.h"

#include <stdlib.h>
#include <string.h>

#include "../plan/plan.h"

void lzs_masks_init(lzs_masks *masks, int32_t n_vocab) {
    *masks = (lzs_masks){.n_words = lzs_mask_words(n_vocab)};
}

static void drop(struct lzs_mask_log *log, int32_t first, int32_t n) {
    for (int32_t i = first; i < first + n; i++) free(log->changes[i].copy);
    memmove(log->changes + first, log->changes + first + n, (size_t)(log->n - first - n) * sizeof *log->changes);
    log->n -= n;
}

void lzs_masks_clear(lzs_masks *masks) {
    for (int32_t owner = 0; owner < LZS_MASK_OWNERS; owner++) {
        struct lzs_mask_log *log = &masks->logs[owner];
        if (log->n) drop(log, 0, log->n);
        log->forgotten = false;
    }
    masks->both_valid = false;
}

void lzs_masks_free(lzs_masks *masks) {
    lzs_masks_clear(masks);
    for (int32_t owner = 0; owner < LZS_MASK_OWNERS; owner++) free(masks->logs[owner].changes);
    free(masks->both);
}

size_t lzs_masks_memory(const lzs_masks *masks) {
    size_t bytes = masks->both ? masks->n_words * sizeof *masks->both : 0;
    for (int32_t owner = 0; owner < LZS_MASK_OWNERS; owner++) {
        const struct lzs_mask_log *log = &masks->logs[owner];
        if (log->changes) bytes += (LZS_MASK_CHANGES + 1) * sizeof *log->changes;
        for (int32_t i = 0; i < log->n; i++) bytes += log->changes[i].copy ? masks->n_words * sizeof(uint32_t) : 0;
    }
    return bytes;
}

static uint32_t *copy_of(const uint32_t *words, size_t n) {
    uint32_t *copy = malloc(n * sizeof *copy);
    if (copy) memcpy(copy, words, n * sizeof *copy);
    return copy;
}

/* Allocates the owner's log, and `both` if another owner has a log. */
static lzs_status make_room(lzs_masks *masks, int32_t owner) {
    struct lzs_mask_log *log = &masks->logs[owner];
    if (!log->changes) log->changes = malloc((LZS_MASK_CHANGES + 1) * sizeof *log->changes);
    if (!log->changes) return LZS_ENOMEM;
    bool others = false;
    for (int32_t i = 0; i < LZS_MASK_OWNERS; i++) others |= i != owner && masks->logs[i].changes;
    if (others && !masks->both) masks->both = malloc(masks->n_words * sizeof *masks->both);
    return others && !masks->both ? LZS_ENOMEM : LZS_OK;
}

lzs_status lzs_masks_copy(lzs_masks *to, const lzs_masks *from) {
    lzs_masks_clear(to);
    for (int32_t owner = 0; owner < LZS_MASK_OWNERS; owner++) {
        const struct lzs_mask_log *log = &from->logs[owner];
        if (!log->n && !log->forgotten) continue;
        lzs_status status = make_room(to, owner);
        for (int32_t i = 0; i < log->n && status == LZS_OK; i++) {
            lzs_mask mask = log->changes[i];
            if (mask.copy) mask.words = mask.copy = copy_of(mask.copy, to->n_words);
            if (log->changes[i].copy && !mask.copy) {
                status = LZS_ENOMEM;
            } else {
                to->logs[owner].changes[to->logs[owner].n++] = mask;
            }
        }
        if (status != LZS_OK) {
            lzs_masks_clear(to);
            return status;
        }
        to->logs[owner].forgotten = log->forgotten;
    }
    return LZS_OK;
}

lzs_status lzs_masks_set(lzs_masks *masks, int32_t owner, const uint32_t *words, bool borrow, uint64_t position) {
    struct lzs_mask_log *log = &masks->logs[owner];
    if (!words && !log->n && !log->forgotten) return LZS_OK; /* there is no mask to remove */
    lzs_mask mask = {position, words, NULL};
    lzs_status status = make_room(masks, owner);
    if (status != LZS_OK) return status;
    if (words && !borrow) {
        mask.words = mask.copy = copy_of(words, masks->n_words);
        if (!mask.copy) return LZS_ENOMEM;
    }
    if (log->n && log->changes[log->n - 1].position == position) drop(log, log->n - 1, 1); /* no token was picked with
                                                                                            * the replaced mask */
    if (log->n == LZS_MASK_CHANGES + 1) {
        drop(log, 0, 1);
        log->forgotten = true;
    }
    log->changes[log->n++] = mask;
    masks->both_valid = false;
    return LZS_OK;
}

void lzs_masks_rewind(lzs_masks *masks, uint64_t position) {
    for (int32_t owner = 0; owner < LZS_MASK_OWNERS; owner++) {
        struct lzs_mask_log *log = &masks->logs[owner];
        int32_t keep = log->n;
        while (keep > 0 && log->changes[keep - 1].position > position) keep--;
        if (keep < log->n) {
            drop(log, keep, log->n - keep);
            masks->both_valid = false;
        }
    }
}

lzs_status lzs_masks_allowed(lzs_masks *masks, const uint32_t **words) {
    const uint32_t *first = NULL, *second = NULL;
    *words = NULL;
    for (int32_t owner = 0; owner < LZS_MASK_OWNERS; owner++) {
        const struct lzs_mask_log *log = &masks->logs[owner];
        if (!log->n && log->forgotten) return LZS_EMASKED;
        const uint32_t *mask = log->n ? log->changes[log->n - 1].words : NULL;
        if (!mask) continue;
        if (first) {
            second = mask;
        } else {
            first = mask;
        }
    }
    *words = first;
    if (!second) return LZS_OK;
    if (!masks->both_valid) {
        for (size_t i = 0; i < masks->n_words; i++) masks->both[i] = first[i] & second[i];
        masks->both_valid = true;
    }
    *words = masks->both;
    return LZS_OK;
}
