/* words.c - where the pre-tokenizer of a vocabulary cuts a text into words.
 *
 * The regular expressions are those of llama-vocab.cpp in llama.cpp. Each expression has the name that GGUF files use.
 */
#include "words.h"

#include <stdlib.h>
#include <string.h>

#include "../letters.h"
#include "tree.h"

/* ---- classes of characters ---- */

enum {
    OTHER,
    QUOTE, /* the apostrophe, which begins 's, 're and other contractions */
    SPACE,
    WHITE, /* white space other than SPACE and LINE */
    LINE,  /* a line feed or carriage return */
    DIGIT, /* a number (\p{N}) */
    LETTER,
    LETTER_E,  /* e, which ends the contractions 're and 've */
    LETTER_L,  /* l, as in the contraction 'll */
    LETTER_RV, /* r or v, which begin the contractions 're and 've */
    LETTER_S   /* s, t, m or d, as in the contractions 's, 't, 'm and 'd */
};

static int class_of(uint32_t code, bool any_case) {
    uint32_t lower = any_case && code >= 'A' && code <= 'Z' ? code + 32 : code;
    switch (lower) {
    case '\'': return QUOTE;
    case ' ': return SPACE;
    case '\n':
    case '\r': return LINE;
    case 'e': return LETTER_E;
    case 'l': return LETTER_L;
    case 'r':
    case 'v': return LETTER_RV;
    case 's':
    case 't':
    case 'm':
    case 'd': return LETTER_S;
    default: break;
    }
    if (lzs_is_white(code)) return WHITE;
    if (lzs_in_ranges(code, lzs_number_ranges, LZS_N_NUMBER_RANGES)) return DIGIT;
    return lzs_in_ranges(code, lzs_letter_ranges, LZS_N_LETTER_RANGES) ? LETTER : OTHER;
}

static bool is_letter(int class) {
    return class >= LETTER;
}

static bool is_white(int class) {
    return class == SPACE || class == WHITE || class == LINE;
}

static bool is_mark(int class) {
    return class == OTHER || class == QUOTE;
}

/* ---- the automata ---- */

enum {
    BEGIN,      /* before the first word, or after a complete word */
    LETTERS,
    DIGITS1,
    DIGITS2,
    DIGITS3,
    APOSTROPHE, /* after an apostrophe that begins a word */
    THEN_E,     /* after 'r or 'v, where an e must follow and ends the word */
    THEN_L,
    NOT_E,      /* after an r or v that begins a word behind an apostrophe; no e may follow */
    NOT_L,
    MARK,       /* after a mark that begins a word, where letters may follow */
    MARKS,
    MARKS_LINE, /* in line ends after marks */
    LINE_COMES, /* in white space in which a line end must still follow */
    LAST_LINE,  /* after the last line end in white space */
    /* in white space in which no line end may follow; more white space or the end of the text must follow */
    GAP,
    LAST_SPACE, /* after a space that must be followed by a character other than white space */
    LAST_WHITE  /* as LAST_SPACE, but after a white space character other than a space */
};

#define BIT(state) (UINT32_C(1) << (state))

/* Returns the set of states after the first character of a word. The character has class `class`. */
static uint32_t beginning(lzs_words_kind kind, int class) {
    bool lines = kind == LZS_WORDS_LLAMA3 || kind == LZS_WORDS_QWEN2;
    if (is_letter(class)) return BIT(LETTERS);
    if (class == DIGIT) return kind == LZS_WORDS_GPT2 || kind == LZS_WORDS_LLAMA3 ? BIT(DIGITS1) : BIT(DIGITS3);
    if (class == QUOTE) return BIT(APOSTROPHE);
    if (class == OTHER) return lines ? BIT(MARK) : BIT(MARKS);
    if (lines && class == LINE) return BIT(LINE_COMES) | BIT(LAST_LINE);
    return BIT(GAP) | (class == SPACE ? BIT(LAST_SPACE) : BIT(LAST_WHITE)) | (lines ? BIT(LINE_COMES) : 0);
}

/* Finds how a character of a class may follow a state, with the regular expression of GPT-2. *joined is the set of
 * states if the character continues the word. Returns whether the character may begin a new word instead. */
