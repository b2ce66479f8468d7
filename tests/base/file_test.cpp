#include "rapt/base/file.h"

#include <sys/stat.h>

#include <cerrno>

#include "rapt/base/random.h"
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

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(MappedFile, ShowsTheBytes) {
  const TemporaryFolder folder;
  const std::string text(100'000, 'x');
  put_text(folder.path() / "a", text + "end");
  const MappedFile file(folder.path() / "a");
  EXPECT_EQ(as_text(file.bytes()), text + "end");
  file.release(50'000);
  file.release(SIZE_MAX);
  EXPECT_EQ(as_text(file.bytes()), text + "end");
}

TEST(MappedFile, OfNothingIsEmpty) {
  const TemporaryFolder folder;
  put_text(folder.path() / "a", "");
  const MappedFile file(folder.path() / "a");
  EXPECT_TRUE(file.bytes().empty());
  file.release(10);
}

TEST(MappedFile, KeepsWhatWasReplaced) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a", "old");
  const MappedFile file(folder.path() / "a");
  write_file(folder.path() / "a", "new");
  EXPECT_EQ(as_text(file.bytes()), "old");
}

TEST(MappedFile, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  EXPECT_EQ(error_of([&] { MappedFile file(folder.path() / "none"); }),
            "cannot read " + path + "/none: No such file or directory");
  EXPECT_EQ(error_of([&] { MappedFile file(folder.path()); }),
            "cannot read " + path + ": Is a directory");
  EXPECT_EQ(error_of([&] { MappedFile file("/dev/null"); }),
            "cannot map /dev/null: expected a file, got a pipe or a device");
}

TEST(ReadFile, ReadsEverySize) {
  const TemporaryFolder folder;
  for (const size_t size : {0, 1, 4096, 262'144, 262'145, 3'000'000}) {
    std::string text(size, 'a');
    if (size > 0) text.back() = '\0';
    put_text(folder.path() / "a", text);
    EXPECT_EQ(read_file(folder.path() / "a"), text);
  }
}

TEST(ReadFile, ReadsWhatTellsNoSize) {
  EXPECT_NE(read_file("/proc/self/status").find("Name:"), std::string::npos);
  EXPECT_EQ(read_file("/dev/null"), "");
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  const pid_t child = fork();
  if (child == 0) {
    put_text(folder.path() / "pipe", std::string(300'000, 'p'));
    _exit(0);
  }
  EXPECT_EQ(read_file(folder.path() / "pipe"), std::string(300'000, 'p'));
  waitpid(child, nullptr, 0);
}

TEST(ReadFile, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "a").string();
  EXPECT_EQ(error_of([&] { read_file(path); }),
            "cannot read " + path + ": No such file or directory");
  EXPECT_EQ(error_of([&] { read_file(folder.path()); }),
            "cannot read " + folder.path().string() + ": Is a directory");
  put_text(path, "12345");
  EXPECT_EQ(read_file(path, 5), "12345");
  EXPECT_EQ(error_of([&] { read_file(path, 4); }),
            "cannot read " + path + ": expected at most 4 bytes, it has more");
  EXPECT_EQ(error_of([&] { read_file("/dev/zero", 1 << 20); }),
            "cannot read /dev/zero: expected at most 1048576 bytes, it has more");
  const FaultScope fault("read", EIO);
  EXPECT_EQ(error_of([&] { read_file(path); }), "cannot read " + path + ": Input/output error");
}

TEST(ReadFile, R50_AFileThatIsCutWhileItIsReadIsAnError) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a";
  for (const int64_t left : {0, 1, 4096, 99'999}) {
    put_text(path, std::string(100'000, 'x'));
    set_file_fault([&](std::string_view, const fs::path&) {
      fs::resize_file(path, static_cast<uintmax_t>(left));  // opened by now, and not yet read
      return 0;
    });
    EXPECT_EQ(error_of([&] { read_file(path); }), "cannot read " + path.string() +
                                                      ": it had 100000 bytes and was cut to " +
                                                      std::to_string(left) + " while it was read");
    set_file_fault(nullptr);
  }
}

TEST(WriteFile, MakesAndReplaces) {
  const TemporaryFolder folder;
  for (const size_t size : {0, 5, 262'144, 262'145, 3'000'000}) {
    const std::string text(size, 'z');
    write_file(folder.path() / "a", text);
    EXPECT_TRUE(text_of(folder.path() / "a") == text) << size;
  }
  EXPECT_EQ(names_in(folder.path()), Names{"a"});
}

TEST(AtomicFile, ShowsNothingBeforeCommit) {
  const TemporaryFolder folder;
  put_text(folder.path() / "a", "old");
  {
    AtomicFile file(folder.path() / "a");
    file.write("new ");
    file.write(std::string(500'000, 'x'));
    file.write(std::as_bytes(std::span("end", 3)));
    EXPECT_EQ(text_of(folder.path() / "a"), "old");
    file.commit();
    EXPECT_EQ(text_of(folder.path() / "a"), "new " + std::string(500'000, 'x') + "end");
    EXPECT_NE(error_of([&] { file.write("x"); }).find("the writer is closed"), std::string::npos);
    EXPECT_NE(error_of([&] { file.commit(); }).find("the writer is closed"), std::string::npos);
  }
  {
    AtomicFile file(folder.path() / "b");
    file.write("half");
  }
  EXPECT_EQ(names_in(folder.path()), Names{"a"});
}

TEST(AtomicFile, FollowsLinksAndKeepsPermissions) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "there");
  put_text(folder.path() / "there/real", "old");
  fs::permissions(folder.path() / "there/real", fs::perms(0640));
  fs::create_symlink("there/real", folder.path() / "link");
  write_file(folder.path() / "link", "new");
  EXPECT_EQ(text_of(folder.path() / "there/real"), "new");
  EXPECT_EQ(fs::status(folder.path() / "there/real").permissions(), fs::perms(0640));
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_EQ(names_in(folder.path() / "there"), Names{"real"});
}

TEST(AtomicFile, TakesNamesWithoutAFolder) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  write_file("a", "1");
  write_file("./b", "2");
  fs::current_path(before);
  EXPECT_EQ(text_of(folder.path() / "a") + text_of(folder.path() / "b"), "12");
}

TEST(AtomicFile, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  EXPECT_EQ(error_of([&] { write_file(folder.path() / "none/a", "x"); }),
            "cannot write " + path + "/none/a: No such file or directory");
  EXPECT_EQ(error_of([&] { write_file(folder.path(), "x"); }),
            "cannot write " + path + ": expected a file or nothing there, got a folder");
  EXPECT_EQ(error_of([&] { write_file("/dev/null", "x"); }),
            "cannot write /dev/null: expected a file or nothing there, got a file of another kind");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_NE(error_of([&] { write_file("", "x"); }), "");
}

// A full disk, a disk that fails at the end, at the exchange, and after it: one error, the old
// file, nothing beside it.
TEST(AtomicFile, AFailureLeavesTheOldFileAlone) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a";
  const std::string big(600'000, 'x');
  const auto write_fails = [&](const std::string& operation, int code, int turn) {
    const FaultScope fault(operation, code, turn);
    return error_of([&] { write_file(path, big); });
  };
  for (const bool exists : {true, false}) {
    if (exists) put_text(path, "old");
    const auto expect_as_before = [&] {
      EXPECT_EQ(names_in(folder.path()), exists ? Names{"a"} : Names{});
      EXPECT_EQ(text_of(path), exists ? "old" : "");
    };
    EXPECT_EQ(write_fails("write", ENOSPC, 1),
              "cannot write " + path.string() + ": No space left on device");
    expect_as_before();
    EXPECT_EQ(write_fails("fsync", EIO, 1),
              "cannot bring to the disk " + path.string() + ": Input/output error");
    expect_as_before();
    EXPECT_EQ(write_fails("exchange", EACCES, 1),
              "cannot put in place " + path.string() + ": Permission denied");
    expect_as_before();
    EXPECT_EQ(write_fails("fsync", EIO, 2),  // of the folder
              "cannot bring to the disk " + folder.path().string() + ": Input/output error");
    expect_as_before();
    fs::remove(path);
  }
}

TEST(AtomicFile, ReplacesWhereNamesCannotBeExchanged) {
  const TemporaryFolder folder;
  const FaultScope fault("exchange", EINVAL);
  for (const char* text : {"first", "second"}) {
    write_file(folder.path() / "a", text);
    EXPECT_EQ(text_of(folder.path() / "a"), text);
  }
  EXPECT_EQ(names_in(folder.path()), Names{"a"});
}

TEST(AtomicFile, ClearsTheLeftoversOfItsOwnNameAlone) {
  const TemporaryFolder folder;
  for (const char* name : {"a.123-4.tmp", "ab.123-4.tmp", "a.tmp", "a.b-4.tmp", "a.12-3", "b"}) {
    put_text(folder.path() / name, "x");
  }
  {
    AtomicFile first(folder.path() / "a");
    first.write("first");
    write_file(folder.path() / "a", "second");  // must not take the first's for a leftover
    EXPECT_EQ(text_of(folder.path() / "a"), "second");
    first.commit();
  }
  EXPECT_EQ(text_of(folder.path() / "a"), "first");
  EXPECT_EQ(names_in(folder.path()),
            (Names{"a", "ab.123-4.tmp", "a.tmp", "a.b-4.tmp", "a.12-3", "b"}));
}

TEST(AtomicFile, R61_AKillLeavesTheOldFileOrTheNew) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "last";
  const int64_t duration =
      testing::duration_of([&] { write_file(path, std::string(200'000, 'a')); });
  Rng rng(1);
  std::set<char> seen;
  for (int round = 0; round < 30; ++round) {
    char letter = text_of(path)[0];
    testing::kill_while(
        [&] {
          letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1);
          AtomicFile file(path);
          for (int part = 0; part < 4; ++part) file.write(std::string(50'000, letter));
          file.commit();
        },
        rng.below(5 * duration + 2000));
    const std::string text = text_of(path);
    ASSERT_EQ(text.size(), 200'000u);
    ASSERT_TRUE(text == std::string(200'000, text[0]));
    seen.insert(text[0]);
    ASSERT_LE(names_in(folder.path()).size(), 2u);  // at most one leftover
  }
  EXPECT_GT(seen.size(), 1u);
  write_file(path, "end");
  EXPECT_EQ(names_in(folder.path()), Names{"last"});
}

}  // namespace
}  // namespace rapt
