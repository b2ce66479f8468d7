#include "rapt/kernels/attention_plan.h"

#include <algorithm>
#include <numeric>

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

namespace {

// The least item that `item` is joined with.
int64_t leader_of(int64_t* leader, int64_t item) {
  while (leader[item] != item) item = leader[item] = leader[leader[item]];
  return item;
}

}  // namespace

BackwardPlan::BackwardPlan(int64_t items, int64_t query_heads, const int64_t* group,
                           int64_t* numbers)
    : order_(numbers), end_of_task_(numbers + items) {
  int64_t* const leader = numbers + 2 * items;
  int64_t* const first_of_group = numbers + 3 * items;
  std::iota(leader, leader + items, 0);
  std::fill(first_of_group, first_of_group + items * query_heads, -1);
  for (int64_t i = 0; group != nullptr && i < items * query_heads; ++i) {
    if (group[i] < 0) continue;
    RAPT_ASSERT(group[i] < items * query_heads);
    int64_t& first = first_of_group[group[i]];
    if (first < 0) first = i / query_heads;
    const int64_t a = leader_of(leader, first), b = leader_of(leader, i / query_heads);
    leader[std::max(a, b)] = std::min(a, b);
  }
  std::fill(end_of_task_, end_of_task_ + items, 0);
  for (int64_t i = 0; i < items; ++i) ++end_of_task_[leader[i] = leader_of(leader, i)];
  int64_t* const next = order_;  // position of the next item of each leader, until order_ is made
  int64_t position = 0;
  for (int64_t i = 0; i < items; ++i) {
    if (leader[i] != i) continue;
    const int64_t size = end_of_task_[i];
    next[i] = position;
    position += size;
    end_of_task_[tasks_++] = position;
  }
  for (int64_t i = 0; i < items; ++i) leader[i] = next[leader[i]]++;
  for (int64_t i = 0; i < items; ++i) order_[leader[i]] = i;
}

}  // namespace rapt::kernels
