/* figures.c - counts the n-grams of words, the lines and the paragraphs of a text that occurred earlier in the text.
 *
 * Only n-grams of words that occur more than once are listed and numbered. N-grams that occur once are only counted. An
 * n-gram can occur again only if both (n - 1)-grams in it occur again. So a longer n-gram is a pair of neighbours in
 * the list, and two n-grams are compared as pairs of numbers. In ordinary text the list soon gets short.
 *
 * Datatrove compares duplicate 5- to 10-grams without the spaces between their words, so "ab c" equals "a bc". Here
 * these n-grams are stretches of the joined words: all words of a piece with nothing between them. Two such n-grams can
 * be equal only if their first 16 bytes are equal (24 or 32 bytes for longer n-grams). Two bit sets of hashes find the
 * words at which these first bytes occur twice. In ordinary text this is one word in twenty, and n-grams are looked up
 * at these words only.
 *
 * A text longer than LZS_TEXT_PIECE bytes is cut into pieces, and memory is for one piece. Let a piece have w words
 * with b bytes. Its n-grams take 24 w bytes. Later, its joined words take up to 16 w + b bytes. Both use one block,
 * which has the larger of the two sizes. A hash table takes up to 48 w bytes. Lines and paragraphs use no more memory
 * than words. The time is linear in the length of every text. Each word is hashed and compared as a part of at most 45
 * n-grams, and as the end of at most 30 pairs.
 */
#include "text.h"

#include <stdlib.h>

#define TAIL 512     /* the 4-grams of the last TAIL words of a piece are counted separately */
#define MATCH 4      /* number of words of a repetition that the next word may extend (`extensible`, `extended`) */
#define LONG_GRAM 30 /* arXiv 2512.12895 calls a text a loop if an n-gram of LONG_GRAM words occurs OFTEN times */
#define OFTEN 20
#define FEW 256      /* longer n-grams are searched only while at most this many n-grams are listed */

static uint64_t span_characters(const uint8_t *text, lzs_span span) {
    return count_characters(text + span.start, span.end - span.start);
}

/* A piece of the text, with its words and the memory for its figures. */
typedef struct piece {
    const uint8_t *text;
    size_t n_bytes;        /* number of bytes of the whole text */
    const lzs_span *words; /* (n) the words; NULL if there are only numbers */
    const int32_t *ids;    /* (n) the numbers of the words */
    size_t n;
    /* memory of the arrays below; the arrays of joined words use the same memory as the arrays of n-grams of numbers */
    void *block;
    lzs_table table; /* finds n-grams by their hashes */
    size_t n_listed;

    /* N-grams of numbers that occur more than once. n goes from 1 to 5, and up to 30 if some n-grams occur often. */
    /* number of words of a listed n-gram, and number of words of the longest n-gram that was ever listed */
    size_t length, longest;
    /* (n_listed) for each listed n-gram, in order: the index of its first word, and the number of the n-gram */
    uint32_t *at, *grams;
    /* (n_grams) for each n-gram, by its number: where it first occurs (the index of its first word), and how often it
     * occurs */
    uint32_t *first, *counts;
    /* (n_grams) during look-ups, for each n-gram, by its number: the number of the (n - 1)-gram of its first words, and
     * the number of the (n - 1)-gram of its last words */
    uint32_t *prefix, *suffix;
    size_t n_grams;

    /* N-grams of joined words. n goes from 5 to 10. */
    uint64_t *bits;      /* (n_bits / 32) two bit sets of hashes, of n_bits bits each */
    size_t n_bits;       /* a power of two, at least 8 for each word */
    uint32_t *joined_at; /* (n + 1) for each word: where the word starts in `joined` */
    uint32_t *heads;     /* (n) for each word: hash of the first bytes of `joined` from this word on */
    uint32_t *listed;    /* (n_listed) the words where a repeated n-gram may start */
    uint8_t *joined;     /* the words with nothing between them, and room for WIDE bytes */
} piece;

#define WIDE 16 /* number of bytes that are copied at once; most words are shorter */

static void piece_free(piece *p) {
    free(p->block);
    free(p->table.slots);
}

/* Allocates all arrays as one block. If a program measures many texts, it gets the same block each time, so the pages
 * of the block are not mapped again. */