static bool in_words_of_gpt2(lzs_words_kind kind, int state, int class, uint32_t *joined) {
    switch (state) {
    case LETTERS:
        if (is_letter(class)) *joined = BIT(LETTERS);
        return !*joined;
    case DIGITS1:
        if (class == DIGIT) *joined = BIT(DIGITS1);
        return !*joined;
    case APOSTROPHE:
        if (class == LETTER_S) *joined = BIT(BEGIN);
        if (class == LETTER_RV) *joined = BIT(THEN_E);
        if (class == LETTER_L) *joined = BIT(THEN_L);
        if (is_mark(class)) *joined = BIT(MARKS);
        return !*joined;
    case THEN_E:
        if (class == LETTER_E) *joined = BIT(BEGIN);
        return false;
    case THEN_L:
        if (class == LETTER_L) *joined = BIT(BEGIN);
        return false;
    case NOT_E:
        if (is_letter(class) && class != LETTER_E) *joined = BIT(LETTERS);
        return !is_letter(class);
    case NOT_L:
        if (is_letter(class) && class != LETTER_L) *joined = BIT(LETTERS);
        return !is_letter(class);
    case MARKS:
        if (is_mark(class)) *joined = BIT(MARKS);
        return !*joined;
    case GAP:
        if (is_white(class)) *joined = BIT(GAP);
        return false;
    case LAST_SPACE:
        if (is_white(class)) return false;
        *joined = is_letter(class) ? BIT(LETTERS) : class == DIGIT ? BIT(DIGITS1) : BIT(MARKS);
        return false;
    case LAST_WHITE: return !is_white(class);
    default: return state == BEGIN || (kind == LZS_WORDS_GPT2_DIGITS && state == DIGITS3);
    }
}

static bool in_words_of_llama3(int state, int class, uint32_t *joined) {
    switch (state) {
    case LETTERS:
        if (is_letter(class)) *joined = BIT(LETTERS);
        return !*joined;
    case DIGITS1:
    case DIGITS2:
        if (class == DIGIT) *joined = BIT(state + 1);
        return !*joined;
    case APOSTROPHE:
        if (is_letter(class)) *joined = BIT(LETTERS);
        if (class == LETTER_S) *joined = BIT(BEGIN);
        if (class == LETTER_RV) *joined = BIT(THEN_E);
        if (class == LETTER_L) *joined = BIT(THEN_L);
        if (is_mark(class)) *joined = BIT(MARKS);
        if (class == LINE) *joined = BIT(MARKS_LINE);
        return !*joined;
    case THEN_E:
    case THEN_L:
        if (is_letter(class)) *joined = BIT(LETTERS);
        if (class == (state == THEN_E ? LETTER_E : LETTER_L)) *joined = BIT(BEGIN);
        return !*joined;
    case MARK:
        if (is_letter(class)) *joined = BIT(LETTERS);
        if (is_mark(class)) *joined = BIT(MARKS);
        if (class == LINE) *joined = BIT(MARKS_LINE);
        return !*joined;
    case MARKS:
        if (is_mark(class)) *joined = BIT(MARKS);
        if (class == LINE) *joined = BIT(MARKS_LINE);
        return !*joined;
    case MARKS_LINE:
        if (class == LINE) *joined = BIT(MARKS_LINE);
        return !*joined;
    case LINE_COMES:
        if (is_white(class)) *joined = BIT(LINE_COMES);
        if (class == LINE) *joined |= BIT(LAST_LINE);
        return false;
    case GAP:
        if (class == SPACE || class == WHITE) *joined = BIT(GAP);
        return false;
    case LAST_SPACE:
        if (is_letter(class)) *joined = BIT(LETTERS);
        if (is_mark(class)) *joined = BIT(MARKS);
        return class == DIGIT;
    case LAST_WHITE:
        if (is_letter(class)) *joined = BIT(LETTERS);
        return class == DIGIT || is_mark(class);
    case LAST_LINE: return class != LINE;
    default: return state == BEGIN || state == DIGITS3;
    }
}

/* Returns the set of states after the last character of white space, if this character begins a word. It then belongs
 * to the next word, or is a word by itself. */
static uint32_t last_white(lzs_words_kind kind, int class) {
    if (class == SPACE) return BIT(LAST_SPACE);
    bool lines = kind == LZS_WORDS_LLAMA3 || kind == LZS_WORDS_QWEN2;
    return class == WHITE || (class == LINE && !lines) ? BIT(LAST_WHITE) : 0;
}

