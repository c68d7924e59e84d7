// LibTorch without its own threads: what a sequence's numbers are must not depend on how many processors there are.
#pragma once

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

namespace noether::evaluation {

/// From here on each operation of this process runs on the thread that calls it.
inline void stop_torch_threads() { at::set_num_threads(1); }

/// What a thread that works with tensors has as long as it does: the setting above, which reaches OpenMP thread by
/// thread, and no gradients.
class TensorThread {
public:
  TensorThread() { at::init_num_threads(); }

private:
  c10::InferenceMode inference_;
};

} // namespace noether::evaluation
