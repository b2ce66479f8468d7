// What this CPU can do, and a way to ask for less.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rapt {

// Instruction sets, each with what stands before it. `scalar` stands for the compiler's baseline;
// `avx512` includes the parts F, CD, BW, DQ and VL, `avx512_bf16` also VNNI, `amx` tiles for bf16
// and int8.
enum class Isa { scalar, sse4, avx2, avx512, avx512_bf16, amx };

std::string_view isa_name(Isa isa);
Isa parse_isa(std::string_view name);  // throws Error (kind usage) that lists the names

// The best of this CPU and operating system. Asks Linux for the use of tiles where there are any.
Isa detected_isa();

// What the kernels of this process use. Whoever asks may build on the answer: from the first call
// on it is final. Code that calls a library with a dispatch of its own (oneDNN) holds it to this.
Isa active_isa();

// Restricts every kernel of this process to `isa`. Acts once, and before the first kernel runs;
// throws Error if the CPU lacks it (kind usage) or it is too late.
void restrict_isa(Isa isa);

std::vector<Isa> available_isas();  // from scalar up to detected_isa()
std::string cpu_name();             // as the system tells it

}  // namespace rapt
