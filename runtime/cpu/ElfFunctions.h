// What a shared object defines, without loading it: loading runs its constructors.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>

namespace hydra::runtime {

/// Names of the functions that a shared object for x86-64 exports. Nothing in it is believed.
/// Throws Error, which `name` begins, for anything else or a damaged one. What the system's loader
/// would find wrong beyond that, such as symbols that nobody defines, is not looked for.
std::set<std::string, std::less<>> exportedFunctions(std::span<const std::byte> object,
                                                     const std::string &name);

} // namespace hydra::runtime