static lzs_status piece_init(piece *p) {
    size_t n = p->n + 1, n_bytes = WIDE;
    for (size_t i = 0; p->words && i < p->n; i++) n_bytes += p->words[i].end - p->words[i].start;
    if (n > SIZE_MAX / 64) return LZS_ENOMEM; /* fewer than 64 bytes per word are allocated below */
    p->n_bits = 64;
    while (p->n_bits / 8 < n) p->n_bits *= 2;
    size_t of_numbers = 6 * n * sizeof *p->grams, of_joined = p->n_bits / 4 + 3 * n * sizeof *p->heads + n_bytes;
    p->block = malloc(of_numbers > of_joined ? of_numbers : of_joined);
    if (!p->block) return LZS_ENOMEM;
    p->at = p->block;
    p->grams = p->at + n;
    p->first = p->grams + n;
    p->counts = p->first + n;
    p->prefix = p->counts + n;
    p->suffix = p->prefix + n;
    p->bits = p->block;
    p->joined_at = (uint32_t *)(void *)(p->bits + p->n_bits / 32);
    p->heads = p->joined_at + n;
    p->listed = p->heads + n;
    p->joined = (uint8_t *)(p->listed + n);
    return lzs_table_init(&p->table, n);
}

/* Splits a span of the text at stretches of `least` or more line feeds, as Python's re.split does. Counts the elements
 * between these stretches, the duplicates (elements that equal an earlier element), and the characters of the
 * duplicates. */
static lzs_status count_elements(const uint8_t *text, lzs_span within, size_t least, uint64_t *n, uint64_t *n_duplicate,
                                 uint64_t *duplicate_characters) {
    size_t count = 0, capacity = 0;
    lzs_span *spans = NULL;
    lzs_status status = LZS_OK;
    for (size_t from = within.start, at = from; at <= within.end;) {
        const uint8_t *line_end = at < within.end ? memchr(text + at, '\n', within.end - at) : NULL;
        size_t end = line_end ? (size_t)(line_end - text) : within.end, next = end;
        while (next < within.end && text[next] == '\n') next++;
        at = end < within.end ? next : (size_t)within.end + 1;
        if (end < within.end && next - end < least) continue;
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            lzs_span *more = realloc(spans, capacity * sizeof *spans);
            if (!more) {
                free(spans);
                return LZS_ENOMEM;
            }
            spans = more;
        }
        spans[count++] = (lzs_span){(uint32_t)from, (uint32_t)end};
        from = at;
    }
    int32_t *ids = malloc((count + 1) * sizeof *ids), next_id = 0;
    size_t n_distinct;
    if (!ids) status = LZS_ENOMEM;
    if (status == LZS_OK) status = lzs_intern(text, within.end, spans, count, ids, &n_distinct);
    for (size_t i = 0; i < count && status == LZS_OK; i++) {
        if (ids[i] == next_id) {
            next_id++;
        } else {
            *n_duplicate += 1;
            *duplicate_characters += span_characters(text, spans[i]);
        }
    }
    *n += count;
    free(spans);
    free(ids);
    return status;
}

/* Numbers the distinct words, and lists the words that occur more than once. *n_distinct gets the number of distinct
 * words. If the ids of the words are small enough, the ids serve as numbers. In a piece of a longer text, ids may be
 * too large. */
static lzs_status list_words(piece *p, size_t *n_distinct) {
    size_t n_ids = 0, n_kept = 0;
    for (size_t i = 0; i < p->n; i++) n_ids = (size_t)p->ids[i] < n_ids ? n_ids : (size_t)p->ids[i] + 1;
    bool are_small = n_ids <= p->n;
    *n_distinct = 0;
    memset(p->counts, 0, p->n * sizeof *p->counts);
    for (size_t i = 0; i < p->n; i++) {
        uint32_t id = (uint32_t)p->ids[i];
        if (!are_small) {
            uint32_t tag = (uint32_t)lzs_fold(id, p->table.key);
            lzs_slot *found = NULL;
            do found = lzs_table_next(&p->table, found, tag);
            while (found->index && p->ids[p->first[found->index - 1]] != p->ids[i]);
            id = found->index ? found->index - 1 : (uint32_t)*n_distinct;
            p->first[id] = found->index ? p->first[id] : (uint32_t)i;
            lzs_status status = found->index ? LZS_OK : lzs_table_add(&p->table, found, tag, id);
            if (status != LZS_OK) return status;
        }
        *n_distinct += !p->counts[id]++;
        p->grams[i] = id;
    }
    for (size_t i = 0; i < p->n; i++) {
        p->at[n_kept] = (uint32_t)i;
        p->grams[n_kept] = p->grams[i];
        n_kept += p->counts[p->grams[i]] > 1;
    }
    p->n_listed = n_kept;
    p->length = 1;
    p->longest = n_kept ? 1 : 0;
    return LZS_OK;
}

