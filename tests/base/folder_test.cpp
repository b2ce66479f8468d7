#include <cerrno>

#include "rapt/base/random.h"
#include "rapt/base/replace.h"
#include "tests/base/files.h"

namespace rapt {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::FaultScope;
using testing::names_in;
using testing::put_text;
using testing::TemporaryFolder;
using testing::text_of;
using Names = std::set<std::string>;

// Writes a folder of three files that all hold `text`.
void write_three(const fs::path& path, const std::string& text) {
  write_folder(path, [&](const fs::path& temporary) {
    put_text(temporary / "config.json", text);
    fs::create_directory(temporary / "state");
    put_text(temporary / "state/optimizer", text);
    write_file(temporary / "weights", text);
  });
}

void expect_three(const fs::path& path, const std::string& text) {
  EXPECT_EQ(names_in(path), (Names{"config.json", "state", "weights"}));
  EXPECT_EQ(names_in(path / "state"), Names{"optimizer"});
  for (const char* name : {"config.json", "state/optimizer", "weights"}) {
    EXPECT_TRUE(text_of(path / name) == text) << name;
  }
}

TEST(WriteFolder, MakesAndReplaces) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "above/model";
  write_three(path, "first");
  expect_three(path, "first");
  put_text(path / "more", "of the first alone");
  write_three(path / "", "second");  // a last slash means the same
  expect_three(path, "second");
  EXPECT_EQ(names_in(folder.path() / "above"), Names{"model"});
}

TEST(WriteFolder, FollowsLinks) {
  const TemporaryFolder folder;
  write_three(folder.path() / "disk/real", "old");
  fs::create_directory_symlink("disk/real", folder.path() / "link");
  write_three(folder.path() / "link", "new");
  expect_three(folder.path() / "disk/real", "new");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
}

TEST(WriteFolder, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "a").string();
  put_text(path, "x");
  EXPECT_EQ(
      error_of([&] { write_three(path, "y"); }),
      "cannot write " + path + ": expected a folder or nothing there, got a file of another kind");
  EXPECT_EQ(text_of(path), "x");
  EXPECT_EQ(error_of([&] { write_three(path + "/b", "y"); }),
            "cannot make " + path + ": Not a directory");
  EXPECT_EQ(error_of([] { write_three("", "y"); }), "cannot write a folder without a name");
}

TEST(WriteFolder, AFailureOfFillLeavesTheOldFolderAlone) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "model";
  write_three(path, "old");
  EXPECT_EQ(error_of([&] {
              write_folder(path, [](const fs::path& temporary) {
                put_text(temporary / "weights", "half");
                throw Error("no more");
              });
            }),
            "no more");
  expect_three(path, "old");
  EXPECT_EQ(names_in(folder.path()), Names{"model"});
}

// Whatever fails, and whenever: one error, the old folder, nothing beside it.
TEST(WriteFolder, AFailureOfTheDiskLeavesTheOldFolderAlone) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "model";
  for (const bool exists : {true, false}) {
    for (const char* operation : {"write", "fsync", "exchange", "rename"}) {
      int failures = 0;
      for (int turn = 1;; ++turn) {
        if (exists && !fs::exists(path)) write_three(path, "old");
        bool failed = false;
        {
          const FaultScope fault(operation, ENOSPC, turn);
          try {
            write_three(path, "new");
          } catch (const Error& error) {
            failed = true;
            EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos);
          }
        }
        if (!failed) break;  // so many operations there are not
        ++failures;
        EXPECT_EQ(names_in(folder.path()), exists ? Names{"model"} : Names{}) << operation << turn;
        if (exists) expect_three(path, "old");
      }
      // One write; fsync of 3 files, 2 folders, the folder above twice, and weights by its writer;
      // exchanges of weights and the folder; a rename where nothing can be exchanged.
      EXPECT_GE(failures, std::string(operation) == "fsync" ? 7 : 1) << operation;
      fs::remove_all(path);
    }
  }
}

