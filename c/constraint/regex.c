/* regex.c - parses a regular expression into its syntax tree.
 *
 * The dialect is what Python's re, the regex crate of Rust and ECMAScript have in common. docs/grammar.md lists its
 * features. The parser refuses syntax that these three dialects read differently, and syntax that a finite automaton
 * cannot match. An error has the offset of the problem and a reason. Open groups are on a stack of the parser, so the
 * depth of the C stack does not depend on the pattern.
 */
#include "regex.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../utf8.h"

typedef struct group {
    size_t base;   /* index of the group's first node on the stack */
    /* number of finished alternatives. From `base` on, the stack has the nodes of the finished alternatives and then
     * the items of the current alternative. */
    size_t n_alts;
    size_t offset; /* offset of the group's opening parenthesis */
    bool fold, dot_all; /* the flags to restore at the end of the group */
} group;

/* The kind of the item that ends at the current offset. */
typedef enum before { NOTHING, ATOM, QUANTIFIER, ANCHOR } before;

typedef struct parser {
    const uint8_t *pattern;
    size_t n, at;
    lzs_tree *tree;
    lzs_grammar_error *error;
    uint32_t *stack;
    size_t n_stack, stack_room;
    group groups[LZS_GRAMMAR_MAX_DEPTH + 1];
    size_t depth;
    uint8_t *run; /* literal bytes that were read but are in no node yet */
    size_t n_run, run_room;
    size_t last; /* offset in `run` of the run's last character */
    before before;
    bool fold;    /* whether the flag i of (?i) is set */
    bool dot_all; /* whether the flag s of (?s) is set */
    bool json;    /* whether the dialect is LZS_JSON_STRING or LZS_YAML_STRING */
    bool yaml;    /* whether the dialect is LZS_YAML_STRING */
    bool begins, ends; /* whether the current alternative has the anchor ^ and the anchor $ */
    lzs_charset set;
} parser;

lzs_status lzs_refuse(lzs_grammar_error *error, size_t offset, const char *format, ...) {
    if (!error) return LZS_EINVAL;
    va_list arguments;
    va_start(arguments, format);
    error->offset = offset;
    vsnprintf(error->reason, sizeof error->reason, format, arguments);
    va_end(arguments);
    return LZS_EINVAL;
}

#define REFUSE(p, at, ...) lzs_refuse((p)->error, (at), __VA_ARGS__)

#define NOT_IN_YAML "a control character or a line end is not supported for YAML"
#define NO_CASE "(?i) is for ASCII letters only: write (?-i:...) around other characters"

static bool more(const parser *p) {
    return p->at < p->n;
}

static bool next_is(const parser *p, const char *text) {
    size_t n = strlen(text);
    return p->n - p->at >= n && memcmp(p->pattern + p->at, text, n) == 0;
}

static lzs_status push(parser *p, uint32_t node) {
    if (node == LZS_NO_NODE) return LZS_ENOMEM;
    if (!lzs_grow(&p->stack, &p->stack_room, p->n_stack + 1, sizeof *p->stack)) return LZS_ENOMEM;
    p->stack[p->n_stack++] = node;
    return LZS_OK;
}

/* Makes a node of the first n bytes of `run`, and pushes it onto the stack. */
static lzs_status end_run(parser *p, size_t n) {
    if (n == 0) return LZS_OK;
    lzs_status status = push(p, lzs_tree_literal(p->tree, p->run, n));
    memmove(p->run, p->run + n, p->n_run - n);
    p->n_run -= n;
    return status;
}

/* ---- strings of JSON ---- */

