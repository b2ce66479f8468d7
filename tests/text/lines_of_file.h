// The lines of a file that a test writes.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "rapt/text/lines.h"
#include "tests/testing/testing.h"

namespace rapt::text {

inline std::vector<std::string> lines_of_file(const std::string& content) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "a.packed", std::ios::binary) << content;
  LineReader reader(folder.path() / "a.packed");
  std::vector<std::string> lines;
  while (const auto line = reader.next()) lines.emplace_back(*line);
  return lines;
}

}  // namespace rapt::text
