#include "rapt/text/byte_trie.h"

namespace rapt::text {

ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, int32_t>> entries) : nodes_(1) {
  std::sort(entries.begin(), entries.end());
  // Breadth first: each node with the range of entries that share its path, and the path's length.
  struct Open {
    uint32_t node;
    size_t begin, end, depth;
  };
  std::vector<Open> open = {{0, 0, entries.size(), 0}};
  for (size_t o = 0; o < open.size(); ++o) {
    auto [node, begin, end, depth] = open[o];
    if (begin < end && entries[begin].first.size() == depth) {
      nodes_[node].value = entries[begin].second;
      ++begin;
    }
    nodes_[node].first_child = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const auto byte = static_cast<unsigned char>(entries[begin].first[depth]);
      size_t stop = begin + 1;
      while (stop < end && static_cast<unsigned char>(entries[stop].first[depth]) == byte) ++stop;
      const auto child = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({.byte = byte});
      ++nodes_[node].children;
      if (node == 0) root_[byte] = child;
      open.push_back({child, begin, stop, depth + 1});
      begin = stop;
    }
  }
}

}  // namespace rapt::text
