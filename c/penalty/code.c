/* code.c - the length of a text, in bits, under the LZ compressor of arXiv 2504.20131 (Definition 8).
 *
 * The text is cut into phrases from left to right. A phrase is the longest stretch, of at most `buffer` tokens, that
 * also occurs at a distance of 1 to `window` tokens before. If there are several such distances, the least counts. The
 * two occurrences may overlap. A phrase costs 1 + log2 length + log2 distance bits (Proposition 1). A token that does
 * not occur in the window costs 1 + log2 V, V being the size of the vocabulary (Proposition 2).
 *
 * For each distance d, the match index knows how many last tokens equal the tokens d positions earlier. A phrase grows
 * as long as the whole phrase also occurs at some distance.
 */
#include "../backend/arithmetic.h"
#include "../include/lzsampler_explain.h"
#include "../state/match_index.h"

/* Returns the least distance, at most `reach`, at which the last `length` tokens also occur; 0: there is none. */
static int32_t nearest(const lzs_match_index *index, const lzs_kernels *kernels, int32_t reach, int32_t length) {
    lzs_match_walk walk = {.reach = reach, .least = (uint16_t)length};
    return lzs_match_walk_on(&walk, index, kernels) ? walk.base - walk.found[walk.n - 1] : 0;
}

lzs_status lzs_code_length(const int32_t *tokens, size_t n, int32_t n_vocab, int32_t window, int32_t buffer,
                           double *bits) {
    if (!bits || (n && !tokens) || n_vocab < 1) return LZS_EINVAL;
    if (window < 1 || window > LZS_MAX_WINDOW || buffer < 1 || buffer > LZS_MAX_BUFFER) return LZS_EINVAL;
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] < 0 || tokens[i] >= n_vocab) return LZS_EINVAL;
    }
    const lzs_kernels *kernels = lzs_kernels_best();
    lzs_match_index index = {.window = window, .cap = buffer};
    lzs_status status = lzs_match_index_reserve(&index, n < (size_t)window ? n : (size_t)window);
    if (status != LZS_OK) return status;
    double literal = 1.0 + (double)lzs_log2((float)n_vocab), total = 0.0;
    int32_t length = 0, distance = 0; /* length and distance of the phrase that ends the tokens so far */
    for (size_t i = 0; i < n; i++) {
        lzs_match_index_extend(&index, kernels, tokens, i + 1);
        int32_t reach = i < (size_t)index.room ? (int32_t)i : index.room;
        int32_t longer = length < buffer ? nearest(&index, kernels, reach, length + 1) : 0;
        if (!longer && length) {
            total += 1.0 + (double)lzs_log2((float)length) + (double)lzs_log2((float)distance);
            length = 0;
            longer = nearest(&index, kernels, reach, 1);
        }
        if (longer) {
            distance = longer;
            length++;
        } else {
            total += literal;
        }
    }
    if (length) total += 1.0 + (double)lzs_log2((float)length) + (double)lzs_log2((float)distance);
    lzs_match_index_free(&index);
    *bits = total;
    return LZS_OK;
}
