// What this CPU can do, and a way to ask for less.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rapt {

// Instruction sets, each with what stands before it. `scalar` stands for the compiler's baseline.
enum class Isa { scalar, sse4, avx2, avx512, avx512_bf16, amx };

std::string_view isa_name(Isa isa);
Isa parse_isa(std::string_view name);   // throws Error (kind usage) that lists the names

Isa detected_isa();                     // the best of this CPU and operating system
Isa active_isa();                       // what the kernels use now

// Restricts every kernel of this process, oneDNN's included, to `isa`. Acts once, and before the
// first kernel runs; throws Error if the CPU lacks it or it is too late.
void restrict_isa(Isa isa);

std::vector<Isa> available_isas();      // from scalar up to detected_isa()
std::string cpu_name();                 // as the system tells it

}  // namespace rapt
