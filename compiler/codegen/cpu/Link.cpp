// Links objects to a shared object with lld, in this process.
#include "compiler/codegen/cpu/Backend.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace hydra::cpu {

static Error writeFile(StringRef path, ArrayRef<uint8_t> bytes) {
  std::error_code error;
  raw_fd_ostream os(path, error);
  if (!error) {
    os.write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    os.close();
    error = os.error();
    os.clear_error();
  }
  return error ? createStringError(error, "cannot write " + path + ": " + error.message())
               : Error::success();
}

Expected<std::vector<uint8_t>> linkShared(ArrayRef<std::vector<uint8_t>> objects) {
  // lld reads and writes files. Neither their names nor the directory are seen in the result.
  SmallString<128> directory;
  if (std::error_code error = sys::fs::createUniqueDirectory("hydra", directory))
    return createStringError(error, "cannot make a temporary directory: " + error.message());
  auto remove = scope_exit([&] { sys::fs::remove_directories(directory); });

  std::string output = (directory + "/kernels.so").str();
  std::vector<std::string> arguments = {"ld.lld",    "-shared",           "-s",
                                        "--build-id=none", "-z",          "noseparate-code",
                                        "--no-undefined",  "--threads=1", "-o",
                                        output};
  for (auto [i, object] : enumerate(objects)) {
    arguments.push_back((directory + "/" + Twine(i) + ".o").str());
    if (Error error = writeFile(arguments.back(), object))
      return error;
  }
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());

  static std::mutex one; // lld has one context in a process
  std::string messages;
  raw_string_ostream os(messages);
  {
    std::lock_guard lock(one);
    lld::Result result = lld::lldMain(pointers, os, os, {{lld::Gnu, &lld::elf::link}});
    if (result.retCode != 0)
      return createStringError("cannot link generated code: " + StringRef(messages).trim());
  }
  auto file = MemoryBuffer::getFile(output);
  if (!file)
    return createStringError(file.getError(), "cannot read " + output);
  return std::vector<uint8_t>((*file)->getBufferStart(), (*file)->getBufferEnd());
}

} // namespace hydra::cpu
