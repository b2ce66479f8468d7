// A signal may come at any time, in the middle of a product too: its handler runs on the stack of
// the thread that it interrupts, not in the heap.
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "rapt/kernels/matmul.h"
#include "tests/testing/testing.h"

namespace rapt::kernels {
namespace {

struct Stack {
  uintptr_t low = 0, high = 0;
};

Stack stack_of_this_thread() {
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  const auto address = reinterpret_cast<uintptr_t>(low);
  return {address, address + size};
}

Stack stack;
volatile sig_atomic_t handled = 0, astray = 0;

void handle(int) {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  handled = handled + 1;
  if (frame < stack.low || frame >= stack.high) astray = astray + 1;
}

// Sends SIGUSR1 to the thread that made it, again and again, for as long as it lives.
class Bombardment {
 public:
  explicit Bombardment(pthread_t target)
      : sender_([this, target] {
          while (!done_) {
            pthread_kill(target, SIGUSR1);
            std::this_thread::yield();
          }
        }) {}
  ~Bombardment() {
    done_ = true;
    sender_.join();
  }
  Bombardment(const Bombardment&) = delete;
  Bombardment& operator=(const Bombardment&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::thread sender_;
};

TEST(Linear, ASignalFindsTheStackWhereItIs) {
  constexpr int64_t M = 1280, N = 512, K = 512;  // rows that oneDNN takes
  const std::vector<float> x(M * K, 0.5f), w(N * K, 0.25f);
  std::vector<float> y(M * N), dx(M * K), dw(N * K);
  stack = stack_of_this_thread();
  struct sigaction action {
  }, before{};
  action.sa_handler = handle;
  sigaction(SIGUSR1, &action, &before);
  {
    const Bombardment bombardment(pthread_self());
    for (int round = 0; astray == 0 && (round < 20 || (handled < 100 && round < 100'000));
         ++round) {
      linear(x.data(), K, w.data(), K, nullptr, y.data(), N, M, N, K, RowPolicy::fast);
      linear_dx(y.data(), N, w.data(), K, dx.data(), K, M, N, K, false);
      linear_dw(y.data(), N, x.data(), K, dw.data(), K, M, N, K, false);
    }
  }
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_GE(handled, 100);
  EXPECT_EQ(astray, 0) << "handlers ran outside of the stack";
}

}  // namespace
}  // namespace rapt::kernels
