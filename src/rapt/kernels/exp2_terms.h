// The polynomials behind powers of two, for every instruction set: (2^r - 1) / r on [-1/2, 1/2],
// interpolated in the Chebyshev nodes; errors 0.16 and 0.18 ulp.
#pragma once

namespace rapt::kernels {

inline constexpr float kExp2Single[] = {0.693147182f,   0.240226507f,   0.0555035695f,
                                        0.00961808302f, 0.00133908633f, 0.000154531634f};
inline constexpr double kExp2Double[] = {
    0.6931471805599453,     0.24022650695910097,   0.0555041086648216,     0.009618129107606888,
    0.0013333558146416936,  0.0001540353044173605, 1.5252733829836123e-05, 1.321544258792169e-06,
    1.0178062445844005e-07, 7.072585949269223e-09, 4.454960598443769e-10};

}  // namespace rapt::kernels
