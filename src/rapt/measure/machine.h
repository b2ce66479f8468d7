// What this machine can do at most, measured now, in a few seconds.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rapt::measure {

// Multiplications and additions a second in f32 (a multiply-add is two) of `threads` threads on
// registers; those beyond the cores that this process may use add nothing. Throws Error if
// threads < 1.
double f32_peak(int threads);
// The same of bf16 numbers by the fastest instructions that there are for them; f32's without any.
double bf16_peak(int threads);
// The same of int8 numbers.
double int8_peak(int threads);

// Rates are those of the better ones among short runs: a neighbour may disturb some.
struct MachineReport {
  int threads = 0;

  // Operations a second on registers by type, of those that the active instruction set has: f32,
  // bf16, amx_bf16, int8, amx_int8.
  std::vector<std::pair<std::string, double>> peaks;

  // Bytes a second through an array of 256 MiB, which is more than a core's caches hold.
  double read = 0;    // bytes read
  double copy = 0;    // bytes read and bytes written; what the stores fetch is not counted
  double update = 0;  // bytes read and written in place

  // Bytes a second of memory fresh from the system, written to once a page.
  double touch_small = 0;              // pages of 4 KiB
  std::optional<double> touch_huge{};  // huge pages, where the system gives any
};

// For 1 thread and, if there are more, for all of the current Runtime. What it allocates is given
// back to the system. Throws Error (memory) when there is no memory for it.
std::vector<MachineReport> measure_machine();

}  // namespace rapt::measure
