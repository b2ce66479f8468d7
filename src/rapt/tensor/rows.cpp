#include "rapt/tensor/rows.h"

#include <algorithm>

#include "rapt/base/checked.h"

namespace rapt {

Rows Rows::packed(std::span<const int64_t> lengths, std::span<const uint64_t> samples) {
  RAPT_CHECK(samples.empty() || samples.size() == lengths.size(),
             "Rows: expected one sample for each of {} lengths, got {}", lengths.size(),
             samples.size());
  std::vector<Segment> segments(lengths.size());
  int64_t row = 0;
  for (size_t b = 0; b < lengths.size(); ++b) {
    segments[b] = {row, lengths[b], 0, samples.empty() ? b : samples[b]};
    row = checked_add(row, lengths[b], "Rows");
  }
  return Rows(std::move(segments));
}

Rows Rows::equal(int64_t B, int64_t T) {
  RAPT_CHECK(B >= 0 && T >= 0, "Rows: expected sizes of at least 0, got B {} T {}", B, T);
  return packed(std::vector<int64_t>(static_cast<size_t>(B), T));
}

Rows::Rows(std::vector<Segment> segments) {
  auto table = std::make_shared<Table>();
  for (const Segment& s : segments) {
    RAPT_CHECK(s.count >= 0, "Rows: expected lengths of at least 0, got {}", s.count);
    RAPT_CHECK(s.position >= 0, "Rows: expected positions of at least 0, got {}", s.position);
    RAPT_CHECK(s.row >= table->tokens,
               "Rows: expected sentences in order without overlap, got row {} after row {}", s.row,
               table->tokens - 1);
    table->packed = table->packed && s.row == table->tokens;
    table->tokens = checked_add(s.row, s.count, "Rows");
    table->longest = std::max(table->longest, s.count);
    table->equal = table->equal && s.count == segments.front().count;
    if (s.count > 0)
      table->last_position = std::max(table->last_position, s.position + s.count - 1);
    narrow<uint32_t>(s.position + s.count, "Rows: position");
    table->ids.resize(static_cast<size_t>(table->tokens));
    for (int64_t t = 0; t < s.count; ++t) {
      table->ids[static_cast<size_t>(s.row + t)] = {s.sample,
                                                    static_cast<uint32_t>(s.position + t)};
    }
  }
  table->segments = std::move(segments);
  table_ = std::move(table);
}

}  // namespace rapt
