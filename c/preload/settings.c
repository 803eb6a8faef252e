/* settings.c - reads {"version": 1, "preset": "default", "penalty": 0.3, "run_allowance": 32, "history": "generated",
 * "markers": true, "strict": false}. Each key may be left out. */
#define _GNU_SOURCE /* strtod_l */
#include "settings.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PENALTY 100.0
#define VERSION 1.0

typedef enum { TEXT, NUMBER, BOOLEAN } value_type;

typedef struct json_value {
    value_type type;
    char text[32]; /* a longer text, or one with escapes, is none that a setting knows */
    double number; /* of a boolean, 0 or 1 */
} json_value;

static const char *const presets[] = {"default", "guard", "paper"};
enum { N_PRESETS = sizeof presets / sizeof *presets };

lzs_preload_settings lzs_preload_defaults(void) {
    return (lzs_preload_settings){.preset = presets[0],
                                  .penalty = -1.0f,
                                  .run_allowance = -1,
                                  .history = LZS_HISTORY_GENERATED,
                                  .allows_markers = true};
}

static const char *after_space(const char *at) {
    return at + strspn(at, " \t\r\n");
}

/* Returns what follows a string, or NULL. */
static const char *read_text(const char *at, char *text, size_t size) {
    if (*at++ != '"') return NULL;
    size_t n = strcspn(at, "\"\\");
    if (at[n] != '"' || n >= size) return NULL;
    for (size_t i = 0; i < n; i++) { /* messages show the text, and a line break would forge a line */
        if ((unsigned char)at[i] < ' ' || at[i] == 127) return NULL;
    }
    memcpy(text, at, n);
    text[n] = 0;
    return at + n + 1;
}

static const char *read_value(const char *at, json_value *value) {
    if (*at == '"') {
        value->type = TEXT;
        return read_text(at, value->text, sizeof value->text);
    }
    for (int is_true = 0; is_true < 2; is_true++) {
        const char *word = is_true ? "true" : "false";
        if (strncmp(at, word, strlen(word)) != 0) continue;
        *value = (json_value){.type = BOOLEAN, .number = is_true};
        return at + strlen(word);
    }
    size_t n = strspn(at, "-+.0123456789eE");
    if (n == 0 || n >= sizeof value->text) return NULL;
    memcpy(value->text, at, n); /* strtod also reads nan and hexadecimal numbers, which JSON does not have */
    value->text[n] = 0;
    char *end;
    value->type = NUMBER;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* the program may have chosen a decimal comma */
    if (!plain) return NULL;
    value->number = strtod_l(value->text, &end, plain);
    freelocale(plain);
    return *end || !isfinite(value->number) ? NULL : at + n;
}

static bool set_number(const json_value *value, double least, double most, bool is_whole, double *number) {
    *number = value->number;
    return value->type == NUMBER && value->number >= least && value->number <= most &&
           (!is_whole || value->number == floor(value->number));
}

static bool set_boolean(const json_value *value, bool *set) {
    *set = value->number != 0;
    return value->type == BOOLEAN;
}

static bool set_preset(const json_value *value, lzs_preload_settings *s) {
    for (size_t i = 0; value->type == TEXT && i < N_PRESETS; i++) {
        if (strcmp(value->text, presets[i]) == 0) {
            s->preset = presets[i];
            return true;
        }
    }
    return false;
}

static bool set_history(const json_value *value, lzs_preload_settings *s) {
    s->history = value->type == TEXT && strcmp(value->text, "all") == 0 ? LZS_HISTORY_ALL : LZS_HISTORY_GENERATED;
    return s->history == LZS_HISTORY_ALL || (value->type == TEXT && strcmp(value->text, "generated") == 0);
}