/* Makes the next longer n-grams from pairs of neighbours in the list, and numbers them. Replaces the list by the new
 * n-grams that occur more than once. *n_repeats gets the number of n-grams that equal an earlier n-gram. */
static lzs_status list_grams(piece *p, uint64_t *n_repeats) {
    const uint32_t once = UINT32_MAX;
    size_t n_pairs = 0, n_kept = 0, n_grams = 0;
    if (p->n_listed) lzs_table_clear(&p->table);
    for (size_t k = 0; k + 1 < p->n_listed; k++) {
        uint32_t prefix = p->grams[k], suffix = p->grams[k + 1], i = p->at[k];
        if (p->at[k + 1] != i + 1) continue;
        uint32_t tag = (uint32_t)lzs_fold((uint64_t)prefix << 32 | suffix, p->table.key);
        lzs_slot *found = NULL;
        do found = lzs_table_next(&p->table, found, tag);
        while (found->index && (p->prefix[found->index - 1] != prefix || p->suffix[found->index - 1] != suffix));
        size_t id = found->index ? found->index - 1 : n_grams;
        if (found->index) {
            p->counts[id]++;
        } else {
            p->prefix[id] = prefix;
            p->suffix[id] = suffix;
            p->first[id] = i;
            p->counts[id] = 1;
            n_grams++;
            lzs_status status = lzs_table_add(&p->table, found, tag, id);
            if (status != LZS_OK) return status;
        }
        p->at[n_pairs] = i;
        p->grams[n_pairs++] = (uint32_t)id;
    }
    *n_repeats = n_pairs - n_grams;
    p->n_grams = 0;
    for (size_t id = 0; id < n_grams; id++) { /* from here on prefix[id] is the new number of n-gram `id` */
        bool is_single = p->counts[id] == 1;
        p->prefix[id] = is_single ? once : (uint32_t)p->n_grams;
        p->first[p->n_grams] = p->first[id];
        p->counts[p->n_grams] = p->counts[id];
        p->n_grams += !is_single;
    }
    for (size_t k = 0; k < n_pairs; k++) {
        p->at[n_kept] = p->at[k];
        p->grams[n_kept] = p->prefix[p->grams[k]];
        n_kept += p->grams[n_kept] != once;
    }
    p->n_listed = n_kept;
    p->length++;
    if (n_kept) p->longest = p->length;
    return LZS_OK;
}

/* Returns the number of characters of the most frequent n-gram (with a space between two words) times the number of its
 * occurrences. If several n-grams are equally frequent, takes the first of them. */
static uint64_t top_characters(const piece *p, size_t n) {
    if (p->n < n) return 0;
    size_t top = 0;
    for (size_t id = 1; id < p->n_grams; id++) {
        if (p->counts[id] > p->counts[top]) top = id;
    }
    size_t first = p->n_grams ? p->first[top] : 0; /* if no n-gram occurs twice, all are equally frequent */
    uint64_t characters = n - 1;
    for (size_t i = 0; i < n; i++) characters += span_characters(p->text, p->words[first + i]);
    return characters * (p->n_grams ? p->counts[top] : 1);
}

/* Joins the words, and lists all words as possible starts of repeated n-grams. */
static void join_words(piece *p) {
    uint32_t at = 0;
    for (size_t i = 0; i < p->n; i++) {
        lzs_span word = p->words[i];
        size_t length = word.end - word.start;
        if (length <= WIDE && p->n_bytes - word.start >= WIDE) memcpy(p->joined + at, p->text + word.start, WIDE);
        else memcpy(p->joined + at, p->text + word.start, length);
        p->joined_at[i] = at;
        p->listed[i] = (uint32_t)i;
        at += (uint32_t)length;
    }
    p->joined_at[p->n] = at;
    p->n_listed = p->n;
}