size_t lzs_json_escape(uint32_t code, uint8_t bytes[6]) {
    static const char names[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs of a character and the letter of its escape */
    bytes[0] = '\\';
    for (size_t i = 0; i + 1 < sizeof names; i += 2) {
        if (code != (uint8_t)names[i]) continue;
        bytes[1] = (uint8_t)names[i + 1];
        return 2;
    }
    if (code >= 0x20) return 0;
    memcpy(bytes + 1, "u00", 3);
    bytes[4] = (uint8_t)('0' + code / 16);
    bytes[5] = (uint8_t)"0123456789abcdef"[code % 16];
    return 6;
}

static bool in_set(const lzs_charset *set, uint32_t code) {
    size_t i = 0;
    while (i < set->n && set->ranges[i].last < code) i++;
    return i < set->n && set->ranges[i].first <= code;
}

/* The characters beyond ASCII that YAML can contain unescaped. The list excludes control characters, and characters
 * that a YAML 1.1 reader reads as line ends. */
static const lzs_range yaml_plain[] = {{0xA0, 0x2027}, {0x202A, 0xFEFE}, {0xFF00, 0xFFFD},
                                       {0x10000, LZS_MAX_CODE_POINT}};

/* Whether some character of a range beyond ASCII can be in YAML unescaped. */
static bool in_yaml(lzs_range range) {
    for (size_t i = 0; i < sizeof yaml_plain / sizeof *yaml_plain; i++) {
        if (range.first <= yaml_plain[i].last && range.last >= yaml_plain[i].first) return true;
    }
    return false;
}

/* Makes a node for `set` inside a JSON string. Characters that cannot stand unescaped are replaced by their escapes. */
static uint32_t json_set(parser *p) {
    static const lzs_range ascii[] = {{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0x7E}};
    static const lzs_range json[] = {{0x7F, LZS_MAX_CODE_POINT}};
    lzs_range plain[7];
    size_t n_beyond = p->yaml ? 4 : 1;
    memcpy(plain, ascii, sizeof ascii);
    memcpy(plain + 3, p->yaml ? yaml_plain : json, n_beyond * sizeof *plain);
    uint32_t nodes[40];
    size_t n = 0;
    lzs_charset others = {0};
    bool ok = true;
    for (size_t i = 0; i < p->set.n; i++) {
        for (size_t k = 0; k < 3 + n_beyond && ok; k++) {
            lzs_range r = p->set.ranges[i];
            if (r.first < plain[k].first) r.first = plain[k].first;
            if (r.last > plain[k].last) r.last = plain[k].last;
            if (r.first <= r.last) ok = lzs_charset_add(&others, r.first, r.last);
        }
    }
    ok = ok && lzs_charset_normalize(&others);
    if (ok && others.n) ok = (nodes[n++] = lzs_tree_set(p->tree, &others)) != LZS_NO_NODE;
    for (uint32_t code = 0; code <= '\\' && ok; code++) {
        uint8_t bytes[6];
        size_t length = lzs_json_escape(code, bytes);
        if (!length || !in_set(&p->set, code)) continue;
        nodes[n] = lzs_tree_literal(p->tree, bytes, length);
        ok = nodes[n++] != LZS_NO_NODE;
    }
    lzs_charset_free(&others);
    return ok ? lzs_tree_alt(p->tree, nodes, n) : LZS_NO_NODE;
}

static lzs_status push_set(parser *p) {
    lzs_status status = end_run(p, p->n_run);
    bool some = !p->yaml;
    p->before = ATOM;
    if (status != LZS_OK) return status;
    for (size_t i = 0; i < p->set.n; i++) some |= p->set.ranges[i].first < 0x7F || in_yaml(p->set.ranges[i]);
    if (!some) return REFUSE(p, p->at, NOT_IN_YAML);
    return push(p, p->json ? json_set(p) : lzs_tree_set(p->tree, &p->set));
}

static bool is_letter(uint32_t code) {
    return (code | 0x20) >= 'a' && (code | 0x20) <= 'z';
}

static bool is_digit(uint32_t code) {
    return code >= '0' && code <= '9';
}

static lzs_status literal(parser *p, size_t offset, uint32_t code) {
    if (p->fold && code >= 0x80) return REFUSE(p, offset, NO_CASE);
    if (p->fold && is_letter(code)) {
        p->set.n = 0;
        bool ok = lzs_charset_add(&p->set, code, code) && lzs_charset_fold(&p->set) && lzs_charset_normalize(&p->set);
        return ok ? push_set(p) : LZS_ENOMEM;
    }
    if (!lzs_grow(&p->run, &p->run_room, p->n_run + 6, 1)) return LZS_ENOMEM;
    p->last = p->n_run;
    if (p->yaml && code >= 0x7F && !in_yaml((lzs_range){code, code})) return REFUSE(p, offset, NOT_IN_YAML);
    size_t escaped = p->json ? lzs_json_escape(code, p->run + p->n_run) : 0;
    p->n_run += escaped ? escaped : lzs_utf8_encode(code, p->run + p->n_run);
    p->before = ATOM;
    return LZS_OK;
}

/* ---- escapes ---- */

/* A parsed escape: one code point, or a set such as \d. A set was added to the parser's `set` already. */
typedef struct escape {
    bool is_set;
    uint32_t code;
} escape;

static int hex_digit(uint8_t byte) {
    if (is_digit(byte)) return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Reads the digits of \xHH, \uHHHH or \UHHHHHHHH, or the digits in braces after \x, \u or \U. */
static lzs_status hexadecimal(parser *p, size_t offset, uint8_t letter, uint32_t *code) {
    size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
    bool braces = more(p) && p->pattern[p->at] == '{';
    if (p->json && (letter == 'U' || (letter == 'x' && braces))) {
        return REFUSE(p, offset, "\\%c%s is not ECMAScript: write \\xHH, \\uHHHH or \\u{H...}", letter,
                      braces ? "{" : "");
    }
    p->at += braces;
    uint64_t value = 0;
    size_t n = 0;
    for (; more(p) && n < (braces ? 8 : digits) && hex_digit(p->pattern[p->at]) >= 0; n++) {
        value = 16 * value + (uint64_t)hex_digit(p->pattern[p->at++]);
    }
    bool closed = !braces || (more(p) && p->pattern[p->at++] == '}');
    if (!closed || (braces ? n == 0 : n < digits)) {
        return REFUSE(p, offset, "\\%c needs %zu hexadecimal digits, or digits in braces", letter, digits);
    }
    if (value > LZS_MAX_CODE_POINT || (value >= 0xD800 && value <= 0xDFFF)) {
        return REFUSE(p, offset, "U+%04llX is not a character of UTF-8", (unsigned long long)value);
    }
    *code = (uint32_t)value;
    return LZS_OK;
}

/* Adds \d, \w, \s or the complement of one of them to a set. These sets have only ASCII characters, except the \s of
 * ECMAScript. */
static bool shorthand(lzs_charset *set, uint8_t letter, bool json) {
    static const lzs_range digits[] = {{'0', '9'}}, words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
                           spaces[] = {{'\t', '\r'}, {' ', ' '}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A},
                                       {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000},
                                       {0xFEFF, 0xFEFF}};
    uint8_t lower = letter | 0x20;
    const lzs_range *ranges = lower == 'd' ? digits : lower == 's' ? spaces : words;
    size_t n = lower == 'd' ? 1 : lower == 'w' ? 4 : json ? sizeof spaces / sizeof *spaces : 2;
    lzs_charset made = {0};
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) ok = lzs_charset_add(&made, ranges[i].first, ranges[i].last);
    if (ok && letter != lower) ok = lzs_charset_negate(&made);
    for (size_t i = 0; i < made.n && ok; i++) ok = lzs_charset_add(set, made.ranges[i].first, made.ranges[i].last);
    lzs_charset_free(&made);
    return ok;
}

