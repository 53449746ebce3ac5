// Loops that are compiled for each level of x86-64, of which the best that this CPU has runs.
#pragma once

namespace hydra::support {

namespace cpulevel {

template <auto Body, typename... Args> [[gnu::target("arch=x86-64-v4")]] void onV4(Args... args) {
  Body(args...);
}
template <auto Body, typename... Args> [[gnu::target("arch=x86-64-v3")]] void onV3(Args... args) {
  Body(args...);
}

} // namespace cpulevel

/// Calls Body, a function that is always inlined ([[gnu::always_inline]]) and of internal linkage:
/// otherwise the linker may take code of one level for another. Levels must give the same bits, so
/// Body's file says `#pragma STDC FP_CONTRACT OFF`: no multiply-add is fused where a level has
/// them.
template <auto Body, typename... Args> void forCpuLevel(Args... args) {
  using Function = void (*)(Args...);
  static const Function best = __builtin_cpu_supports("x86-64-v4")   ? cpulevel::onV4<Body, Args...>
                               : __builtin_cpu_supports("x86-64-v3") ? cpulevel::onV3<Body, Args...>
                                                                     : Function(Body);
  best(args...);
}

} // namespace hydra::support
