// Counters of where the time goes: one row a name, added up over calls and threads. Off by default;
// an inactive scope costs one load.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rapt {

struct ProfileRow {
  std::string name;
  int64_t calls = 0;
  double seconds = 0;
  double flops = 0;  // multiply and add counted as two
  double bytes = 0;  // read and written
};

void set_profiling(bool on);
bool profiling();
void reset_profile();
std::vector<ProfileRow> profile_rows();  // by falling time; of scopes that have ended

// Times the enclosing block under `name`, which must outlive the program (a literal); what it
// encloses is counted in it as well. The numbers of operations and bytes are those of this one
// call.
class ProfileScope {
 public:
  explicit ProfileScope(const char* name, double flops = 0, double bytes = 0);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  const char* name_ = nullptr;
  double flops_ = 0, bytes_ = 0;
  int64_t start_ = 0;
};

}  // namespace rapt