/* Sets one key. Returns NULL, or what the key must be. */
static const char *set(const char *key, const json_value *value, bool of_request, lzs_preload_settings *s) {
    double number;
    if (strcmp(key, "version") == 0) return set_number(value, VERSION, VERSION, true, &number) ? NULL : "must be 1";
    if (strcmp(key, "preset") == 0) return set_preset(value, s) ? NULL : "must be \"default\", \"guard\" or \"paper\"";
    if (strcmp(key, "history") == 0) return set_history(value, s) ? NULL : "must be \"generated\" or \"all\"";
    if (strcmp(key, "penalty") == 0) {
        if (!set_number(value, 0, MAX_PENALTY, false, &number)) return "must be a number from 0 to 100";
        s->penalty = (float)number;
        return NULL;
    }
    if (strcmp(key, "run_allowance") == 0) {
        if (!set_number(value, 0, LZS_MAX_WINDOW, true, &number)) return "must be a whole number from 0 to 131072";
        s->run_allowance = (int32_t)number;
        return NULL;
    }
    bool *of_process = strcmp(key, "markers") == 0 ? &s->allows_markers : NULL;
    if (strcmp(key, "strict") == 0) of_process = &s->is_strict;
    if (!of_request && of_process) return set_boolean(value, of_process) ? NULL : "must be true or false";
    return of_request ? "is not a key: use preset, penalty, run_allowance, history"
                      : "is not a key: use preset, penalty, run_allowance, history, markers, strict";
}

static bool read_object(const char *at, bool of_request, lzs_preload_settings *s, char problem[LZS_PRELOAD_PROBLEM]) {
    at = after_space(at);
    if (*at != '{') at = NULL;
    if (at) at = after_space(at + 1);
    for (bool first = true; at && *at != '}'; first = false) {
        char key[32];
        json_value value = {.text = ""};
        if (!first) at = *at == ',' ? after_space(at + 1) : NULL;
        if (at) at = read_text(at, key, sizeof key);
        if (at) at = after_space(at);
        if (at) at = *at == ':' ? read_value(after_space(at + 1), &value) : NULL;
        if (!at) break;
        at = after_space(at);
        const char *must = set(key, &value, of_request, s);
        if (must) {
            snprintf(problem, LZS_PRELOAD_PROBLEM, "%s %s", key, must);
            return false;
        }
    }
    if (at && !*after_space(at + 1)) return true;
    snprintf(problem, LZS_PRELOAD_PROBLEM, "it is not a JSON object of strings, numbers, true and false");
    return false;
}

bool lzs_preload_read(const char *json, bool of_request, lzs_preload_settings *settings,
                      char problem[LZS_PRELOAD_PROBLEM]) {
    lzs_preload_settings s = *settings;
    s.preset = NULL;
    s.penalty = -1.0f;
    s.run_allowance = -1;
    if (!read_object(json, of_request, &s, problem)) return false;
    if (!s.preset) { /* else it drops the numbers that were set before */
        s.preset = settings->preset;
        if (s.penalty < 0) s.penalty = settings->penalty;
        if (s.run_allowance < 0) s.run_allowance = settings->run_allowance;
    }
    *settings = s;
    return true;
}

bool lzs_preload_params(const lzs_preload_settings *settings, lzs_params *params) {
    lzs_params_init(params);
    params->history = settings->history;
    params->lz_penalty = 0.3f; /* the presets of lzsampler/params.py */
    params->lz_run_penalty = 0.5f;
    if (strcmp(settings->preset, "guard") == 0) {
        params->lz_penalty = 0.0f;
        params->lz_run_allowance = 64;
    }
    if (strcmp(settings->preset, "paper") == 0) {
        params->lz_rule = LZS_RULE_PAPER;
        params->lz_penalty = 0.15f;
        params->lz_run_penalty = 0.0f;
        params->lz_formula = LZS_LZ_RATE;
        params->lz_window = 512;
        params->lz_buffer = 32;
    }
    if (settings->penalty >= 0) params->lz_penalty = settings->penalty;
    if (settings->penalty == 0) params->lz_run_penalty = 0.0f;
    if (settings->run_allowance >= 0) params->lz_run_allowance = settings->run_allowance;
    return params->lz_penalty > 0 || params->lz_run_penalty > 0;
}