/* Adds a hash to the set `seen`. If `seen` has the hash already, adds the hash to the set `twice`. */
static inline void note_hash(uint64_t *seen, uint64_t *twice, size_t hash) {
    uint64_t bit = UINT64_C(1) << hash % 64;
    twice[hash / 64] |= seen[hash / 64] & bit;
    seen[hash / 64] |= bit;
}

/* Removes from the list the words where no repeated n-gram can start. No repeated n-gram of more words can start there,
 * either. A word stays in two cases. Either its n-gram has fewer than `head` bytes, or the first `head` bytes from the
 * word on also begin at another listed word. A first pass over the list adds the hashes of these bytes to `seen`, and
 * those that occur again to `twice`. */
static void narrow_list(piece *p, size_t n, size_t head) {
    uint64_t *seen = p->bits, *twice = p->bits + p->n_bits / 64;
    memset(p->bits, 0, p->n_bits / 4);
    while (p->n_listed && p->listed[p->n_listed - 1] + n > p->n) p->n_listed--;
    for (size_t k = 0; k < p->n_listed; k++) {
        size_t i = p->listed[k];
        if (p->joined_at[p->n] - p->joined_at[i] < head) break;
        p->heads[i] = lzs_hash_bytes(p->joined + p->joined_at[i], head, p->table.key) & (uint32_t)(p->n_bits - 1);
        note_hash(seen, twice, p->heads[i]);
    }
    size_t kept = 0;
    for (size_t k = 0; k < p->n_listed; k++) {
        size_t i = p->listed[k];
        bool is_short = p->joined_at[i + n] - p->joined_at[i] < head;
        p->listed[kept] = (uint32_t)i;
        kept += is_short || (twice[p->heads[i] / 64] >> p->heads[i] % 64 & 1);
    }
    p->n_listed = kept;
}

/* Adds up the characters of the n-grams that equal an earlier n-gram. After such a duplicate, the search goes on after
 * the duplicate's last word. An n-gram is looked up only if its hash occurs twice. n is at least 5. */
static lzs_status duplicate_characters(piece *p, size_t n, uint64_t *characters) {
    lzs_table *t = &p->table;
    size_t next = 0, n_listed = p->n_listed, n_bits = 64;
    while (n_listed && p->listed[n_listed - 1] + n > p->n) n_listed--;
    if (!n_listed) return LZS_OK;
    while (n_bits / 8 < n_listed) n_bits *= 2;
    uint64_t *seen = p->bits, *twice = p->bits + n_bits / 64;
    memset(p->bits, 0, n_bits / 4);
    for (size_t k = 0; k < n_listed; k++) {
        size_t i = p->listed[k];
        p->heads[i] = lzs_hash_bytes(p->joined + p->joined_at[i], p->joined_at[i + n] - p->joined_at[i], t->key);
        note_hash(seen, twice, p->heads[i] & (n_bits - 1));
    }
    lzs_table_clear(t);
    for (size_t k = 0; k < n_listed; k++) {
        size_t i = p->listed[k], at = p->heads[i] & (n_bits - 1);
        if (i < next || !(twice[at / 64] >> at % 64 & 1)) continue;
        size_t length = p->joined_at[i + n] - p->joined_at[i];
        const uint8_t *joined = p->joined + p->joined_at[i];
        uint32_t tag = p->heads[i];
        lzs_slot *found = NULL;
        do {
            found = lzs_table_next(t, found, tag);
            if (!found->index) break;
            size_t other = found->index - 1;
            if (p->joined_at[other + n] - p->joined_at[other] != length) continue;
            if (!memcmp(p->joined + p->joined_at[other], joined, length)) break;
        } while (true);
        if (found->index) {
            *characters += count_characters(joined, length);
            next = i + n;
        } else {
            lzs_status status = lzs_table_add(t, found, tag, i);
            if (status != LZS_OK) return status;
        }
    }
    return LZS_OK;
}

/* Makes three figures from the list of 4-grams. The first two figures are the numbers of 4-grams and of distinct
 * 4-grams in the last TAIL words. The third figure is the number of 4-grams that occurred before and have a word after
 * them. */
static void figures_of_list(piece *p, lzs_figures *figures) {
    size_t n_grams = p->n >= 4 ? p->n - 3 : 0, from = p->n > TAIL ? p->n - TAIL : 0;
    size_t n_tail = n_grams - from, n_repeats = 0;
    if (n_grams < from) n_tail = 0;
    memset(p->prefix, 0, p->n_grams * sizeof *p->prefix);
    for (size_t k = 0; k < p->n_listed; k++) {
        uint32_t id = p->grams[k];
        if (p->at[k] >= from) n_repeats += p->prefix[id]++ > 0;
        figures->extensible += p->at[k] != p->first[id] && p->at[k] + 4 < p->n;
    }
    figures->tail_ngrams += n_tail;
    figures->tail_distinct += n_tail - n_repeats;
}

