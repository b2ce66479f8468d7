#include "rapt/base/runtime.h"

#include <cstdio>

#include "rapt/base/check.h"
#include "rapt/base/thread_pool.h"

namespace rapt {
namespace {
thread_local Runtime* entered = nullptr;
}

Runtime::Runtime(RuntimeOptions options) : options_(std::move(options)) {
  RAPT_CHECK(options_.threads >= 0,
             "Runtime: expected at least 1 thread (or 0 for all cores), got {}", options_.threads);
  pool_ =
      std::make_unique<ThreadPool>(options_.threads == 0 ? available_cores() : options_.threads);
}
Runtime::~Runtime() = default;

int Runtime::threads() const { return pool_->threads(); }
ThreadPool& Runtime::pool() { return *pool_; }

void Runtime::log(std::string_view line) const {
  if (options_.log) return options_.log(line);
  std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

Runtime& Runtime::current() {
  static Runtime standard;
  return entered != nullptr ? *entered : standard;
}

Runtime::Scope::Scope(Runtime& runtime) : before_(entered) { entered = &runtime; }
Runtime::Scope::~Scope() { entered = before_; }

}  // namespace rapt
