// SPDX-License-Identifier: Apache-2.0
// Differences between compilers. This is the only file in src/ with conditional compilation.
#pragma once

#if defined(__clang__)
#define NEREID_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define NEREID_THREAD_ANNOTATION(x)
#endif

#if defined(__has_feature)
#define NEREID_HAS_FEATURE(x) __has_feature(x)
#else
#define NEREID_HAS_FEATURE(x) 0
#endif

namespace nereid::base {

// Whether uses of freed memory are detected.
#if defined(__SANITIZE_ADDRESS__) || NEREID_HAS_FEATURE(address_sanitizer)
inline constexpr bool kHasAddressSanitizer = true;
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif

// Whether accesses by several threads at once are detected.
#if defined(__SANITIZE_THREAD__) || NEREID_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kHasThreadSanitizer = true;
#else
inline constexpr bool kHasThreadSanitizer = false;
#endif

// Tells the processor that the calling thread looks at something again and again.
inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace nereid::base

#define NEREID_CAPABILITY(x) NEREID_THREAD_ANNOTATION(capability(x))
#define NEREID_SCOPED_CAPABILITY NEREID_THREAD_ANNOTATION(scoped_lockable)
#define NEREID_GUARDED_BY(x) NEREID_THREAD_ANNOTATION(guarded_by(x))
#define NEREID_PT_GUARDED_BY(x) NEREID_THREAD_ANNOTATION(pt_guarded_by(x))
#define NEREID_REQUIRES(...) NEREID_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define NEREID_ACQUIRE(...) NEREID_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define NEREID_TRY_ACQUIRE(...) NEREID_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define NEREID_RELEASE(...) NEREID_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define NEREID_RETURN_CAPABILITY(x) NEREID_THREAD_ANNOTATION(lock_returned(x))
#define NEREID_EXCLUDES(...) NEREID_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