/* Counts the n-grams of LONG_GRAM words that occur OFTEN times or more. The list must have shorter n-grams. An n-gram
 * cannot occur more often than its beginning, so in most texts longer n-grams need not be listed. */
static lzs_status count_frequent(piece *p, uint64_t *frequent) {
    for (;;) {
        uint64_t often = 0, n_repeats;
        for (size_t id = 0; id < p->n_grams; id++) often += p->counts[id] >= OFTEN;
        if (p->length == LONG_GRAM) *frequent += often;
        if (p->length == LONG_GRAM || !often) return LZS_OK;
        lzs_status status = list_grams(p, &n_repeats);
        if (status != LZS_OK) return status;
    }
}

/* Adds the figures of the n-grams of numbers. If the piece has words, adds the figures in characters, too. */
static lzs_status ngram_figures(piece *p, lzs_figures *figures) {
    size_t n_distinct;
    lzs_status status = list_words(p, &n_distinct);
    if (status != LZS_OK) return status;
    figures->ngrams[0] += p->n;
    figures->distinct[0] += n_distinct;
    uint64_t n_repeats;
    for (size_t n = 2; n <= MATCH; n++) {
        uint64_t n_grams = p->n >= n ? p->n - n + 1 : 0;
        status = list_grams(p, &n_repeats);
        if (status != LZS_OK) return status;
        if (p->words) figures->top_characters[n - 2] += top_characters(p, n);
        figures->ngrams[n - 1] += n_grams;
        figures->distinct[n - 1] += n_grams - n_repeats;
    }
    figures_of_list(p, figures);
    status = list_grams(p, &n_repeats);
    if (status != LZS_OK) return status;
    figures->extended += n_repeats;
    return count_frequent(p, &figures->frequent);
}

/* Finds the number of words of the longest repeated stretch. *longest is SIZE_MAX if more than FEW n-grams are listed,
 * or if n-grams of LONG_GRAM words are listed. Call ngram_figures before. */
static lzs_status find_longest(piece *p, size_t *longest) {
    lzs_status status = LZS_OK;
    uint64_t n_repeats;
    while (status == LZS_OK && p->n_listed && p->n_listed <= FEW && p->length < LONG_GRAM) {
        status = list_grams(p, &n_repeats);
    }
    *longest = p->n_listed ? SIZE_MAX : p->longest;
    return status;
}

static lzs_status word_figures(piece *p, lzs_figures *figures, size_t *longest) {
    lzs_status made = ngram_figures(p, figures);
    if (made == LZS_OK) made = find_longest(p, longest);
    if (made != LZS_OK) return made;
    join_words(p);
    free(p->table.slots); /* From here on few n-grams are looked up. A new small table takes less time to clear than the
                           * large one. */
    lzs_status status = lzs_table_init(&p->table, 0);
    for (size_t n = 5; n <= 10 && status == LZS_OK; n++) {
        if (n % 2) narrow_list(p, n, n < 6 ? 16 : n < 8 ? 24 : 32);
        status = duplicate_characters(p, n, &figures->duplicate_characters[n - 5]);
    }
    return status;
}

/* Returns the end of the piece that starts at `from`, and moves *word behind the last word of the piece. If the rest of
 * the text has at most LZS_TEXT_PIECE bytes, the piece ends with the text. Else the piece ends after the last word that
 * fits. If even the first word does not fit, the piece ends after the first word. If more than LZS_TEXT_PIECE bytes of
 * white space precede the first word, the piece ends in the white space. */
static size_t piece_end(size_t from, size_t n, const lzs_span *words, size_t n_words, size_t *word) {
    size_t first = *word, limit = n - from > LZS_TEXT_PIECE ? from + LZS_TEXT_PIECE : n;
    while (*word < n_words && words[*word].end <= limit) ++*word;
    if (limit == n) return n;
    if (*word == first && first < n_words && words[first].start < limit) ++*word;
    return *word > first ? words[*word - 1].end : limit;
}

