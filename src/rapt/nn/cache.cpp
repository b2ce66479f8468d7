#include "rapt/nn/cache.h"

#include <algorithm>
#include <cstring>

#include "rapt/base/check.h"

namespace rapt::nn {
namespace {

constexpr int64_t kFirstCapacity = 16;

void copy_rows(Tensor& to, int64_t to_row, const Tensor& from, int64_t from_row, int64_t count) {
  const int64_t element = size_of(to.dtype()), bytes = to.shape().row_size() * element;
  for (int64_t i = 0; i < count && bytes > 0; ++i) {
    std::memcpy(static_cast<char*>(to.raw()) + (to_row + i) * to.row_stride() * element,
                static_cast<const char*>(from.raw()) + (from_row + i) * from.row_stride() * element,
                static_cast<size_t>(bytes));
  }
}

}  // namespace

void KeyValueCache::append(const Tensor& keys, const Tensor& values, const Rows& rows) {
  RAPT_CHECK(rows.sentences() == static_cast<int64_t>(lengths_.size()),
             "KeyValueCache: expected {} sentences, got {}", lengths_.size(), rows.sentences());
  RAPT_CHECK(keys.rank() == 3 && values.rank() == 3 && keys.dim(0) == rows.tokens() &&
                 values.dim(0) == rows.tokens(),
             "KeyValueCache: expected keys and values (N, H, D) of {} rows, got {} and {}",
             rows.tokens(), keys.shape().text(), values.shape().text());
  int64_t needed = 0;
  for (size_t b = 0; b < lengths_.size(); ++b) {
    const Segment& s = rows[static_cast<int64_t>(b)];
    RAPT_CHECK(s.count == 0 || s.position == lengths_[b],
               "KeyValueCache: expected sentence {} to go on at position {}, got {}", b,
               lengths_[b], s.position);
    needed = std::max(needed, lengths_[b] + s.count);
  }
  if (needed > capacity_ || !keys_.defined()) grow(needed, keys, values);
  for (size_t b = 0; b < lengths_.size(); ++b) {
    const Segment& s = rows[static_cast<int64_t>(b)];
    const int64_t at = static_cast<int64_t>(b) * capacity_ + lengths_[b];
    copy_rows(keys_, at, keys, s.row, s.count);
    copy_rows(values_, at, values, s.row, s.count);
    lengths_[b] += s.count;
    for (int64_t i = 0; i < s.count; ++i) stamps_[b].push_back(appended_++);
  }
}

void KeyValueCache::copy(int64_t from, int64_t to) {
  const std::vector<int64_t>& source = stamps_.at(static_cast<size_t>(from));
  std::vector<int64_t>& target = stamps_.at(static_cast<size_t>(to));
  const size_t known = target.size();
  target.resize(source.size());
  lengths_[static_cast<size_t>(to)] = lengths_[static_cast<size_t>(from)];
  for (size_t i = 0; i < source.size(); ++i) {
    if (i < known && target[i] == source[i]) continue;
    const int64_t row = static_cast<int64_t>(i);
    copy_rows(keys_, to * capacity_ + row, keys_, from * capacity_ + row, 1);
    copy_rows(values_, to * capacity_ + row, values_, from * capacity_ + row, 1);
    target[i] = source[i];
  }
}

void KeyValueCache::grow(int64_t needed, const Tensor& keys, const Tensor& values) {
  const int64_t capacity = std::max({needed, 2 * capacity_, kFirstCapacity});
  const int64_t rows = static_cast<int64_t>(lengths_.size()) * capacity;
  Tensor new_keys = Tensor::empty({rows, keys.dim(1), keys.dim(2)}, keys.dtype());
  Tensor new_values = Tensor::empty({rows, values.dim(1), values.dim(2)}, values.dtype());
  for (size_t b = 0; b < lengths_.size() && keys_.defined(); ++b) {
    copy_rows(new_keys, static_cast<int64_t>(b) * capacity, keys_,
              static_cast<int64_t>(b) * capacity_, lengths_[b]);
    copy_rows(new_values, static_cast<int64_t>(b) * capacity, values_,
              static_cast<int64_t>(b) * capacity_, lengths_[b]);
  }
  keys_ = new_keys;
  values_ = new_values;
  capacity_ = capacity;
}

KeyValues KeyValueCache::contents() const {
  std::vector<Segment> segments(lengths_.size());
  for (size_t b = 0; b < lengths_.size(); ++b) {
    segments[b] = {static_cast<int64_t>(b) * capacity_, lengths_[b], 0, b};
  }
  return {keys_, values_, Rows(std::move(segments))};
}

}  // namespace rapt::nn
