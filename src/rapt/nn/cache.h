// Keys and values that a decoding step needs again.
#pragma once

#include <cstdint>
#include <vector>

#include "rapt/tensor/rows.h"
#include "rapt/tensor/tensor.h"

namespace rapt::nn {

// The keys (rows, H, Dk) and values (rows, H, Dv) of some sentences, projected once: an encoder's
// output as the cross-attention of one layer sees it.
struct KeyValues {
  Tensor keys, values;
  Rows rows;
};

// The keys and values of one self-attention, for sentences that grow by some tokens a step. Written
// in place; each sentence has room for `capacity` tokens, which doubles when it is full.
class KeyValueCache {
 public:
  // Sentences start empty.
  explicit KeyValueCache(int64_t sentences)
      : lengths_(static_cast<size_t>(sentences), 0), stamps_(lengths_.size()) {}

  // Appends keys (N, H, Dk) and values (N, H, Dv); the sentences of `rows` are those of the cache,
  // each with the tokens that are new (none for a sentence that has ended), and their positions
  // must go on where the cached ones end. Throws Error where they do not, or for other shapes.
  void append(const Tensor& keys, const Tensor& values, const Rows& rows);

  // Sentence `to` becomes what sentence `from` is, as beam search needs it where a hypothesis goes
  // on in several ways. Rows that both have from a common ancestor stay where they are.
  void copy(int64_t from, int64_t to);

  // What is cached: views of the cache, good until the next append or copy.
  KeyValues contents() const;
  int64_t length(int64_t sentence) const { return lengths_.at(static_cast<size_t>(sentence)); }

 private:
  void grow(int64_t capacity, const Tensor& keys, const Tensor& values);

  std::vector<int64_t> lengths_;
  std::vector<std::vector<int64_t>> stamps_;  // of a sentence's rows: the same where they are equal
  int64_t appended_ = 0;                      // rows so far, the next stamp
  int64_t capacity_ = 0;
  Tensor keys_, values_;  // (sentences * capacity, H, D)
};

}  // namespace rapt::nn