static void make_automaton(lzs_words *w) {
    bool gpt2 = w->kind == LZS_WORDS_GPT2 || w->kind == LZS_WORDS_GPT2_DIGITS;
    w->ends = ~(BIT(THEN_E) | BIT(THEN_L) | BIT(LINE_COMES) | BIT(LAST_SPACE) | BIT(LAST_WHITE));
    if (!gpt2) w->ends |= BIT(THEN_E) | BIT(THEN_L);
    for (int state = 0; state <= LAST_WHITE; state++) {
        for (int class = 0; class < LZS_WORD_CLASSES; class++) {
            uint32_t joined = 0, apart = 0;
            bool begins = gpt2 ? in_words_of_gpt2(w->kind, state, class, &joined) : in_words_of_llama3(state, class,
                                                                                                       &joined);
            if (begins) apart = beginning(w->kind, class);
            if (state == GAP) apart = last_white(w->kind, class);
            if (state == LAST_LINE) apart &= ~BIT(LINE_COMES);
            if (gpt2 && state == APOSTROPHE && class == LETTER_RV) apart = BIT(NOT_E);
            if (gpt2 && state == APOSTROPHE && class == LETTER_L) apart = BIT(NOT_L);
            if (w->kind == LZS_WORDS_GPT2_DIGITS && class == DIGIT) { /* each digit is a word by itself */
                joined = 0;
                apart = w->ends & BIT(state) ? BIT(DIGITS3) : 0;
            }
            w->joined[state][class] = joined;
            w->apart[state][class] = apart;
        }
    }
}

/* ---- characters of several bytes ---- */

static int16_t node_of(lzs_words *w, const int16_t row[64]) {
    for (size_t i = 0; i < w->n_nodes; i++) {
        if (memcmp(w->nodes[i], row, sizeof w->nodes[i]) == 0) return (int16_t)(LZS_WORD_CLASSES + i);
    }
    if (!lzs_grow(&w->nodes, &w->nodes_room, w->n_nodes + 1, sizeof *w->nodes)) return -1;
    memcpy(w->nodes[w->n_nodes], row, sizeof *w->nodes);
    return (int16_t)(LZS_WORD_CLASSES + w->n_nodes++);
}

/* Makes the node after the first bytes of a character. `code` is the lowest code point with these bytes, `rest` bytes
 * follow, and code points below `lowest` are not valid. */
static bool make_node(lzs_words *w, uint32_t code, int rest, uint32_t lowest, int16_t *node) {
    int16_t row[64];
    bool any = false;
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t first = code + (i << (6 * (rest - 1))), last = first + (UINT32_C(1) << (6 * (rest - 1))) - 1;
        row[i] = -1;
        if (last < lowest || first > 0x10FFFF || (first >= 0xD800 && last <= 0xDFFF)) continue;
        if (rest == 1) {
            /* if a text has no words, classes do not matter */
            row[i] = w->kind == LZS_WORDS_NONE ? OTHER : (int16_t)class_of(first, false);
        } else if (!make_node(w, first, rest - 1, lowest, &row[i])) {
            return false;
        }
        any |= row[i] >= 0;
    }
    *node = any ? node_of(w, row) : -1;
    return !any || *node >= 0;
}

static bool make_characters(lzs_words *w) {
    bool any_case = w->kind == LZS_WORDS_LLAMA3 || w->kind == LZS_WORDS_QWEN2;
    for (uint32_t byte = 0; byte < 256; byte++) {
        w->first[byte] = -1;
        if (byte < 0x80) w->first[byte] = (int16_t)class_of(byte, any_case);
        bool ok = true;
        if (byte >= 0xC2 && byte < 0xE0) ok = make_node(w, (byte & 0x1F) << 6, 1, 0x80, &w->first[byte]);
        if (byte >= 0xE0 && byte < 0xF0) ok = make_node(w, (byte & 0x0F) << 12, 2, 0x800, &w->first[byte]);
        if (byte >= 0xF0 && byte < 0xF5) ok = make_node(w, (byte & 0x07) << 18, 3, 0x10000, &w->first[byte]);
        if (!ok) return false;
    }
    return true;
}

lzs_status lzs_words_init(lzs_words *w, lzs_words_kind kind) {
    *w = (lzs_words){.kind = kind};
    if (kind != LZS_WORDS_NONE) {
        make_automaton(w);
        return make_characters(w) ? LZS_OK : LZS_ENOMEM;
    }
    w->ends = BIT(BEGIN);
    for (int class = 0; class < LZS_WORD_CLASSES; class++) w->joined[BEGIN][class] = BIT(BEGIN);
    return make_characters(w) ? LZS_OK : LZS_ENOMEM;
}

void lzs_words_free(lzs_words *w) {
    free(w->nodes);
}

/* ---- contexts ---- */

