/* phases.h - one kernel body for two machines: a block of CUDA threads, and its twin on the CPU.
 *
 * A body is made of phases, between which all threads of the block wait for each other:
 *
 *     LZS_BEGIN(10) { ... what thread `tid` does ... }
 *     LZS_NEXT(11) { ... }
 *     LZS_END
 *     LZS_READ(3, int32_t, n, n_found);      // const int32_t n = s->n_found, the same for every thread
 *     if (n == 0) return;
 *
 * On a GPU LZS_NEXT and LZS_END are barriers. On the CPU a phase is a loop over the threads, in an order that tests
 * choose, so tests find a result that depends on the order. Code outside of phases uses only values that are the same
 * for all threads: constants, arguments, and values that LZS_READ reads from the shared memory `s`. If a thread's own
 * variable lives longer than a phase, it is declared by LZS_PRIVATE.
 *
 * The numbers identify the barriers, for tests that leave a barrier out. In a chain from LZS_BEGIN to LZS_END the
 * numbers are consecutive, and no two chains share a number. The numbers of LZS_READ are a separate series. Two atomic
 * operations have names of their own, because losing one of their updates does no harm: lzs_set, since all threads
 * write the same value, and lzs_warp_hint_min, since its minimum only saves work.
 */
#ifndef LZS_CUDA_PHASES_H
#define LZS_CUDA_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__

#  define LZS_BODY static __device__ __forceinline__
#  define LZS_THREADS blockDim.x /* threads of a block */
#  define LZS_WARPS (LZS_THREADS / 32)
#  define LZS_UNROLL _Pragma("unroll")
#  define LZS_UNROLL_4 _Pragma("unroll 4") /* registers are scarce */
#  define LZS_ALIGNED(n) __align__(n)
#  define LZS_BEGIN(id) \
      { \
          const uint32_t tid = threadIdx.x; \
          (void)tid;
#  define LZS_NEXT(id) __syncthreads();
#  define LZS_END \
      __syncthreads(); \
      }
/* The second barrier keeps the next phase from writing what a slow thread still reads. */
#  define LZS_READ(id, type, name, member) \
      const type name = s->member; \
      __syncthreads()
#  define LZS_PRIVATE(type, name) type name
#  define LZS_OWN(name) name

#  define lzs_atomic_add(p, v) atomicAdd((p), (v))
#  define lzs_atomic_max(p, v) atomicMax((p), (v))
#  define lzs_atomic_min(p, v) atomicMin((p), (v))
#  define lzs_atomic_and(p, v) atomicAnd((p), (v))
#  define lzs_atomic_cas(p, expected, v) atomicCAS((p), (expected), (v))
#  define lzs_atomic_add_64(p, v) atomicAdd((unsigned long long *)(p), (unsigned long long)(v))
#  define lzs_atomic_min_64(p, v) atomicMin((unsigned long long *)(p), (unsigned long long)(v))
#  define lzs_set(p) atomicOr((p), 1u)

/* The warp's threads arrive here together. They reduce their values to one maximum, minimum or sum, and one thread makes
 * the atomic operation. */
static __device__ __forceinline__ void lzs_warp_max(uint32_t *p, uint32_t v) {
    v = __reduce_max_sync(0xffffffffu, v);
    if ((threadIdx.x & 31) == 0) atomicMax(p, v);
}

/* The maximum of the warp's values counts for both: the largest of such maxima, and the least of them. */
static __device__ __forceinline__ void lzs_warp_bounds(uint32_t *largest, uint32_t *least, uint32_t v) {
    v = __reduce_max_sync(0xffffffffu, v);
    if ((threadIdx.x & 31) != 0) return;
    atomicMax(largest, v);
    atomicMin(least, v);
}

static __device__ __forceinline__ void lzs_warp_min(uint32_t *p, uint32_t v) {
    v = __reduce_min_sync(0xffffffffu, v);
    if ((threadIdx.x & 31) == 0) atomicMin(p, v);
}

static __device__ __forceinline__ void lzs_warp_hint_min(uint32_t *p, uint32_t v) {
    lzs_warp_min(p, v);
}

static __device__ __forceinline__ void lzs_warp_add(uint32_t *p, uint32_t v) {
    v = __reduce_add_sync(0xffffffffu, v);
    if ((threadIdx.x & 31) == 0) atomicAdd(p, v);
}

#else

#  include <string.h>

#  define LZS_MAX_THREADS 1024
#  define LZS_MAX_BARRIERS 256
#  define LZS_MAX_SITES 4096
#  define LZS_READ_BARRIER 512
#  define LZS_MAX_WAITS 1024
/* The place of an atomic operation in the source. Each file with atomic operations redefines LZS_FILE. */
#  define LZS_SITE (LZS_FILE * 1024 + __LINE__)