/* Refuses an octal escape whose 0 was read already. At most two more digits belong to the escape. */
static lzs_status octal(parser *p, size_t offset) {
    unsigned code = 0;
    for (int i = 0; i < 2 && more(p) && p->pattern[p->at] >= '0' && p->pattern[p->at] < '8'; i++) {
        code = 8 * code + (unsigned)(p->pattern[p->at++] - '0');
    }
    return REFUSE(p, offset, "octal escapes are not supported: write \\x%02X", code);
}

static lzs_status read_escape(parser *p, escape *e) {
    size_t offset = p->at++;
    if (!more(p)) return REFUSE(p, offset, "a backslash at the end escapes nothing");
    uint8_t letter = p->pattern[p->at++];
    *e = (escape){false, letter};
    if (letter < 0x80 && !is_letter(letter) && !is_digit(letter)) return LZS_OK;
    static const char names[] = "ntrfv", codes[] = "\n\t\r\f\v";
    const char *found = letter < 0x80 ? strchr(names, letter) : NULL;
    if (found) {
        e->code = (uint8_t)codes[found - names];
        return LZS_OK;
    }
    switch (letter) {
    case 'd': case 'D': case 's': case 'S': case 'w': case 'W':
        e->is_set = true;
        return shorthand(&p->set, letter, p->json) ? LZS_OK : LZS_ENOMEM;
    case 'x': case 'u': case 'U': return hexadecimal(p, offset, letter, &e->code);
    case 'b': case 'B':
        return REFUSE(p, offset, "\\%c, a word boundary, is not supported: write out what may stand on both sides",
                      letter);
    case 'p': case 'P': return REFUSE(p, offset, "\\%c, a Unicode property, is not supported: list the ranges", letter);
    case 'k': case 'g':
        return REFUSE(p, offset, "\\%c, a reference to a group, is not regular: write out what may come again", letter);
    case 'a': case 'e':
        return REFUSE(p, offset, "\\%c is not supported: write \\x%s", letter, letter == 'a' ? "07" : "1B");
    case 'c': case 'G': case 'X': case 'R': case 'N': case 'h': case 'H': case 'Q': case 'E':
        return REFUSE(p, offset, "\\%c is not supported: write out what it stands for", letter);
    case 'A': case 'Z': case 'z':
        return REFUSE(p, offset, "\\%c, an anchor, is not supported here: write ^ or $ at the ends", letter);
    case '0': return octal(p, offset);
    default: break;
    }
    if (letter >= '1' && letter <= '9') {
        return REFUSE(p, offset, "\\%c, a reference to a group, is not regular: write out what may come again", letter);
    }
    if (letter >= 0x80) return REFUSE(p, offset, "a character beyond ASCII needs no backslash");
    return REFUSE(p, offset, "\\%c is not an escape: write the letter without the backslash", letter);
}

