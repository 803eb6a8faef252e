/* dispatch.c - chooses the kernels for this CPU. The CPU is asked once, and no other file uses cpuid. */
#include "kernels.h"

#include <stdlib.h>
#ifndef __STDC_NO_ATOMICS__
#  include <stdatomic.h>
typedef _Atomic(const lzs_kernels *) chosen_kernels;
#else
typedef const lzs_kernels *volatile chosen_kernels;
#endif

#ifdef LZS_X86
#ifdef LZS_MSVC
static void cpuid(uint32_t leaf, uint32_t r[4]) {
    __cpuidex((int *)r, (int)leaf, 0);
}
static uint64_t xcr0(void) {
    return _xgetbv(0);
}
#else
#include <cpuid.h>
static void cpuid(uint32_t leaf, uint32_t r[4]) {
    __cpuid_count(leaf, 0, r[0], r[1], r[2], r[3]);
}
static uint64_t xcr0(void) { /* in assembly, because the builtin for xgetbv needs -mxsave, and __builtin_cpu_supports
                              * needs compiler-rt */
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}
#endif

enum { AVX2 = 1, AVX512 = 2 };

static int features(void) {
    uint32_t r[4];
    cpuid(0, r);
    if (r[0] < 7) return 0;
    cpuid(1, r);
    if (!(r[2] & 1u << 27)) return 0; /* OSXSAVE: the system saves vector registers */
    uint64_t saved = xcr0();
    cpuid(7, r);
    int found = 0;
    if ((saved & 0x06) == 0x06 && (r[1] & (1u << 5 | 1u << 8)) == (1u << 5 | 1u << 8)) found |= AVX2; /* AVX2, BMI2 */
    uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* F, DQ, BW, VL */
    if ((saved & 0xe6) == 0xe6 && (r[1] & avx512) == avx512) found |= AVX512;
    return found;
}
#endif

const lzs_kernels *lzs_kernels_at(int i) {
    const lzs_kernels *tables[4] = {&lzs_kernels_scalar};
    int n = 1;
#ifdef LZS_X86
    int found = features();
    if (found & AVX2) tables[n++] = &lzs_kernels_avx2;
    if (found & AVX512) tables[n++] = &lzs_kernels_avx512;
#endif
#ifdef LZS_NEON
    tables[n++] = &lzs_kernels_neon;
#endif
    return i < n ? tables[i] : NULL;
}

static bool same(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

const lzs_kernels *lzs_kernels_best(void) {
    /* All threads find the same table. The table is kept, because a cpuid that traps to a hypervisor takes 20 us. */
    static chosen_kernels chosen;
    const lzs_kernels *best = chosen, *table, *named = NULL;
    if (best) return best;
    const char *wanted = getenv("LZS_KERNELS");
    for (int i = 0; (table = lzs_kernels_at(i)); i++) {
        best = table;
        if (wanted && same(wanted, table->name)) named = table;
    }
    if (named) best = named;
    chosen = best;
    return best;
}
