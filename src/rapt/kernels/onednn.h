// oneDNN's matrix product as a single-threaded call, for the sources of kernels/ alone.
//
// Products are primitives that oneDNN generates machine code for: about 0.1 ms and 50 KiB each in
// f32, 0.6 ms and 120 KiB in bf16. They are kept by their sizes, so callers take sizes from short
// lists.
#pragma once

#include <cstdint>

namespace rapt::kernels::onednn {

enum class Type : uint8_t { f32, bf16 };

// c = a b + bias, or c += a b. Sums are in f32.
struct Product {
  int64_t m = 0, n = 0, k = 0;        // a (m, k), b (k, n), c (m, n), bias (n); none may be 0
  int64_t lda = 0, ldb = 0, ldc = 0;  // elements from one stored row to the next
  bool a_transposed = false;          // a is stored as (k, m)
  bool b_transposed = false;          // b is stored as (n, k)
  Type inputs = Type::f32, output = Type::f32;
  bool bias = false;
  bool accumulate = false;

  bool operator==(const Product&) const = default;
};

// Runs on the calling thread alone and leaves its OpenMP settings as they were. `bias` is null
// unless the product has one.
void multiply(const Product& product, const void* a, const void* b, const float* bias, void* c);

// Whether this CPU and the active instruction set multiply bf16 natively.
bool multiplies_bf16();

}  // namespace rapt::kernels::onednn
