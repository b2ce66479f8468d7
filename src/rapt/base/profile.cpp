#include "rapt/base/profile.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace rapt {
namespace {

std::atomic<bool> active{false};

struct Totals {
  int64_t calls = 0, nanoseconds = 0;
  double flops = 0, bytes = 0;

  Totals& operator+=(const Totals& more) {
    calls += more.calls;
    nanoseconds += more.nanoseconds;
    flops += more.flops;
    bytes += more.bytes;
    return *this;
  }
};

using NamedTotals = std::map<std::string_view, Totals>;

// The counters of one thread. Its mutex is free but for the moments when somebody reads them all.
struct Table {
  std::mutex mutex;
  std::unordered_map<const char*, Totals> rows;
};

// All threads that have counted. Lives until the process ends, since threads may outlast globals.
struct Registry {
  std::mutex mutex;
  std::vector<Table*> tables;
  NamedTotals ended;  // of threads that are no more
};

Registry& registry() {
  static Registry* const only = [] {
    pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                   [] { registry().mutex.unlock(); });
    return new Registry;
  }();
  return *only;
}

void add_rows(const Table& table, NamedTotals& sums) {
  for (const auto& [name, totals] : table.rows) {
    if (totals.calls > 0) sums[name] += totals;
  }
}

// A thread's table, known to the registry while the thread lives.
struct OwnTable {
  OwnTable() {
    const std::lock_guard lock(registry().mutex);
    registry().tables.push_back(&table);
  }
  ~OwnTable() {
    const std::lock_guard lock(registry().mutex);
    std::erase(registry().tables, &table);
    add_rows(table, registry().ended);
  }
  Table table;
};

Table& own_table() {
  thread_local OwnTable own;
  return own.table;
}

int64_t now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace

void set_profiling(bool on) { active.store(on, std::memory_order_relaxed); }
bool profiling() { return active.load(std::memory_order_relaxed); }

void reset_profile() {
  const std::lock_guard lock(registry().mutex);
  registry().ended.clear();
  for (Table* table : registry().tables) {
    const std::lock_guard table_lock(table->mutex);
    for (auto& [name, totals] : table->rows) totals = {};  // rows stay: a scope may be open on one
  }
}

std::vector<ProfileRow> profile_rows() {
  NamedTotals sums;
  {
    const std::lock_guard lock(registry().mutex);
    sums = registry().ended;
    for (Table* table : registry().tables) {
      const std::lock_guard table_lock(table->mutex);
      add_rows(*table, sums);
    }
  }
  std::vector<ProfileRow> rows;
  for (const auto& [name, totals] : sums) {
    const double seconds = static_cast<double>(totals.nanoseconds) * 1e-9;
    rows.push_back({std::string(name), totals.calls, seconds, totals.flops, totals.bytes});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  return rows;
}

ProfileScope::ProfileScope(const char* name, double flops, double bytes) {
  if (!profiling()) return;
  Table& table = own_table();
  {
    const std::lock_guard lock(table.mutex);
    table.rows.try_emplace(name);  // here, since the destructor must not fail
  }
  name_ = name;
  flops_ = flops;
  bytes_ = bytes;
  start_ = now();
}

ProfileScope::~ProfileScope() {
  if (name_ == nullptr) return;
  const int64_t end = now();
  Table& table = own_table();
  const std::lock_guard lock(table.mutex);
  table.rows.find(name_)->second += {1, end - start_, flops_, bytes_};
}

}  // namespace rapt
