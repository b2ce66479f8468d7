// The kernels as plain loops, for float and double: what the tests hold the fast ones against, and
// what the double overloads run. Arguments are those of the kernels' own headers; these functions
// are in rapt::kernels::reference and start no threads.
#pragma once

#include "rapt/kernels/reference_attention.h"
#include "rapt/kernels/reference_elementwise.h"
#include "rapt/kernels/reference_matmul.h"
#include "rapt/kernels/reference_optimizer.h"
#include "rapt/kernels/reference_rows.h"
#include "rapt/kernels/reference_softmax.h"