/* ---- classes ---- */

/* Refuses &&, ||, ~~ and --, which some dialects read as operations on classes. */
static lzs_status not_doubled(parser *p) {
    if (!next_is(p, "&&") && !next_is(p, "||") && !next_is(p, "~~") && !next_is(p, "--")) return LZS_OK;
    return REFUSE(p, p->at, "%.2s in a class has several meanings: write a backslash before each character",
                  (const char *)p->pattern + p->at);
}

/* Reads one code point of a class, or one set of a class such as \d. */
static lzs_status class_item(parser *p, escape *e) {
    if (next_is(p, "\\b")) return REFUSE(p, p->at, "\\b in a class, a backspace, is not supported: write \\x08");
    if (p->pattern[p->at] == '\\') return read_escape(p, e);
    if (p->pattern[p->at] == '[') return REFUSE(p, p->at, "[ in a class has several meanings: write \\[");
    lzs_status status = not_doubled(p);
    if (status != LZS_OK) return status;
    *e = (escape){false, 0};
    p->at += lzs_utf8_decode(p->pattern + p->at, p->n - p->at, &e->code);
    return LZS_OK;
}

static lzs_status read_class(parser *p) {
    size_t offset = p->at++;
    bool negated = more(p) && p->pattern[p->at] == '^';
    p->at += negated;
    p->set.n = 0;
    if (more(p) && p->pattern[p->at] == ']') {
        return REFUSE(p, p->at, "] at the beginning of a class has several meanings: write \\]");
    }
    for (bool first = true;; first = false) {
        if (!more(p)) return REFUSE(p, offset, "the class is not closed: ] is missing");
        if (p->pattern[p->at] == ']') break;
        size_t at = p->at;
        if (p->pattern[at] == '-' && !first && at + 1 < p->n && p->pattern[at + 1] != ']') {
            return REFUSE(p, at, "- between two ranges has several meanings: write \\-, or put it last");
        }
        escape low, high;
        lzs_status status = class_item(p, &low);
        if (status != LZS_OK) return status;
        high = low;
        bool range = p->n - p->at >= 2 && p->pattern[p->at] == '-' && p->pattern[p->at + 1] != ']';
        if (range) {
            status = not_doubled(p);
            if (status != LZS_OK) return status;
            p->at++;
            status = class_item(p, &high);
            if (status != LZS_OK) return status;
            if (low.is_set || high.is_set) return REFUSE(p, at, "a range needs a character on both sides");
            if (high.code < low.code) return REFUSE(p, at, "the range ends before it begins");
        }
        if (low.is_set) continue; /* read_escape added the set already */
        if (p->fold && high.code >= 0x80) return REFUSE(p, at, NO_CASE);
        if (!lzs_charset_add(&p->set, low.code, high.code)) return LZS_ENOMEM;
    }
    p->at++;
    bool ok = (!p->fold || lzs_charset_fold(&p->set)) && lzs_charset_normalize(&p->set);
    if (ok && negated) ok = lzs_charset_negate(&p->set);
    if (!ok) return LZS_ENOMEM;
    if (!p->set.n) return REFUSE(p, offset, "the class matches no character");
    return push_set(p);
}

