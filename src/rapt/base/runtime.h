// What a program may want to own: its threads and where its log lines go.
//
// Every call into Rapt uses the Runtime that the calling thread has entered (Runtime::Scope), or
// else one default, made on first use, with as many threads as this process may use.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace rapt {

class ThreadPool;

struct RuntimeOptions {
  int threads = 0;  // 0: the cores that this process may use (affinity and CPU quota)
  std::function<void(std::string_view line)> log = {};  // unset: warnings go to stderr
};

class Runtime {
 public:
  explicit Runtime(RuntimeOptions options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  int threads() const;
  ThreadPool& pool();
  void log(std::string_view line) const;

  // The calling thread's runtime.
  static Runtime& current();

  // Makes `runtime` the calling thread's, for the scope's life.
  class Scope {
   public:
    explicit Scope(Runtime& runtime);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Runtime* before_;
  };

 private:
  RuntimeOptions options_;
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace rapt
