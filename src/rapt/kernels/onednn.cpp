#include "rapt/kernels/onednn.h"

#include <signal.h>

#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <shared_mutex>
#include <unordered_map>

#include "rapt/base/check.h"
#include "rapt/base/cpu.h"
#include "rapt/base/memory.h"
#include "rapt/kernels/matmul_plan.h"

// Of libgomp, which Debian's oneDNN runs on; declared here because nothing is compiled with
// -fopenmp.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace rapt::kernels::onednn {
namespace {

// Our pool cuts the work; oneDNN's own team is the calling thread alone for as long as this lives.
class TeamOfOne {
 public:
  TeamOfOne() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~TeamOfOne() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  TeamOfOne(const TeamOfOne&) = delete;
  TeamOfOne& operator=(const TeamOfOne&) = delete;

 private:
  int before_;
};

// Holds signals back from the calling thread for as long as this lives: oneDNN 2.6.3's f32 products
// on AVX2 and AVX-512 keep an address of the heap in the stack pointer for a while
// (github.com/uxlfoundation/oneDNN/issues/4845), and a signal handler that runs then writes its
// frame over whatever lies there.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

struct Hash {
  size_t operator()(const Product& p) const {
    uint64_t h = 0;
    for (const int64_t word : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc, flags(p)}) {
      h = (h ^ static_cast<uint64_t>(word)) * 0x9E3779B97F4A7C15u;
      h ^= h >> 29;
    }
    return h;
  }
  static int64_t flags(const Product& p) {
    return p.a_transposed | p.b_transposed << 1 | p.bias << 2 | p.accumulate << 3 |
           static_cast<int>(p.inputs) << 4 | static_cast<int>(p.output) << 5;
  }
};

// A primitive and the shapes that it was made for; shared between threads.
struct Compiled {
  dnnl::matmul primitive;
  dnnl::memory::desc a, b, bias, c, scratchpad;
};

const dnnl::engine& engine() {
  static const dnnl::engine* const cpu = [] {
    static constexpr dnnl::cpu_isa kIsas[] = {dnnl::cpu_isa::sse41,
                                              dnnl::cpu_isa::sse41,
                                              dnnl::cpu_isa::avx2,
                                              dnnl::cpu_isa::avx512_core,
                                              dnnl::cpu_isa::avx512_core_bf16,
                                              dnnl::cpu_isa::avx512_core_amx};
    // Refused where another part of the program has used oneDNN already: then its choice stands.
    dnnl::set_max_cpu_isa(kIsas[static_cast<int>(active_isa())]);
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);  // outlives the threads of static runtimes
  }();
  return *cpu;
}

dnnl::memory::desc matrix(int64_t rows, int64_t cols, int64_t ld, bool transposed, Type type) {
  const auto data =
      type == Type::f32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
  return {{rows, cols}, data, transposed ? dnnl::memory::dims{1, ld} : dnnl::memory::dims{ld, 1}};
}

std::shared_ptr<const Compiled> compile(const Product& p) {
  auto compiled = std::make_shared<Compiled>();
  compiled->a = matrix(p.m, p.k, p.lda, p.a_transposed, p.inputs);
  compiled->b = matrix(p.k, p.n, p.ldb, p.b_transposed, p.inputs);
  compiled->c = matrix(p.m, p.n, p.ldc, false, p.output);
  if (p.bias) compiled->bias = matrix(1, p.n, p.n, false, Type::f32);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (p.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const auto desc = p.bias
                        ? dnnl::matmul::desc(compiled->a, compiled->b, compiled->bias, compiled->c)
                        : dnnl::matmul::desc(compiled->a, compiled->b, compiled->c);
  const dnnl::matmul::primitive_desc description(desc, attributes, engine());
  compiled->scratchpad = description.scratchpad_desc();
  compiled->primitive = dnnl::matmul(description);
  return compiled;
}

// The primitives of this process, the whole lot dropped when there are too many.
class Compiler {
 public:
  std::shared_ptr<const Compiled> find(const Product& product) {
    {
      std::shared_lock lock(mutex_);
      const auto found = known_.find(product);
      if (found != known_.end()) return found->second;
    }
    auto compiled = compile(product);
    std::unique_lock lock(mutex_);
    if (known_.size() >= kMost) known_.clear();
    return known_.emplace(product, std::move(compiled)).first->second;
  }

 private:
  static constexpr size_t kMost = 512;
  std::shared_mutex mutex_;
  std::unordered_map<Product, std::shared_ptr<const Compiled>, Hash> known_;
};

// A primitive with a thread's own handles to what it reads and writes.
struct Prepared {
  std::shared_ptr<const Compiled> compiled;
  dnnl::memory a, b, bias, c, scratchpad;
  size_t scratch_bytes = 0;

  explicit Prepared(std::shared_ptr<const Compiled> from) : compiled(std::move(from)) {
    a = dnnl::memory(compiled->a, engine(), nullptr);
    b = dnnl::memory(compiled->b, engine(), nullptr);
    c = dnnl::memory(compiled->c, engine(), nullptr);
    if (!compiled->bias.is_zero()) bias = dnnl::memory(compiled->bias, engine(), nullptr);
    scratch_bytes = compiled->scratchpad.get_size();
    if (scratch_bytes != 0) scratchpad = dnnl::memory(compiled->scratchpad, engine(), nullptr);
  }
};

Prepared& prepared(const Product& product) {
  static Compiler* const compiler = new Compiler;  // as the engine
  constexpr size_t kMost = 256;
  thread_local std::unordered_map<Product, Prepared, Hash> mine;
  const auto found = mine.find(product);
  if (found != mine.end()) return found->second;
  if (mine.size() >= kMost) mine.clear();
  return mine.emplace(product, Prepared(compiler->find(product))).first->second;
}

void point(dnnl::memory& memory, const void* data) {
  memory.set_data_handle(const_cast<void*>(data));
}

}  // namespace

void multiply(const Product& product, const void* a, const void* b, const float* bias, void* c) {
  const TeamOfOne team;
  try {
    Prepared& p = prepared(product);
    thread_local dnnl::stream stream(engine());
    point(p.a, a);
    point(p.b, b);
    point(p.c, c);
    dnnl_exec_arg_t args[5] = {
        {DNNL_ARG_SRC, p.a.get()}, {DNNL_ARG_WEIGHTS, p.b.get()}, {DNNL_ARG_DST, p.c.get()}};
    int count = 3;
    if (product.bias) {
      point(p.bias, bias);
      args[count++] = {DNNL_ARG_BIAS, p.bias.get()};
    }
    if (p.scratch_bytes != 0) {
      point(p.scratchpad, thread_scratch(kScratchOnednn, p.scratch_bytes));
      args[count++] = {DNNL_ARG_SCRATCHPAD, p.scratchpad.get()};
    }
    const SignalsHeld held;
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(p.compiled->primitive.get(), stream.get(), count, args),
        "execution failed");
  } catch (const dnnl::error& error) {
    fail(error.status == dnnl_out_of_memory ? ErrorKind::memory : ErrorKind::failure,
         "matrix product ({} x {} x {}): oneDNN says {}", product.m, product.n, product.k,
         error.what());
  }
}

bool multiplies_bf16() {
  if (active_isa() < Isa::avx512_bf16) return false;
  static const bool native = [] {
    engine();  // sets the instruction set first: asking for it settles it
    constexpr int kNeeded = static_cast<int>(dnnl::cpu_isa::avx512_core_bf16);
    return (static_cast<int>(dnnl::get_effective_cpu_isa()) & kNeeded) == kNeeded;
  }();
  return native;
}

}  // namespace rapt::kernels::onednn