static lzs_status any_character(parser *p) {
    p->at++;
    p->set.n = 0;
    bool ok = p->dot_all || lzs_charset_add(&p->set, '\n', '\n');
    if (ok && p->json && !p->dot_all) {
        ok = lzs_charset_add(&p->set, '\r', '\r') && lzs_charset_add(&p->set, 0x2028, 0x2029);
    }
    ok = ok && lzs_charset_normalize(&p->set);
    return ok && lzs_charset_negate(&p->set) ? push_set(p) : LZS_ENOMEM;
}

/* ---- repetition ---- */

static lzs_status read_count(parser *p, size_t offset, uint32_t *count) {
    uint64_t value = 0;
    while (more(p) && is_digit(p->pattern[p->at])) {
        value = 10 * value + (uint64_t)(p->pattern[p->at++] - '0');
        if (value > LZS_GRAMMAR_MAX_COUNT) {
            return REFUSE(p, offset, "a count of more than %d is not supported", LZS_GRAMMAR_MAX_COUNT);
        }
    }
    *count = (uint32_t)value;
    return LZS_OK;
}

static lzs_status read_braces(parser *p, uint32_t *min, uint32_t *max) {
    size_t offset = p->at++;
    if (next_is(p, ",")) {
        return REFUSE(p, offset, "the smaller number of the count is missing: write {0,5}, or \\{ for the character");
    }
    if (!more(p) || !is_digit(p->pattern[p->at])) {
        return REFUSE(p, offset, "{ begins a count such as {2,5}: write \\{ for the character");
    }
    lzs_status status = read_count(p, offset, min);
    if (status != LZS_OK) return status;
    *max = *min;
    if (more(p) && p->pattern[p->at] == ',') {
        p->at++;
        *max = LZS_UNBOUNDED;
        if (more(p) && p->pattern[p->at] != '}') status = read_count(p, offset, max);
        if (status != LZS_OK) return status;
    }
    if (!more(p) || p->pattern[p->at++] != '}') {
        return REFUSE(p, offset, "a count is {2}, {2,} or {2,5}: write \\{ for the character");
    }
    return *max < *min ? REFUSE(p, offset, "the smaller number of a count comes first, as in {2,5}") : LZS_OK;
}

static lzs_status quantifier(parser *p) {
    size_t offset = p->at;
    uint8_t sign = p->pattern[p->at];
    uint32_t min = sign == '+', max = sign == '?' ? 1 : LZS_UNBOUNDED;
    if (p->before == QUANTIFIER) return REFUSE(p, offset, "a repetition is repeated: put a group around the first");
    if (p->before != ATOM && sign != '{') {
        return REFUSE(p, offset, "there is nothing before %c that it could repeat", sign);
    }
    lzs_status status = LZS_OK;
    if (sign == '{') {
        status = read_braces(p, &min, &max);
        if (status == LZS_OK && p->before != ATOM) {
            status = REFUSE(p, offset, "there is nothing before { that it could repeat");
        }
    } else {
        p->at++;
    }
    if (status != LZS_OK) return status;
    if (more(p) && p->pattern[p->at] == '+') return REFUSE(p, p->at, "possessive repetition is not supported");
    /* skips the ? of a lazy quantifier; the ? does not change which whole texts match */
    if (more(p) && p->pattern[p->at] == '?') p->at++;
    if (p->n_run) { /* only the last character of the run is repeated */
        status = end_run(p, p->last);
        if (status == LZS_OK) status = end_run(p, p->n_run);
        if (status != LZS_OK) return status;
    }
    uint32_t child = p->stack[--p->n_stack];
    p->before = QUANTIFIER;
    return push(p, lzs_tree_repeat(p->tree, child, min, max));
}

/* ---- groups and alternatives ---- */

/* Lets a pattern match anywhere in a string: adds "any characters" on each side that has no anchor. */
static lzs_status add_sides(parser *p, uint32_t *node) {
    p->set.n = 0;
    bool ok = lzs_charset_negate(&p->set); /* all characters */
    uint32_t any = ok ? json_set(p) : LZS_NO_NODE, parts[3];
    if (any != LZS_NO_NODE) any = lzs_tree_repeat(p->tree, any, 0, LZS_UNBOUNDED);
    if (any == LZS_NO_NODE) return LZS_ENOMEM;
    size_t n = 0;
    if (!p->begins) parts[n++] = any;
    parts[n++] = *node;
    if (!p->ends) parts[n++] = any;
    *node = lzs_tree_concat(p->tree, parts, n);
    return LZS_OK;
}