lzs_status lzs_number_figures(const int32_t *numbers, size_t n, lzs_figures *figures) {
    if ((!numbers && n) || !figures || n >= UINT32_MAX) return LZS_EINVAL;
    for (size_t i = 0; i < n; i++) {
        if (numbers[i] < 0) return LZS_EINVAL;
    }
    *figures = (lzs_figures){.words = n};
    piece p = {.ids = numbers, .n = n};
    lzs_status status = piece_init(&p);
    if (status == LZS_OK) status = ngram_figures(&p, figures);
    piece_free(&p);
    return status;
}

lzs_status lzs_text_figures(const uint8_t *text, size_t n, const lzs_span *words, const int32_t *ids, size_t n_words,
                            lzs_figures *figures) {
    if ((!text && n) || ((!words || !ids) && n_words) || !figures || n > UINT32_MAX) return LZS_EINVAL;
    for (size_t i = 0; i < n_words; i++) {
        if (words[i].start > words[i].end || words[i].end > n) return LZS_EINVAL;
        if ((i && words[i].start < words[i - 1].end) || ids[i] < 0 || (size_t)ids[i] >= n_words) return LZS_EINVAL;
    }
    size_t longest;
    return lzs_text_figures_of(text, n, words, ids, n_words, figures, &longest);
}

lzs_status lzs_text_figures_of(const uint8_t *text, size_t n, const lzs_span *words, const int32_t *ids, size_t n_words,
                               lzs_figures *figures, size_t *longest) {
    *figures = (lzs_figures){.characters = count_characters(text, n), .words = n_words};
    lzs_status status = LZS_OK;
    *longest = 0;
    for (size_t from = 0, word = 0; from < n && status == LZS_OK;) {
        size_t first = word, to = piece_end(from, n, words, n_words, &word);
        lzs_span all = {(uint32_t)from, (uint32_t)to};
        piece p = {.text = text, .n_bytes = n, .words = words + first, .ids = ids + first, .n = word - first};
        status = piece_init(&p);
        if (status == LZS_OK) status = word_figures(&p, figures, longest);
        if (to - from < n) *longest = SIZE_MAX;
        piece_free(&p);
        if (status == LZS_OK) {
            status = count_elements(text, all, 1, &figures->lines, &figures->duplicate_lines,
                                    &figures->duplicate_line_characters);
        }
        if (status == LZS_OK) {
            status = count_elements(text, lzs_text_strip(text, all), 2, &figures->paragraphs,
                                    &figures->duplicate_paragraphs, &figures->duplicate_paragraph_characters);
        }
        from = to;
    }
    return status;
}

/* number of bytes of the longest white-space character, which must be read to know that a word ends */
#define SPACE_WIDTH 3

lzs_status lzs_text_figures_by_piece(const uint8_t *text, size_t n, lzs_figures *figures) {
    size_t room = LZS_TEXT_PIECE / 2 + SPACE_WIDTH;
    lzs_span *words = malloc(room * sizeof *words);
    int32_t *ids = malloc(room * sizeof *ids);
    lzs_status status = words && ids ? LZS_OK : LZS_ENOMEM;
    *figures = (lzs_figures){0};
    for (size_t from = 0; from < n && status == LZS_OK;) {
        const uint8_t *piece = text + from;
        size_t rest = n - from, size = rest > LZS_TEXT_PIECE ? LZS_TEXT_PIECE : rest, n_words, n_distinct;
        size_t seen = rest - size < SPACE_WIDTH ? rest : size + SPACE_WIDTH;
        status = lzs_split(piece, seen, LZS_SPLIT_WORDS, words, room, &n_words);
        while (n_words && words[n_words - 1].end > size) n_words--;
        if (status == LZS_OK && size < rest) {
            if (n_words) size = words[n_words - 1].end;
            else status = LZS_ESPACE;
        }
        if (status == LZS_OK) status = lzs_intern(piece, size, words, n_words, ids, &n_distinct);
        lzs_figures found;
        if (status == LZS_OK) status = lzs_text_figures(piece, size, words, ids, n_words, &found);
        const uint64_t *counts = (const uint64_t *)&found;
        uint64_t *sums = (uint64_t *)figures;
        for (size_t i = 0; i < sizeof found / sizeof *counts && status == LZS_OK; i++) sums[i] += counts[i];
        from += size;
    }
    free(words);
    free(ids);
    return status;
}