TEST(WriteFolder, ReplacesWhereNamesCannotBeExchanged) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "model";
  const FaultScope fault("exchange", EINVAL);
  write_three(path, "first");
  write_three(path, "second");
  expect_three(path, "second");
  EXPECT_EQ(names_in(folder.path()), Names{"model"});
}

TEST(WriteFolder, WithoutExchangeAFailureBringsTheOldFolderBack) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "model";
  write_three(path, "old");
  for (const std::string& failing : {std::string("rename"), std::string("fsync")}) {
    int failures = 0;
    for (int turn = 1;; ++turn) {
      set_file_fault([&, count = 0](std::string_view name, const fs::path&) mutable {
        if (name == "exchange") return EINVAL;
        return name == failing && ++count == turn ? EIO : 0;
      });
      bool failed = false;
      try {
        write_three(path, "new");
      } catch (const Error&) {
        failed = true;
      }
      set_file_fault(nullptr);
      if (!failed) break;
      ++failures;
      expect_three(path, "old");
      EXPECT_EQ(names_in(folder.path()), Names{"model"});
    }
    EXPECT_GE(failures, 3) << failing;
    write_three(path, "old");
  }
}

TEST(WriteFolder, BringsBackAFolderWhoseReplacementWasKilled) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "model";
  write_three(folder.path() / "model.12-3.old.tmp", "old");
  write_three(folder.path() / "model.12-4.tmp", "new");
  EXPECT_THROW(write_folder(path, [](const fs::path&) { throw Error("no more"); }), Error);
  expect_three(path, "old");
  EXPECT_EQ(names_in(folder.path()), Names{"model"});
}

TEST(WriteFolder, R61_AKillLeavesTheOldFolderOrTheNew) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "last";
  const int64_t duration =
      testing::duration_of([&] { write_three(path, std::string(100'000, 'a')); });
  Rng rng(2);
  std::set<char> seen;
  for (int round = 0; round < 30; ++round) {
    char letter = text_of(path / "weights")[0];
    testing::kill_while(
        [&] {
          letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1);
          write_three(path, std::string(100'000, letter));
        },
        rng.below(5 * duration + 2000));
    letter = text_of(path / "weights")[0];
    expect_three(path, std::string(100'000, letter));
    seen.insert(letter);
    ASSERT_LE(names_in(folder.path()).size(), 2u);  // at most one leftover
  }
  EXPECT_GT(seen.size(), 1u);
  write_three(path, "end");
  EXPECT_EQ(names_in(folder.path()), Names{"last"});
}

TEST(RemoveFolder, RemovesAllOfItAndNothingElse) {
  const TemporaryFolder folder;
  write_three(folder.path() / "old", "old");
  write_three(folder.path() / "other", "other");
  EXPECT_FALSE(remove_folder(folder.path() / "old"));
  EXPECT_FALSE(remove_folder(folder.path() / "never"));
  EXPECT_EQ(names_in(folder.path()), Names{"other"});
  expect_three(folder.path() / "other", "other");
}

TEST(RemoveFolder, R61_AKillLeavesAllOfItOrNothing) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "old";
  const auto fill = [&] {
    fs::create_directory(path);
    for (int i = 0; i < 300; ++i) put_text(path / std::to_string(i), "text");
  };
  fill();
  const int64_t duration = testing::duration_of([&] { remove_folder(path); });
  Rng rng(3);
  int gone = 0;
  for (int round = 0; round < 30; ++round) {
    if (!fs::exists(path)) fill();
    testing::kill_while([&] { remove_folder(path); }, rng.below(3 * duration + 2000));
    if (fs::exists(path)) {
      EXPECT_EQ(names_in(path).size(), 300u);
    } else {
      ++gone;
    }
  }
  EXPECT_GT(gone, 0);
  clear_leftovers(path);
  EXPECT_LE(names_in(folder.path()).size(), 1u);
}

}  // namespace
}  // namespace rapt