static lzs_status end_alternative(parser *p) {
    group *g = &p->groups[p->depth];
    lzs_status status = end_run(p, p->n_run);
    if (status != LZS_OK) return status;
    size_t first = g->base + g->n_alts;
    uint32_t node = lzs_tree_concat(p->tree, p->stack + first, p->n_stack - first);
    if (p->json && !p->depth && node != LZS_NO_NODE && !(p->begins && p->ends)) {
        status = add_sides(p, &node);
        if (status != LZS_OK) return status;
    }
    if (!p->depth) p->begins = p->ends = false;
    p->n_stack = first;
    g->n_alts++;
    p->before = NOTHING;
    return push(p, node);
}

/* Replaces all alternatives of the innermost group by one node on the stack. */
static lzs_status end_group(parser *p) {
    lzs_status status = end_alternative(p);
    if (status != LZS_OK) return status;
    group *g = &p->groups[p->depth];
    uint32_t node = lzs_tree_alt(p->tree, p->stack + g->base, g->n_alts);
    p->n_stack = g->base;
    p->fold = g->fold;
    p->dot_all = g->dot_all;
    p->before = ATOM;
    return push(p, node);
}

/* Reads the flags of a group such as (?i) or (?s-i:...). Stops at the ')' or ':' after the flags. */
static lzs_status read_flags(parser *p, size_t offset) {
    bool on = true;
    size_t first = p->at;
    for (; more(p) && p->pattern[p->at] != ')' && p->pattern[p->at] != ':'; p->at++) {
        uint8_t flag = p->pattern[p->at];
        if (flag == '-' && on) {
            on = false;
        } else if (flag == 'i') {
            p->fold = on;
        } else if (flag == 's') {
            p->dot_all = on;
        } else {
            return REFUSE(p, offset, "of the flags only i and s are supported");
        }
    }
    if (!more(p)) return REFUSE(p, offset, "the group is not closed: ) is missing");
    if (p->at == first || p->pattern[p->at - 1] == '-') return REFUSE(p, offset, "no flag follows the ? of the group");
    return LZS_OK;
}

/* Reads and ignores the name of (?P<name>...) or (?<name>...). p->at is the offset after the <. */
static lzs_status read_name(parser *p, size_t offset) {
    size_t first = p->at;
    while (more(p) && p->pattern[p->at] < 0x80 &&
           (is_letter(p->pattern[p->at]) || p->pattern[p->at] == '_' ||
            (p->at > first && is_digit(p->pattern[p->at])))) {
        p->at++;
    }
    if (p->at == first || !more(p) || p->pattern[p->at] != '>') {
        return REFUSE(p, offset, "the group has no valid name: write letters, digits and _");
    }
    p->at++;
    return LZS_OK;
}

static lzs_status begin_group(parser *p) {
    size_t offset = p->at++;
    group g = {.offset = offset, .fold = p->fold, .dot_all = p->dot_all};
    lzs_status status = LZS_OK;
    if (more(p) && p->pattern[p->at] == '?') {
        p->at++;
        if (next_is(p, "=") || next_is(p, "!") || next_is(p, "<=") || next_is(p, "<!")) {
            return REFUSE(p, offset, "look-around is not supported: write out what may stand there");
        }
        if (next_is(p, ">")) return REFUSE(p, offset, "atomic groups are not supported");
        if (next_is(p, "(")) return REFUSE(p, offset, "conditions are not supported");
        if (next_is(p, "#")) return REFUSE(p, offset, "comments are not supported: leave them out");
        if (next_is(p, "P=") || next_is(p, "P>") || next_is(p, "R") || next_is(p, "&")) {
            return REFUSE(p, offset, "a reference to a group is not regular: write out what may come again");
        }
        if (next_is(p, "P<") || next_is(p, "<")) {
            p->at += next_is(p, "P<") ? 2 : 1;
            status = read_name(p, offset);
        } else if (next_is(p, ":")) {
            p->at++;
        } else {
            status = read_flags(p, offset);
            if (status == LZS_OK && p->pattern[p->at++] == ')') {
                return offset == 0 ? LZS_OK : REFUSE(p, offset,
                                                     "flags for the whole pattern must begin it: use (?i:...)");
            }
        }
    }
    if (status != LZS_OK) return status;
    if (p->depth == LZS_GRAMMAR_MAX_DEPTH) {
        return REFUSE(p, offset, "groups are nested more than %d deep", LZS_GRAMMAR_MAX_DEPTH);
    }
    status = end_run(p, p->n_run);
    g.base = p->n_stack;
    p->groups[++p->depth] = g;
    p->before = NOTHING;
    return status;
}

