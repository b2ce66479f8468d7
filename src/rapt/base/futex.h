// Waiting for a word of memory to change: first by looking at it, then asleep in the kernel. For
// sources only.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace rapt {

// Sleeps while `word` holds `value`; may return early for no reason.
inline void futex_wait(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

// Wakes up to `count` threads that sleep on `word`.
inline void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// Looks at `ready()` for about `limit`; whether it became true.
template <class Ready>
bool spin_until(std::chrono::nanoseconds limit, Ready&& ready) {
  constexpr int kLooks = 32;  // between two looks at the clock
  if (ready()) return true;
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < kLooks; ++i) {
      __builtin_ia32_pause();
      if (ready()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace rapt
