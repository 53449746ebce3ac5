// run.json: read with suspicion, written whole.
#include "tools/hydra-run/RunDirectory.h"

#include "runtime/run/TensorValues.h"
#include "runtime/run/TextSource.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/GitRevision.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/Shown.h"
#include "runtime/support/ZeroByte.h"
#include "runtime/text/Utf8.h"
#include "tools/hydra-run/Options.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <span>

using namespace hydra;
using nlohmann::ordered_json;
using support::fail;
using support::shownPath;
namespace fs = std::filesystem;

namespace {

constexpr int kFormat = 1;

void writeWhole(const fs::path &path, std::span<const std::byte> bytes) {
  support::AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

std::string absolute(const std::string &path) {
  std::error_code code;
  const fs::path whole = fs::absolute(path, code);
  return code ? path : whole.lexically_normal().string();
}

/// `NAME=PATH[,weight=W]`; others are files.
std::string absoluteSource(const std::string &source) {
  const size_t equals = source.find('=');
  return equals == std::string::npos
             ? absolute(source)
             : source.substr(0, equals + 1) + absolute(source.substr(equals + 1));
}

std::string timeText() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

ordered_json machine() {
  utsname names{};
  ::uname(&names);
  return {{"host", names.nodename},
          {"system", fmt::format("{} {} {}", names.sysname, names.release, names.machine)},
          {"processors", ::sysconf(_SC_NPROCESSORS_ONLN)}};
}

/// The texts by their names. Of a name that comes several times, as a flag may, all of them.
ordered_json textsByName(const flatbuffers::Vector<flatbuffers::Offset<planfile::KeyValue>> &all) {
  ordered_json texts = ordered_json::object();
  for (const planfile::KeyValue *one : all) {
    const std::string name = one->key()->str();
    texts[name] =
        (texts.contains(name) ? texts[name].get<std::string>() + ", " : "") + one->value()->str();
  }
  return texts;
}

/// What a run of the program reads, of all ranks together: `tokens [8, 32], labels [8, 32]`.
std::string inputsText(const planfile::Plan &plan, const planfile::Program &program) {
  std::vector<std::string> inputs;
  for (const planfile::Input *input : *program.inputs()) {
    const planfile::Tensor &tensor = *plan.tensors()->Get(input->tensor());
    const runtime::BatchPart part(plan, tensor, input->batch_dimension(), 0);
    inputs.push_back(
        fmt::format("{} [{}]", input->name()->string_view(), fmt::join(part.wholeShape(), ", ")));
  }
  return fmt::format("{}", fmt::join(inputs, ", "));
}

/// The programs of first steps, up to which step each trains and on what.
ordered_json phasesJson(const planfile::Plan &plan) {
  ordered_json phases = ordered_json::object();
  if (plan.phases())
    for (const planfile::TrainingPhase *phase : *plan.phases()) {
      const planfile::Program &program = *plan.programs()->Get(phase->program());
      phases[program.name()->str()] =
          fmt::format("to step {}: {}", phase->last_step(), inputsText(plan, program));
    }
  return phases;
}

ordered_json planJson(const runtime::PlanFile &file) {
  const planfile::Header &header = *file.plan().header();
  const std::span<const std::byte> bytes = file.bytes();
  const auto revision = support::gitRevision(header.model_file()->str());
  const planfile::Program &mainProgram =
      *file.plan().programs()->Get(runtime::mainTrainingProgram(file.plan()).value());
  return {{"hash", fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()))},
          {"version", runtime::kPlanVersion},
          {"producer", header.producer()->str()},
          {"model", header.model()->str()},
          {"model_file", header.model_file()->str()},
          {"model_revision", revision ? ordered_json(*revision) : ordered_json()},
          {"preset", header.preset() ? header.preset()->str() : ""},
          {"precision", header.precision()->str()},
          {"target", file.plan().target()->name()->str()},
          {"inputs", inputsText(file.plan(), mainProgram)},
          {"symbols", textsByName(*header.symbols())},
          {"options", textsByName(*header.options())},
          {"phases", phasesJson(file.plan())}};
}

