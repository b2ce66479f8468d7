// Terms of the functions whose results are rounded to bf16, for every instruction set: minimax fits
// made for this file.
#pragma once

namespace rapt::kernels {

inline constexpr float kLog2E = 1.44269504f;

// 2^r on [-1/2, 1/2], from the constant term on: relative error 3e-6.
inline constexpr float kRoughExp2[] = {0.9999992612f, 0.6931218081f, 0.2402474495f, 0.0559179157f,
                                       0.009570118935f};

// The normal distribution's tail beyond z, times exp(z^2 / 2): t times a polynomial in t = 1 / (1 +
// rate z), relative error 6e-5.
inline constexpr float kRoughTailRate = 0.25f;
inline constexpr float kRoughTail[] = {0.1012656498f, 0.08118518545f, 0.1785226827f, -0.1016913293f,
                                       0.2406926377f};
inline constexpr float kRoughHalfSquare = -0.721347520f;  // -log2(e) / 2
inline constexpr float kNormalDensity = 0.398942280f;     // 1 / sqrt(2 pi)

// (1 + tanh u) / 2 is the logistic function of 2 u; in gelu's tanh form 2 u = x (A + B x^2).
inline constexpr float kGeluTanhA = 1.595769122f, kGeluTanhB = 0.0713548163f;

}  // namespace rapt::kernels
