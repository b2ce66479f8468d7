// The sentences of a packed batch: which rows of an activation (N, C) belong to which sentence,
// where each token stands in it, and which sample it is.
//
// A batch has no rows that are not tokens. Sentences may be empty. Copies share the tables.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rapt/kernels/types.h"

namespace rapt {

using kernels::RowId;
using kernels::Segment;

class Rows {
 public:
  Rows() : Rows(std::vector<Segment>{}) {}  // no sentences

  // Sentences of these lengths one after the other, positions from 0. `samples` names each for the
  // random numbers of dropout; without it they are numbered from 0. Throws Error for negative
  // lengths or a number of samples that is not that of the lengths.
  static Rows packed(std::span<const int64_t> lengths, std::span<const uint64_t> samples = {});
  static Rows packed(std::initializer_list<int64_t> lengths) {
    return packed(std::span(lengths.begin(), lengths.size()));
  }
  // B sentences of T tokens each: a (B, T) matrix.
  static Rows equal(int64_t B, int64_t T);
  // Any segments: rows between them belong to nobody (a key/value cache has such), positions start
  // anywhere. Throws Error if they overlap or go backwards.
  explicit Rows(std::vector<Segment> segments);

  int64_t sentences() const { return static_cast<int64_t>(table_->segments.size()); }  // B
  int64_t tokens() const { return table_->tokens; }    // N: rows of the tensors, gaps counted
  int64_t longest() const { return table_->longest; }  // max T
  bool equal_lengths() const { return table_->equal; }
  bool is_packed() const { return table_->packed; }  // no gaps
  std::span<const Segment> segments() const { return table_->segments; }
  const Segment& operator[](int64_t sentence) const {
    return table_->segments.at(static_cast<size_t>(sentence));
  }
  const RowId* ids() const { return table_->ids.data(); }          // one a row
  int64_t last_position() const { return table_->last_position; }  // the largest; -1 without tokens

 private:
  struct Table {
    std::vector<Segment> segments;
    std::vector<RowId> ids;
    int64_t tokens = 0, longest = 0, last_position = -1;
    bool equal = true, packed = true;
  };
  std::shared_ptr<const Table> table_;
};

}  // namespace rapt