/// Of run.json nothing is believed.
ordered_json readRun(const fs::path &path) {
  const support::InputFile file(path);
  constexpr uint64_t most = uint64_t{16} << 20;
  ordered_json run;
  if (file.size() <= most) {
    const std::vector<std::byte> bytes = file.readAll();
    const auto *const text = reinterpret_cast<const char *>(bytes.data());
    if (!support::hasZeroByte(bytes))
      run = ordered_json::parse(text, text + bytes.size(), support::JsonGuard(file.name()), false);
  }
  if (!run.is_object() || run.value("format", ordered_json()) != kFormat ||
      !run.contains("arguments") || !run["arguments"].is_array() || !run.contains("starts") ||
      !run["starts"].is_array())
    fail("{}: is not what hydra-run --run writes, format {}", file.name(), kFormat);
  return run;
}

} // namespace

Arguments hydra::withAbsolutePaths(Arguments arguments) {
  constexpr std::array kPaths = {"plan",      "--data",        "--inputs", "--outputs",
                                 "--weights", "--adapter",     "--save",   "--log",
                                 "--csv",     "--tensorboard", "--export"};
  for (auto &[flag, values] : arguments)
    for (std::string &value : values) {
      if (std::ranges::find(kPaths, flag) != kPaths.end())
        value = absolute(value);
      else if (flag == "--mix" || flag == "--eval-data")
        value = absoluteSource(value);
      else if ((flag == "--tokenizer" && !runtime::isTokenKind(value) && fs::exists(value)) ||
               (flag == "--resume" && value != "auto"))
        value = absolute(value);
      if (text::findInvalidUtf8(value) != std::string_view::npos)
        fail("--run: {} is {}, no UTF-8, as a file has to be from which the run can go on", flag,
             shownPath(value));
    }
  return arguments;
}

bool RunDirectory::isRun(const fs::path &directory) {
  std::error_code code;
  return fs::is_regular_file(directory / kFile, code);
}

Arguments RunDirectory::arguments() const {
  const ordered_json run = readRun(path / kFile);
  Arguments arguments;
  for (const ordered_json &entry : run["arguments"]) {
    const bool texts =
        entry.is_array() && !entry.empty() &&
        std::ranges::all_of(entry, [](const auto &word) { return word.is_string(); });
    if (!texts)
      fail("{}: has an argument that is no list of texts", shownPath(path / kFile));
    const auto words = entry.get<std::vector<std::string>>();
    arguments.emplace_back(words[0], std::vector(words.begin() + 1, words.end()));
  }
  return arguments;
}

void RunDirectory::setPaths(RunOptions &options) const {
  options.save = (path / kCheckpoints).string();
  options.log = (path / "log.jsonl").string();
  options.csv = (path / "log.csv").string();
  options.tensorboard = (path / "tensorboard").string();
}

void RunDirectory::check(bool resumes) const {
  if (isRun(path) && !resumes)
    fail("--run: {} holds a run; --resume {} goes on with it", shownPath(path), shownPath(path));
}

void RunDirectory::open(bool resumes) const {
  check(resumes);
  std::error_code code;
  fs::create_directories(path, code);
  if (code || !fs::is_directory(path, code))
    fail("--run: cannot make {}: {}", shownPath(path),
         code ? code.message() : "it is no directory");
}

void RunDirectory::write(const runtime::PlanFile &file, const Start &start) const {
  ordered_json starts = ordered_json::array();
  if (isRun(path))
    starts = readRun(path / kFile)["starts"];
  ordered_json facts = ordered_json::object(), schedules = ordered_json::object();
  for (const auto &[name, value] : start.facts)
    facts[name] = value;
  for (const auto &[name, text] : start.schedules)
    schedules[name] = text;
  const ordered_json plan = planJson(file);
  starts.push_back({{"time", timeText()},
                    {"step", start.step},
                    {"ranks", start.ranks},
                    {"plan_hash", plan["hash"]},
                    {"machine", machine()},
                    {"device", facts}});
  ordered_json arguments = ordered_json::array();
  for (const auto &[flag, values] : withAbsolutePaths(start.options->given)) {
    ordered_json words = {flag};
    for (const std::string &value : values)
      words.push_back(value);
    arguments.push_back(words);
  }
  std::error_code code;
  const ordered_json run = {
      {"format", kFormat},      {"directory", fs::current_path(code).string()},
      {"arguments", arguments}, {"schedules", schedules},
      {"plan", plan},           {"starts", starts}};
  writeWhole(path / kPlan, file.bytes());
  const std::string text = run.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  writeWhole(path / kFile, std::as_bytes(std::span(text)));
}
