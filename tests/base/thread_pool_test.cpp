#include "rapt/base/thread_pool.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <memory>
#include <thread>

#include "rapt/base/cpu_quota.h"
#include "tests/testing/testing.h"

namespace rapt {
namespace {

using testing::error_of;

// Two chunks that wait for each other: false if the pool has no worker to take the second.
bool two_threads_work(ThreadPool& pool) {
  std::atomic<int> arrived{0};
  pool.run(2, [&](int64_t) {
    ++arrived;
    for (int i = 0; i < 10'000 && arrived < 2; ++i) usleep(1000);
  });
  return arrived == 2;
}

// The exit status of a forked child that runs `body`; -1 if it did not end by itself.
template <class Body>
int status_of_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int threads_of_this_process() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int count = 0;
    if (word == "Threads:" && status >> count) return count;
  }
  return -1;
}

TEST(ThreadPool, OfOneHasNoWorkers) {
  const int before = threads_of_this_process();
  ThreadPool one(1);
  EXPECT_EQ(threads_of_this_process(), before);
  ThreadPool three(3);
  EXPECT_EQ(threads_of_this_process(), before + 2);
}

TEST(ThreadPool, RefusesToBeEmpty) {
  EXPECT_EQ(error_of([] { ThreadPool pool(0); }), "thread pool: expected at least 1 thread, got 0");
}

TEST(ThreadPool, WorkersLeaveSignalsToTheProgram) {
  ThreadPool pool(2);
  const pid_t caller = gettid();
  std::atomic<int> arrived{0}, blocked{0};
  pool.run(2, [&](int64_t) {
    ++arrived;
    while (arrived < 2) usleep(100);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    if (gettid() != caller) blocked = sigismember(&mask, SIGINT) + 2 * sigismember(&mask, SIGSEGV);
  });
  EXPECT_EQ(blocked, 1);
}

TEST(ThreadPool, AForkedChildGetsItsOwnWorkers) {
  ThreadPool pool(3);
  EXPECT_TRUE(two_threads_work(pool));
  EXPECT_EQ(status_of_child([&] { return two_threads_work(pool) && two_threads_work(pool); }), 0);
  EXPECT_TRUE(two_threads_work(pool));
}

TEST(ThreadPool, AForkedChildMayNeverUseThePool) {
  auto pool = std::make_unique<ThreadPool>(3);
  EXPECT_EQ(status_of_child([&] {
              pool.reset();
              return true;
            }),
            0);
}

TEST(ThreadPool, AGrandchildGetsItsOwnWorkers) {
  ThreadPool pool(2);
  EXPECT_EQ(status_of_child([&] {
              return two_threads_work(pool) &&
                     status_of_child([&] { return two_threads_work(pool); }) == 0;
            }),
            0);
}

TEST(ThreadPool, AChildWorksThoughAnotherThreadWasInsideRun) {
  ThreadPool pool(3);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) pool.run(64, [](int64_t) { usleep(10); });
  });
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(status_of_child([&] { return two_threads_work(pool); }), 0);
  }
  stop = true;
  other.join();
}

TEST(ThreadPool, SeveralThreadsOfAChildMayComeFirst) {
  ThreadPool pool(2);
  const auto use_from_three_threads = [&] {
    std::atomic<int64_t> sum{0};
    const auto use = [&] { pool.run(100, [&](int64_t chunk) { sum += chunk; }); };
    std::thread a(use), b(use);
    use();
    a.join();
    b.join();
    return sum == 3 * 4950 && two_threads_work(pool);
  };
  for (int round = 0; round < 10; ++round) EXPECT_EQ(status_of_child(use_from_three_threads), 0);
}

TEST(AvailableCores, FollowTheAffinity) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(available_cores(), 1);
  sched_setaffinity(0, sizeof before, &before);
}

// A file system as a process in a control group sees it.
class ControlGroups {
 public:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  double quota() const { return cpu_quota(folder_.path()); }

 private:
  testing::TemporaryFolder folder_;
};

constexpr const char* kMountOfV2 =
    "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(CpuQuota, ReadsVersion2OfTheGroupAndThoseAbove) {
  ControlGroups system;
  system.write("proc/self/mountinfo", kMountOfV2);
  system.write("proc/self/cgroup", "0::/jobs.slice/train\n");
  EXPECT_EQ(system.quota(), INFINITY);
  system.write("sys/fs/cgroup/jobs.slice/train/cpu.max", "max 100000\n");
  EXPECT_EQ(system.quota(), INFINITY);
  system.write("sys/fs/cgroup/jobs.slice/train/cpu.max", "350000 100000\n");
  EXPECT_EQ(system.quota(), 3.5);
  system.write("sys/fs/cgroup/jobs.slice/cpu.max", "100000 50000\n");
  EXPECT_EQ(system.quota(), 2);
}

TEST(CpuQuota, ReadsVersion2InAContainer) {
  ControlGroups system;
  system.write("proc/self/mountinfo", kMountOfV2);
  system.write("proc/self/cgroup", "0::/\n");
  system.write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(system.quota(), 1.5);
}

TEST(CpuQuota, ReadsVersion1) {
  ControlGroups system;
  system.write("proc/self/mountinfo",
               "32 31 0:28 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
               "33 31 0:29 /docker/12ab /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  system.write("proc/self/cgroup", "4:cpuset:/docker/12ab\n3:cpu,cpuacct:/docker/12ab\n0::/\n");
  system.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  system.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(system.quota(), INFINITY);
  system.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(system.quota(), 2);
}

TEST(CpuQuota, IsInfiniteWithoutControlGroups) {
  ControlGroups system;
  EXPECT_EQ(system.quota(), INFINITY);
  system.write("proc/self/mountinfo", "broken\n\n30 22 0:26 / /sys/fs/cgroup rw -\n");
  system.write("proc/self/cgroup", "broken\n0:\n");
  EXPECT_EQ(system.quota(), INFINITY);
}

}  // namespace
}  // namespace rapt