typedef enum lzs_twin_order { LZS_TWIN_FORWARD, LZS_TWIN_BACKWARD, LZS_TWIN_SHUFFLED, LZS_TWIN_ORDERS } lzs_twin_order;

/* How the twin runs a block, and which synchronization it leaves out on purpose (0: none). */
typedef struct lzs_twin {
    uint32_t threads; /* of a block: a power of two, 32 to LZS_MAX_THREADS */
    lzs_twin_order order;
    uint32_t shuffle; /* the random state of the shuffled order, new in every phase */
    int dropped;      /* the barrier before this phase is left out: threads run on into the phase */
    int stale;        /* this LZS_READ reads the memory as it was before the last thread arrived */
    int lossy;        /* atomic operations at this LZS_SITE are non-atomic: the next one overwrites the last */
    const void *lossy_at;
    uint64_t lossy_old;
    bool phases[LZS_MAX_BARRIERS], reads[LZS_MAX_BARRIERS]; /* the phases and reads that ran */
    bool sites[LZS_MAX_SITES], harmless[LZS_MAX_SITES];    /* harmless: sites of lzs_set and lzs_warp_hint_min */
    char memory[65536]; /* the memory that a stale read reads */
    void (*wait)(void); /* if not NULL, threads run one by one, thread `tid` now, and call this at barriers */
    uint32_t tid;
    int skipped; /* no thread waits at this barrier: the number of the phase after it, or LZS_READ_BARRIER + a read's
                  * number */
    bool waits[LZS_MAX_WAITS];
    uint64_t n_swaps; /* calls of lzs_atomic_cas, failed ones included */
} lzs_twin;

extern lzs_twin lzs_the_twin;

typedef struct lzs_walk {
    const void *shared;
    size_t size;
    int first, last, phase; /* the phases that a thread runs in a row, and the current phase */
    uint32_t at, tid, step; /* `step` is odd: i * step + start visits every thread */
    uint32_t start;
    bool begun, over;
} lzs_walk;

static inline lzs_walk lzs_walk_from(int id, const void *shared, size_t size) {
    return (lzs_walk){.shared = shared, .size = size, .first = id};
}

static inline void lzs_twin_wait(int barrier) {
    lzs_twin *t = &lzs_the_twin;
    if (!t->wait) return;
    t->waits[barrier] = true;
    if (t->skipped != barrier) t->wait();
}

static inline bool lzs_walk_on(lzs_walk *w) {
    lzs_twin *t = &lzs_the_twin;
    if (w->over) return false;
    if (t->wait) { /* LZS_END's barrier has the number after the last phase */
        if (w->begun) lzs_twin_wait(w->phase + 1);
        w->phase = w->begun ? w->phase + 1 : w->first;
        w->begun = true;
        w->tid = t->tid;
        return true;
    }
    if (w->begun && w->phase < w->last) {
        w->phase++;
        return true;
    }
    if (!w->begun || ++w->at == t->threads) {
        if (w->begun) w->first = w->last + 1;
        w->begun = true;
        w->last = w->first + (t->dropped == w->first + 1);
        w->at = 0;
        const char *at = t->lossy_at, *own = w->shared; /* operations of other blocks go on beyond a phase */
        if (at >= own && at < own + w->size) t->lossy_at = NULL;
        t->shuffle = t->shuffle * 1664525u + 1013904223u;
        w->step = t->shuffle >> 8 | 1u;
        w->start = t->shuffle >> 16;
    }
    w->phase = w->first;
    w->tid = w->at;
    if (t->order == LZS_TWIN_BACKWARD) w->tid = t->threads - 1 - w->at;
    if (t->order == LZS_TWIN_SHUFFLED) w->tid = (w->at * w->step + w->start) & (t->threads - 1); /* a power of two */
    if (t->stale && w->at == t->threads - 1) memcpy(t->memory, w->shared, w->size);
    return true;
}

static inline void lzs_twin_seen(bool *seen, int id) {
    seen[id] = true;
}

#  define LZS_BODY static inline
#  define LZS_UNROLL
#  define LZS_UNROLL_4
#  define LZS_ALIGNED(n)
#  define LZS_THREADS lzs_the_twin.threads
#  define LZS_WARPS LZS_THREADS /* each thread is a warp by itself */
#  define LZS_BEGIN(id) \
      for (lzs_walk w_ = lzs_walk_from(id, s, sizeof *s); lzs_walk_on(&w_);) { \
          const uint32_t tid = w_.tid; \
          (void)tid; \
          switch (w_.phase) { \
          case id:
#  define LZS_NEXT(id) \
      break; \
      case id: \
          lzs_twin_seen(lzs_the_twin.phases, id);
#  define LZS_END \
      break; \
      default: w_.over = true; \
      } \
      }
