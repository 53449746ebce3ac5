// Collects kernels under symbols made from what they do, and compiles them.
#include "compiler/codegen/cpu/CpuModule.h"

#include "compiler/codegen/cpu/Backend.h"
#include "compiler/codegen/cpu/RowCodegen.h"
#include "compiler/codegen/rows/KernelKey.h"

#include "llvm/IR/Module.h"
#include "llvm/Support/ThreadPool.h"

#include <mutex>

using namespace llvm;

namespace hydra::cpu {

std::string CpuModule::add(const RowProgram &program, ArrayRef<Strides> layouts, int64_t grain) {
  Kernel kernel;
  kernel.key = program.key() + "\ngrain " + std::to_string(grain);
  for (const Strides &strides : layouts)
    rows::addNumbers(kernel.key, strides);
  kernel.program = program;
  kernel.layouts.assign(layouts.begin(), layouts.end());
  kernel.grain = grain;
  return rows::insertKernel(kernels, kernel);
}

std::string CpuModule::addCombine(int64_t parts, ArrayRef<int64_t> shape, const Strides &strides,
                                  RowType type) {
  Kernel kernel;
  kernel.key = rows::combineKey(parts, shape, strides, type);
  kernel.parts = parts;
  kernel.shape.assign(shape);
  kernel.layouts = {strides};
  kernel.type = type;
  return rows::insertKernel(kernels, kernel);
}

Expected<std::vector<uint8_t>> CpuModule::compile(const std::string &symbol,
                                                  const Kernel &kernel) const {
  LLVMContext context;
  Module module(symbol, context);
  module.setSourceFileName("");
  if (Error error = prepareModule(module, target))
    return error;
  Type *pointer = PointerType::getUnqual(context), *integer = Type::getInt64Ty(context);
  auto *type =
      FunctionType::get(Type::getVoidTy(context), {pointer, integer, integer}, /*isVarArg=*/false);
  Function *function = Function::Create(type, Function::ExternalLinkage, symbol, module);
  prepareFunction(*function, target);
  if (kernel.parts > 0) {
    emitCombine(function, kernel.parts, kernel.shape, kernel.layouts.front(), kernel.type);
  } else {
    RowSchedule schedule = scheduleRows(kernel.program, kernel.layouts, kernel.grain);
    RowCodegen(function, schedule, kernel.grain).emit();
  }
  if (!files.areKept())
    return compileObject(module, target);
  const std::string key = CodeFiles::keyOf(objectsOf(target), module);
  if (std::optional<CodeFiles::Entry> known = files.read(key))
    return std::move(known->code);
  Expected<std::vector<uint8_t>> object = compileObject(module, target);
  if (object)
    files.write(key, *object);
  return object;
}

std::vector<uint8_t> ObjectCache::find(StringRef key) {
  std::lock_guard guard(lock);
  return objects.lookup(key);
}

void ObjectCache::insert(StringRef key, std::vector<uint8_t> object) {
  std::lock_guard guard(lock);
  bytes += key.size() + object.size();
  if (bytes > kMostBytes) {
    objects.clear();
    bytes = key.size() + object.size();
  }
  objects[key] = std::move(object);
}

Expected<std::vector<uint8_t>> CpuModule::object(const std::string &symbol,
                                                 const Kernel &kernel) const {
  if (!objects)
    return compile(symbol, kernel);
  const std::string key = symbol + ' ' + target.level + ' ' + target.tune +
                          (target.optimised ? " optimised " : " ") + kernel.key;
  if (std::vector<uint8_t> known = objects->find(key); !known.empty())
    return known;
  Expected<std::vector<uint8_t>> compiled = compile(symbol, kernel);
  if (compiled)
    objects->insert(key, *compiled);
  return compiled;
}

Expected<std::vector<uint8_t>> CpuModule::link() const {
  std::vector<std::vector<uint8_t>> linked(kernels.size());
  std::mutex lock;
  Error error = Error::success();
  DefaultThreadPool pool;
  size_t next = 0;
  for (const auto &[symbol, kernel] : kernels)
    pool.async([&, &symbol = symbol, &kernel = kernel, &slot = linked[next++]] {
      Expected<std::vector<uint8_t>> compiled = object(symbol, kernel);
      std::lock_guard guard(lock);
      if (compiled)
        slot = std::move(*compiled);
      else
        error = joinErrors(std::move(error), compiled.takeError());
    });
  pool.wait();
  if (error)
    return error;
  return linkShared(linked);
}

} // namespace hydra::cpu
