#include "rapt/base/runtime.h"

#include <thread>
#include <vector>

#include "rapt/base/thread_pool.h"
#include "tests/testing/testing.h"

namespace rapt {
namespace {

using testing::error_of;

TEST(Runtime, HasTheThreadsThatWereAskedFor) {
  EXPECT_EQ(Runtime({.threads = 3}).threads(), 3);
  EXPECT_EQ(Runtime({.threads = 1}).pool().threads(), 1);
  EXPECT_EQ(Runtime().threads(), available_cores());
  EXPECT_EQ(error_of([] { Runtime({.threads = -2}); }),
            "Runtime: expected at least 1 thread (or 0 for all cores), got -2");
}

TEST(Runtime, ScopesNest) {
  Runtime& standard = Runtime::current();
  EXPECT_EQ(&Runtime::current(), &standard);
  Runtime a({.threads = 1}), b({.threads = 2});
  {
    const Runtime::Scope outer(a);
    EXPECT_EQ(&Runtime::current(), &a);
    {
      const Runtime::Scope inner(b);
      EXPECT_EQ(&Runtime::current(), &b);
      const Runtime::Scope again(a);
      EXPECT_EQ(&Runtime::current(), &a);
    }
    EXPECT_EQ(&Runtime::current(), &a);
  }
  EXPECT_EQ(&Runtime::current(), &standard);
}

TEST(Runtime, AScopeEndsWithAnException) {
  Runtime& standard = Runtime::current();
  Runtime a({.threads = 1});
  EXPECT_THROW(
      {
        const Runtime::Scope scope(a);
        throw Error("out");
      },
      Error);
  EXPECT_EQ(&Runtime::current(), &standard);
}

TEST(Runtime, AScopeIsOfOneThreadAlone) {
  Runtime& standard = Runtime::current();
  Runtime a({.threads = 1});
  const Runtime::Scope scope(a);
  Runtime* seen = nullptr;
  std::thread([&] { seen = &Runtime::current(); }).join();
  EXPECT_EQ(seen, &standard);
}

TEST(Runtime, LogLinesGoToTheirSink) {
  std::vector<std::string> lines;
  Runtime a({.threads = 1, .log = [&](std::string_view line) { lines.emplace_back(line); }});
  a.log("a line");
  const Runtime::Scope scope(a);
  Runtime::current().log("100 %");
  EXPECT_EQ(lines, (std::vector<std::string>{"a line", "100 %"}));
}

TEST(Runtime, WithoutASinkLinesGoToStandardError) {
  ::testing::internal::CaptureStderr();
  Runtime({.threads = 1}).log("50 %s of it");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "50 %s of it\n");
}

}  // namespace
}  // namespace rapt
