// A trie over byte strings, for finding all pieces that a text starts with. For sources only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace rapt::text {

class ByteTrie {
 public:
  ByteTrie() : nodes_(1) {}

  // Strings with their values, at least 0; none empty, none twice.
  explicit ByteTrie(std::vector<std::pair<std::string_view, int32_t>> entries);

  // Calls `found(length, value)` for every entry that `text` starts with, the shorter first.
  template <class Found>
  void prefixes(std::string_view text, Found&& found) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]));
      if (node == 0) return;
      if (nodes_[node].value >= 0) found(i + 1, nodes_[node].value);
    }
  }

  // The length of the longest entry that `text` starts with; 0: none.
  size_t longest_prefix(std::string_view text) const {
    size_t longest = 0;
    prefixes(text, [&](size_t length, int32_t) { longest = length; });
    return longest;
  }

 private:
  // Children of a node stand one behind the other, by their bytes. Node 0 is the root, and as a
  // child stands for none.
  struct Node {
    uint32_t first_child = 0;
    uint16_t children = 0;
    unsigned char byte = 0;
    int32_t value = -1;
  };

  uint32_t child(uint32_t node, unsigned char byte) const {
    if (node == 0) return root_[byte];
    const auto begin = nodes_.begin() + nodes_[node].first_child;
    const auto end = begin + nodes_[node].children;
    const auto at = std::lower_bound(begin, end, byte,
                                     [](const Node& n, unsigned char b) { return n.byte < b; });
    return at != end && at->byte == byte ? static_cast<uint32_t>(at - nodes_.begin()) : 0;
  }

  std::vector<Node> nodes_;
  std::array<uint32_t, 256> root_{};
};

}  // namespace rapt::text