static lzs_status intern(lzs_contexts *c, uint32_t set, int16_t node, uint8_t joint, int32_t *number) {
    *number = LZS_NO_CONTEXT;
    if (!set) return LZS_OK;
    uint32_t tag = (uint32_t)lzs_fold((uint64_t)set << 24 ^ (uint64_t)(uint16_t)node << 2 ^ joint, c->table.key);
    lzs_slot *slot = NULL;
    while ((slot = lzs_table_next(&c->table, slot, tag))->index) {
        const lzs_context *x = &c->all[slot->index - 1];
        *number = (int32_t)slot->index - 1;
        if (x->set == set && x->node == node && x->joint == joint) return LZS_OK;
    }
    if (!lzs_grow(&c->all, &c->room, (size_t)c->n + 1, sizeof *c->all)) return LZS_ENOMEM;
    c->all[c->n] = (lzs_context){set, node, joint, NULL};
    *number = c->n;
    lzs_status status = lzs_table_add(&c->table, slot, tag, (size_t)c->n);
    c->n += status == LZS_OK;
    return status;
}

lzs_status lzs_contexts_init(lzs_contexts *c, const lzs_words *words) {
    *c = (lzs_contexts){.words = words};
    if (lzs_table_init(&c->table, 0) != LZS_OK || !lzs_grow(&c->all, &c->room, 3, sizeof *c->all)) return LZS_ENOMEM;
    c->all[c->n++] = (lzs_context){0}; /* LZS_NO_CONTEXT */
    int32_t number;
    uint32_t all = words->kind == LZS_WORDS_NONE ? BIT(BEGIN) : BIT(LAST_WHITE + 1) - 1;
    lzs_status status = intern(c, BIT(BEGIN), 0, 0, &number);
    /* LZS_EITHER makes this context different from the first context, even if the sets are equal */
    if (status == LZS_OK) status = intern(c, all, 0, LZS_EITHER, &number);
    return status;
}

lzs_status lzs_contexts_of(lzs_contexts *c, uint32_t set, int32_t *context) {
    return intern(c, set, 0, 0, context);
}

void lzs_contexts_free(lzs_contexts *c) {
    for (int32_t i = 0; i < c->n; i++) free(c->all[i].next);
    free(c->all);
    free(c->table.slots);
}

size_t lzs_contexts_memory(const lzs_contexts *c) {
    size_t bytes = c->room * sizeof *c->all + lzs_table_memory(&c->table);
    for (int32_t i = 0; i < c->n; i++) bytes += c->all[i].next ? 3 * 256 * sizeof(int32_t) : 0;
    return bytes;
}

static uint32_t states_behind(const lzs_words *w, uint32_t set, int class, int joint) {
    uint32_t behind = 0;
    for (int state = 0; set; state++, set >>= 1) {
        if (!(set & 1)) continue;
        if (joint != LZS_INSIDE) behind |= w->apart[state][class];
        if (joint != LZS_APART) behind |= w->joined[state][class];
    }
    return behind;
}

static lzs_status behind(lzs_contexts *c, const lzs_context *from, uint8_t byte, lzs_joint joint, int32_t *next) {
    const lzs_words *w = c->words;
    int16_t found;
    *next = LZS_NO_CONTEXT;
    if (from->node) { /* no word begins inside a character */
        bool goes_on = joint != LZS_APART && (byte & 0xC0) == 0x80;
        found = goes_on ? w->nodes[from->node - LZS_WORD_CLASSES][byte & 0x3F] : (int16_t)-1;
        joint = from->joint;
    } else {
        found = w->first[byte];
    }
    if (found < 0) return LZS_OK;
    if (found >= LZS_WORD_CLASSES) return intern(c, from->set, found, (uint8_t)joint, next);
    return intern(c, states_behind(w, from->set, found, joint), 0, 0, next);
}

lzs_status lzs_contexts_make(lzs_contexts *c, int32_t context, uint8_t byte, lzs_joint joint, int32_t *next) {
    lzs_context from = c->all[context]; /* a copy, because `all` may move */
    if (!from.next) {
        from.next = malloc(3 * 256 * sizeof *from.next);
        if (!from.next) return LZS_ENOMEM;
        for (size_t i = 0; i < 3 * 256; i++) from.next[i] = -1;
        c->all[context].next = from.next;
    }
    lzs_status status = behind(c, &from, byte, joint, next);
    if (status == LZS_OK) from.next[256 * (size_t)joint + byte] = *next;
    return status;
}
