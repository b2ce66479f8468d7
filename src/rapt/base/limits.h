// Limits on what files and requests from outside may claim. Checked before anything is allocated.
#pragma once

#include <cstdint>

namespace rapt {

struct Limits {
  int64_t header_bytes = 100'000'000;    // of a safetensors header
  int64_t json_bytes = 256'000'000;      // of a JSON file
  int json_depth = 64;                   // nested brackets
  int64_t tensors = 1'000'000;           // in one file
  int64_t dimension = int64_t{1} << 40;  // of a tensor's axis
  int64_t line_bytes = 16'000'000;       // of a line of text
  int64_t vocabulary = 16'000'000;       // entries
  int64_t layers = 1024;                 // of one stack
  int64_t width = 1 << 20;               // channels, heads, hidden units
  int64_t positions = 1 << 24;           // of a position table
};

}  // namespace rapt
