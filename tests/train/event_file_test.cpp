// TensorBoard's event files: whole records, none twice, whatever stopped the run.
// tests/cli/tensorboard_test.py reads them with checksums of its own.
#include "rapt/train/event_file.h"

#include <limits>

#include "rapt/base/file.h"
#include "tests/train/runs.h"

namespace rapt::train {
namespace {

using namespace testing;
namespace fs = std::filesystem;

// Where each record ends, by the lengths that stand before them.
std::vector<size_t> ends_of(const std::string& file) {
  std::vector<size_t> ends;
  for (size_t at = 0; at + 12 <= file.size(); ends.push_back(at)) {
    size_t length = 0;
    for (size_t i = 8; i-- > 0;) length = (length << 8) | static_cast<unsigned char>(file[at + i]);
    at += 12 + length + 4;
  }
  return ends;
}

class Events : public ::testing::Test {
 protected:
  // The version, then steps 1 to 4, of which 2 and 4 are validated.
  void SetUp() override {
    EventFile events(path(), 0, 0);
    for (int64_t step = 1; step <= 4; ++step) {
      train(events, step);
      if (step % 2 == 0)
        events.validated(step, {.loss = 2, .tokens = 9, .bleu = 30.5, .chrf = 50.25});
    }
    whole_ = read_file(path());
    ends_ = ends_of(whole_);
    ASSERT_EQ(ends_.size(), 7u);
    ASSERT_EQ(ends_.back(), whole_.size());
  }

  static void train(EventFile& events, int64_t step) {
    events.trained({.step = step,
                    .epoch = 1,
                    .loss = 3,
                    .rate = 0.001,
                    .norm = std::numeric_limits<double>::quiet_NaN(),
                    .tokens = 10,
                    .tokens_per_second = 5,
                    .seconds = 1});
  }

  // What is left of `file` when a run goes on at these steps.
  std::string left_of(const std::string& file, int64_t step, int64_t validated) {
    write_file(path(), file);
    const EventFile events(path(), step, validated);
    return read_file(path());
  }

  std::string first(size_t records) const { return whole_.substr(0, ends_[records - 1]); }
  fs::path path() const { return folder_.path() / kEventFile; }

  TemporaryFolder folder_;
  std::string whole_;
  std::vector<size_t> ends_;
};

TEST_F(Events, NumbersThatAreNotFiniteAreLeftOut) {
  EXPECT_NE(whole_.find("train/loss"), std::string::npos);
  EXPECT_NE(whole_.find("valid/bleu"), std::string::npos);
  EXPECT_EQ(whole_.find("gradient_norm"), std::string::npos);
}

TEST_F(Events, LaterStepsAreRemovedWhenARunGoesOn) {
  EXPECT_EQ(left_of(whole_, 4, 4), whole_);
  EXPECT_EQ(left_of(whole_, 4, 2), first(6));  // saved before it was validated
  EXPECT_EQ(left_of(whole_, 3, 2), first(5));
  EXPECT_EQ(left_of(whole_, 2, 2), first(4));
  EXPECT_EQ(left_of(whole_, 2, 0), first(3));
  EXPECT_EQ(left_of(whole_, 1, 0), first(2));
  EventFile events(path(), 1, 0);
  train(events, 2);
  events.sync();
  EXPECT_EQ(ends_of(read_file(path())).back(), first(3).size());
}

TEST_F(Events, ATailThatIsTornIsCutWhereverThatIs) {
  for (size_t bytes = ends_[0]; bytes < whole_.size(); ++bytes) {
    const auto whole_records = std::upper_bound(ends_.begin(), ends_.end(), bytes);
    EXPECT_EQ(left_of(whole_.substr(0, bytes), 4, 4).size(), *(whole_records - 1));
  }
}

TEST_F(Events, AChangedByteEndsWhatIsKept) {
  for (size_t at = ends_[2]; at < ends_[3]; ++at) {
    std::string damaged = whole_;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    EXPECT_EQ(left_of(damaged, 4, 4), first(3)) << at;
  }
}

TEST_F(Events, ARunFromTheStartAndAFileThatIsNoneBeginAnew) {
  for (const std::string& start :
       {left_of(whole_, 0, 0), left_of("no events at all, but text", 4, 4), left_of("", 4, 4),
        left_of(std::string(40, '\xff'), 4, 4)}) {
    EXPECT_EQ(start.size(), ends_[0]);
    EXPECT_NE(start.find("brain.Event:2"), std::string::npos);
  }
}

TEST(Run, EventsStandBesideTheMetricsUnlessTheyAreSwitchedOff) {
  const TemporaryFolder folder;
  Runner runner;
  runner.validation_pairs = 3;
  runner.go(folder.path() / "whole");
  const std::string whole = read_file(folder.path() / "whole" / kEventFile);
  runner.go(folder.path() / "run", 5);
  runner.options.tensorboard = false;
  runner.go(folder.path() / "run", 5);  // keeps what was there
  EXPECT_TRUE(fs::exists(folder.path() / "run" / kEventFile));
  runner.options.tensorboard = true;
  runner.go(folder.path() / "run");
  runner.options.tensorboard = false;
  runner.go(folder.path() / "none");
  EXPECT_FALSE(fs::exists(folder.path() / "none" / kEventFile));
  EXPECT_GT(ends_of(whole).size(), 4u);
}

TEST(Run, EventsOfAResumedRunAreThoseOfTheUnbrokenOne) {
  const TemporaryFolder folder;
  Runner runner;
  runner.validation_pairs = 3;
  runner.options.log_every = 1;
  runner.options.save_every = 2;
  runner.go(folder.path() / "whole");
  while (!runner.go(folder.path() / "run", 3).ended()) {
  }
  EXPECT_EQ(ends_of(read_file(folder.path() / "run" / kEventFile)),
            ends_of(read_file(folder.path() / "whole" / kEventFile)));
}

}  // namespace
}  // namespace rapt::train
