// Plans one after the other, each on executors of its own.
#include "tools/hydra-run/Calibrate.h"

#include "runtime/cpu/CpuExecutor.h"
#include "runtime/cuda/CudaExecutor.h"
#include "runtime/plan/Mesh.h"
#include "runtime/report/TargetTexts.h"
#include "runtime/run/Calibration.h"
#include "runtime/run/StandardOutput.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/NamedFiles.h"
#include "runtime/support/Shown.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>

namespace hydra {

using support::fail;

namespace {

constexpr int kRepeats = 5;

/// The built-in description of that name, or the file.
std::string descriptionOf(const std::string &name) {
  for (const report::TargetText &target : report::targetTexts())
    if (name == target.name)
      return target.text;
  if (std::error_code code; !name.ends_with(".json") || !std::filesystem::exists(name, code)) {
    std::vector<std::string> names;
    for (const report::TargetText &target : report::targetTexts())
      names.emplace_back(target.name);
    fail("--target-base: '{}' is neither a target ({}) nor a FILE.json that can be read",
         support::shown(name), fmt::join(names, ", "));
  }
  const support::InputFile file(name);
  const std::vector<std::byte> bytes = file.readAll();
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

std::unique_ptr<runtime::Executor> makeExecutor(const RunOptions &options,
                                                const runtime::PlanFile &file, bool alone) {
  if (file.plan().target()->kind() == planfile::TargetKind::cpu)
    return std::make_unique<runtime::CpuExecutor>(file,
                                                  runtime::CpuOptions{.threads = options.threads});
  const size_t number = options.device.find(':');
  return runtime::makeCudaExecutor(
      file,
      {.device = number == std::string::npos ? 0 : std::stoi(options.device.substr(number + 1)),
       .profile = alone,
       .oneStream = alone,
       .threads = options.threads});
}

/// What runs the plan: a processor or a GPU, its threads or driver.
std::string machineText(const runtime::Executor &executor) {
  std::string text;
  for (const auto &[name, value] : executor.describe())
    if (name == "device" || name == "driver" || name == "threads")
      text += fmt::format("{}{}{}", text.empty() ? "" : ", ", name == "device" ? "" : name + " ",
                          value);
  return text;
}

} // namespace

void calibrate(const RunOptions &options) {
  std::vector<std::string> paths = {options.plan};
  std::ranges::copy_if(options.calibrationPlans, std::back_inserter(paths),
                       [](const std::string &path) { return !path.empty(); }); // of the flag alone
  std::vector<support::NamedFile> inputs = {{"--target-base", options.targetBase}};
  for (const std::string &path : paths)
    inputs.push_back({"--calibrate", path});
  support::checkOutputs(inputs, {{"-o", options.output}});
  std::vector<runtime::PlanFile> files;
  for (const std::string &path : paths) {
    files.push_back(runtime::PlanFile::read(path));
    const planfile::Target &first = *files.front().plan().target(),
                           &target = *files.back().plan().target();
    if (runtime::ranksOf(files.back().plan()) > 1)
      fail("--calibrate: {} is for several ranks; expected a plan for one", path);
    if (target.name()->string_view() != first.name()->string_view())
      fail("--calibrate: {} is for {}, but {} for {}", path,
           support::shown(target.name()->string_view()), paths.front(),
           support::shown(first.name()->string_view()));
  }
  const std::string base = options.targetBase.empty() ? files.front().plan().target()->name()->str()
                                                      : options.targetBase;
  const std::string description = descriptionOf(base);
  runtime::withMeasured(description, {}, base); // throws before anything is measured
  runtime::Calibration calibration;
  std::string about;
  const auto make = [&](const runtime::PlanFile &file, bool alone) {
    std::unique_ptr<runtime::Executor> executor = makeExecutor(options, file, alone);
    about = machineText(*executor);
    return executor;
  };
  for (const runtime::PlanFile &file : files) {
    std::fprintf(stderr, "hydra-run: measuring %s\n", file.origin().c_str());
    calibration.add(file, make, kRepeats);
  }
  const report::MeasuredRates rates = calibration.rates(about);
  const std::string text = runtime::withMeasured(description, rates, base);
  support::AtomicFile file(options.output);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  runtime::print(calibration.text(rates));
}

} // namespace hydra