/* Reads an anchor. An anchor at an edge of the pattern is allowed and changes nothing, because the whole text must
 * match. */
static lzs_status anchor(parser *p, size_t length, bool begins) {
    size_t offset = p->at;
    const group *g = &p->groups[p->depth];
    bool first = p->n_stack == g->base + g->n_alts && !p->n_run && p->before == NOTHING;
    p->at += length;
    bool last = !more(p) || p->pattern[p->at] == '|';
    if (p->depth || !(begins ? first : last)) {
        return REFUSE(p, offset, "an anchor can only begin or end the pattern%s",
                      p->json ? "" : ": the whole text is matched in any case");
    }
    *(begins ? &p->begins : &p->ends) = true;
    p->before = ANCHOR;
    return LZS_OK;
}

/* ---- the pattern ---- */

static lzs_status item(parser *p) {
    uint8_t byte = p->pattern[p->at];
    switch (byte) {
    case '(': return begin_group(p);
    case '[': return read_class(p);
    case '.': return any_character(p);
    case '*': case '+': case '?': case '{': return quantifier(p);
    case '^': return anchor(p, 1, true);
    case '$': return anchor(p, 1, false);
    case '|':
        p->at++;
        return end_alternative(p);
    case ')': {
        if (!p->depth) return REFUSE(p, p->at, "there is no group that ) could close");
        p->at++;
        lzs_status status = end_group(p);
        p->depth--;
        return status;
    }
    case '\\': {
        if (!p->json && next_is(p, "\\A")) return anchor(p, 2, true); /* ECMAScript has no \A */
        if (!p->json && (next_is(p, "\\Z") || next_is(p, "\\z"))) return anchor(p, 2, false);
        size_t offset = p->at;
        escape e;
        p->set.n = 0;
        lzs_status status = read_escape(p, &e);
        if (status != LZS_OK || !e.is_set) return status == LZS_OK ? literal(p, offset, e.code) : status;
        return lzs_charset_normalize(&p->set) ? push_set(p) : LZS_ENOMEM;
    }
    default: {
        size_t offset = p->at;
        uint32_t code = 0;
        p->at += lzs_utf8_decode(p->pattern + p->at, p->n - p->at, &code);
        return literal(p, offset, code);
    }
    }
}

static lzs_status parse(parser *p) {
    if (p->n > LZS_GRAMMAR_MAX_PATTERN) {
        return REFUSE(p, LZS_WHOLE, "the pattern has %zu bytes, and the most is %d", p->n, LZS_GRAMMAR_MAX_PATTERN);
    }
    for (size_t at = 0, length; at < p->n; at += length) {
        uint32_t code;
        length = lzs_utf8_decode(p->pattern + at, p->n - at, &code);
        if (!length) return REFUSE(p, at, "the pattern is not valid UTF-8");
    }
    lzs_status status = lzs_grow(&p->stack, &p->stack_room, 1, sizeof *p->stack) ? LZS_OK : LZS_ENOMEM;
    while (more(p) && status == LZS_OK) status = item(p);
    if (status == LZS_OK && p->depth) {
        status = REFUSE(p, p->groups[p->depth].offset, "the group is not closed: ) is missing");
    }
    if (status == LZS_OK) status = end_group(p);
    return status;
}

lzs_status lzs_regex_parse(const uint8_t *pattern, size_t n, lzs_dialect dialect, lzs_tree *tree, uint32_t *root,
                           lzs_grammar_error *error) {
    parser *p = calloc(1, sizeof *p);
    if (!p) return LZS_ENOMEM;
    p->pattern = pattern;
    p->n = n;
    p->tree = tree;
    p->error = error;
    p->json = dialect != LZS_WHOLE_TEXT;
    p->yaml = dialect == LZS_YAML_STRING;
    lzs_status status = parse(p);
    if (status == LZS_OK) *root = p->stack[0];
    free(p->stack);
    free(p->run);
    lzs_charset_free(&p->set);
    free(p);
    return status;
}
