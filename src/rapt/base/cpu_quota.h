// The share of the CPUs that the process's control group may use.
#pragma once

#include <filesystem>

namespace rapt {

// Cores of CPU time a second that the control group of this process allows, by cgroup v2 (cpu.max)
// or v1 (cpu.cfs_quota_us), the least of the group and those above it; infinity without a quota.
// Reads proc and the control groups below `root`. A file that is missing or unreadable means no
// quota.
double cpu_quota(const std::filesystem::path& root = "/");

}  // namespace rapt