#  define LZS_READ(id, type, name, member) \
      lzs_twin_seen(lzs_the_twin.reads, id); \
      _Static_assert(sizeof *s <= sizeof lzs_the_twin.memory, "stale memory holds all"); \
      type name##_read = s->member; \
      if (lzs_the_twin.stale == (id)) { \
          memcpy(&name##_read, lzs_the_twin.memory + ((const char *)&s->member - (const char *)s), sizeof name##_read); \
      } \
      lzs_twin_wait(LZS_READ_BARRIER + (id)); \
      const type name = name##_read
#  define LZS_PRIVATE(type, name) \
      type name[LZS_MAX_THREADS]; \
      memset(name, 0xA5, sizeof name)
#  define LZS_OWN(name) name[tid]

/* Returns the value of a word before an atomic operation. A lossy operation does not see the previous operation, as if
 * two threads made a non-atomic read, change and write. */
static inline uint64_t lzs_twin_old(int site, const void *p, uint64_t now) {
    lzs_twin *t = &lzs_the_twin;
    t->sites[site] = true;
    uint64_t old = now;
    if (t->lossy != site) return old;
    if (t->lossy_at == p) old = t->lossy_old;
    t->lossy_at = p;
    t->lossy_old = old;
    return old;
}

static inline void lzs_twin_add_64(int site, uint64_t *p, uint64_t v) {
    *p = lzs_twin_old(site, p, *p) + v;
}

static inline void lzs_twin_min_64(int site, uint64_t *p, uint64_t v) {
    const uint64_t old = lzs_twin_old(site, p, *p);
    *p = old < v ? old : v;
}

static inline uint32_t lzs_twin_add(int site, uint32_t *p, uint32_t v) {
    uint32_t old = (uint32_t)lzs_twin_old(site, p, *p);
    *p = old + v;
    return old;
}

static inline uint32_t lzs_twin_max(int site, uint32_t *p, uint32_t v) {
    uint32_t old = (uint32_t)lzs_twin_old(site, p, *p);
    *p = old > v ? old : v;
    return old;
}

static inline uint32_t lzs_twin_min(int site, uint32_t *p, uint32_t v) {
    uint32_t old = (uint32_t)lzs_twin_old(site, p, *p);
    *p = old < v ? old : v;
    return old;
}

static inline uint32_t lzs_twin_and(int site, uint32_t *p, uint32_t v) {
    uint32_t old = (uint32_t)lzs_twin_old(site, p, *p);
    *p = old & v;
    return old;
}

static inline uint32_t lzs_twin_or(int site, uint32_t *p, uint32_t v) {
    uint32_t old = (uint32_t)lzs_twin_old(site, p, *p);
    *p = old | v;
    return old;
}

static inline uint32_t lzs_twin_cas(int site, uint32_t *p, uint32_t expected, uint32_t v) {
    uint32_t old = (uint32_t)lzs_twin_old(site, p, *p);
    lzs_the_twin.n_swaps++;
    if (old == expected) *p = v;
    return old;
}

#  define lzs_atomic_add(p, v) lzs_twin_add(LZS_SITE, (p), (v))
#  define lzs_atomic_max(p, v) lzs_twin_max(LZS_SITE, (p), (v))
#  define lzs_atomic_min(p, v) lzs_twin_min(LZS_SITE, (p), (v))
#  define lzs_atomic_and(p, v) lzs_twin_and(LZS_SITE, (p), (v))
#  define lzs_atomic_cas(p, expected, v) lzs_twin_cas(LZS_SITE, (p), (expected), (v))
#  define lzs_atomic_add_64(p, v) lzs_twin_add_64(LZS_SITE, (p), (v))
#  define lzs_atomic_min_64(p, v) lzs_twin_min_64(LZS_SITE, (p), (v))
#  define lzs_set(p) (lzs_the_twin.harmless[LZS_SITE] = true, (void)lzs_twin_or(LZS_SITE, (p), 1u))
#  define lzs_warp_hint_min(p, v) (lzs_the_twin.harmless[LZS_SITE] = true, (void)lzs_twin_min(LZS_SITE, (p), (v)))
#  define lzs_warp_max(p, v) ((void)lzs_twin_max(LZS_SITE, (p), (v)))
#  define lzs_warp_min(p, v) ((void)lzs_twin_min(LZS_SITE, (p), (v)))
#  define lzs_warp_bounds(largest, least, v) \
      ((void)lzs_twin_max(LZS_SITE, (largest), (v)), (void)lzs_twin_min(LZS_SITE + 512, (least), (v)))
#  define lzs_warp_add(p, v) ((void)lzs_twin_add(LZS_SITE, (p), (v)))

#endif

#endif
