#include "rapt/kernels/attention_plan.h"

#include <algorithm>
#include <utility>

#include "rapt/base/check.h"

namespace rapt::kernels {

ForwardPlan::ForwardPlan(std::span<const Segment> queries, int64_t heads, int64_t most_queries,
                         int64_t* first_item)
    : queries_(queries), heads_(heads), most_queries_(most_queries), first_item_(first_item) {
  int64_t items = 0;
  for (size_t b = 0; b < queries.size(); ++b) {
    first_item[b] = items;
    items += pieces(queries[b].count, most_queries) * heads;
  }
  first_item[queries.size()] = items;
}

ForwardItem ForwardPlan::item(int64_t index) const {
  const int64_t* const next = std::upper_bound(first_item_, first_item_ + queries_.size(), index);
  const int64_t b = next - first_item_ - 1, within = index - first_item_[b];
  const int64_t count = queries_[static_cast<size_t>(b)].count, n = pieces(count, most_queries_);
  return {b, within % heads_, piece(count, n, n - 1 - within / heads_)};
}

BackwardPlan::BackwardPlan(int64_t all_heads, const int64_t* group, int64_t* order,
                           int64_t* end_of_group)
    : order_(order), end_of_group_(end_of_group) {
  std::fill(end_of_group, end_of_group + all_heads, 0);
  for (int64_t i = 0; i < all_heads; ++i) {
    if (group == nullptr || group[i] < 0) {
      order[free_++] = i;
      continue;
    }
    RAPT_ASSERT(group[i] < all_heads);
    ++end_of_group[group[i]];
    groups_ = std::max(groups_, group[i] + 1);
  }
  int64_t start = free_;
  for (int64_t g = 0; g < groups_; ++g) start += std::exchange(end_of_group[g], start);
  if (groups_ == 0) return;
  for (int64_t i = 0; i < all_heads; ++i) {
    if (group[i] >= 0) order[end_of_group[group[i]]++] = i;
  }
}

}  // namespace rapt::kernels
