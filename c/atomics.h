/* atomics.h - the two operations that threads do without a lock: take a flag, and count the users of an object. */
#ifndef LZS_ATOMICS_H
#define LZS_ATOMICS_H

#include <stdbool.h>

/* MSVC has its own functions for both operations. Any other compiler needs <stdatomic.h>. */
#if defined(_MSC_VER)
#include <intrin.h>
typedef volatile long lzs_flag;
typedef volatile long lzs_users;
static inline bool lzs_flag_take(lzs_flag *flag) {
    return _InterlockedExchange(flag, 1) == 0;
}
static inline void lzs_flag_give(lzs_flag *flag) {
    _InterlockedExchange(flag, 0);
}
static inline void lzs_users_begin(lzs_users *users) {
    *users = 1;
}
static inline void lzs_users_add(lzs_users *users) {
    _InterlockedIncrement(users);
}
static inline bool lzs_users_leave(lzs_users *users) {
    return _InterlockedDecrement(users) == 0;
}
#elif defined(__STDC_NO_ATOMICS__)
#error "lzsampler needs the atomics of C11 (<stdatomic.h>)"
#else
#include <stdatomic.h>
typedef atomic_flag lzs_flag;
typedef atomic_uint lzs_users;
/* Takes the flag. Returns whether the flag was free before. */
static inline bool lzs_flag_take(lzs_flag *flag) {
    return !atomic_flag_test_and_set_explicit(flag, memory_order_acquire);
}
static inline void lzs_flag_give(lzs_flag *flag) {
    atomic_flag_clear_explicit(flag, memory_order_release);
}
static inline void lzs_users_begin(lzs_users *users) {
    atomic_init(users, 1);
}
static inline void lzs_users_add(lzs_users *users) {
    atomic_fetch_add_explicit(users, 1, memory_order_relaxed);
}
/* Removes a user. Returns whether no user is left. */
static inline bool lzs_users_leave(lzs_users *users) {
    return atomic_fetch_sub_explicit(users, 1, memory_order_acq_rel) == 1;
}
#endif

#endif
