// Runs the tests of one file, on the instruction set that RAPT_TEST_ISA names, if any.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "rapt/base/cpu.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (const char* name = std::getenv("RAPT_TEST_ISA")) {
    const rapt::Isa isa = rapt::parse_isa(name);
    if (isa > rapt::detected_isa()) {
      std::printf("[  SKIPPED ] all: this CPU has no %s\n", name);
      return 0;
    }
    rapt::restrict_isa(isa);
  }
  return RUN_ALL_TESTS();
}
