// Reading descriptions of targets.
#include "compiler/targets/Target.h"

#include "dialects/hydra/Target.h"
#include "runtime/report/TargetTexts.h"
#include "runtime/support/DType.h"
#include "runtime/support/Error.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/ZeroByte.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

using nlohmann::json;

namespace hydra {

namespace {

class Reader {
public:
  Reader(const json &content, const std::string &origin) : content(content), origin(origin) {
    if (!content.is_object())
      support::fail("{}: a target is a JSON object", origin);
  }

  std::string text(const char *field) {
    const json &value = get(field);
    if (!value.is_string() || value.get<std::string>().empty())
      support::fail("{}: field '{}' is {}; expected a text", origin, field, value.dump());
    return value;
  }

  double number(const char *field, double least) { return number(field, get(field), least); }

  uint64_t bytes(const char *field, double least) {
    constexpr double most = 1e18;
    const double value = number(field, least);
    if (value > most)
      support::fail("{}: field '{}' is {}; expected at most {}", origin, field, value, most);
    return static_cast<uint64_t>(value);
  }

  int64_t integer(const char *field, int64_t least, int64_t most) {
    const json &value = get(field);
    if (!value.is_number_integer() || value.get<int64_t>() < least || value.get<int64_t>() > most)
      support::fail("{}: field '{}' is {}; expected an integer from {} to {}", origin, field,
                    value.dump(), least, most);
    return value;
  }

  std::map<std::string, double> numbers(const char *field, double least = 1e-12) {
    const json &value = get(field);
    if (!value.is_object())
      support::fail("{}: field '{}' is {}; expected numbers by name", origin, field, value.dump());
    std::map<std::string, double> numbers;
    for (const auto &[name, one] : value.items())
      numbers[name] = number((std::string(field) + "." + name).c_str(), one, least);
    return numbers;
  }

  std::map<std::string, double> rates(const char *field) {
    std::map<std::string, double> rates = numbers(field, 1);
    for (const auto &[name, rate] : rates)
      if (!isFormat(name))
        support::fail("{}: field '{}' has a rate for '{}', which is no format of floats", origin,
                      field, name);
    for (const char *name : {"f32", "bf16"})
      if (!rates.contains(name))
        support::fail("{}: field '{}' is {}; expected rates for f32 and bf16", origin, field,
                      content.at(field).dump());
    return rates;
  }

  /// What is said of copy engines, and takes it away from what else is given: descriptions may be
  /// older than it, and devices without such copies have none.
  void readEngines(const char *field, std::map<std::string, double> &given, Links &links) {
    const std::pair<llvm::StringRef, double Links::*> rates[] = {
        {kOwnCopyBandwidth, &Links::ownCopyBandwidth},
        {kOwnCopyOddBandwidth, &Links::ownCopyOddBandwidth},
        {kOwnCopyTail, &Links::ownCopyTail},
        {kEngineBandwidth, &Links::engineBandwidth},
        {kEngineSeconds, &Links::engineSeconds}};
    for (const auto &[name, rate] : rates)
      if (const auto found = given.find(name.str()); found != given.end()) {
        links.*rate = found->second;
        given.erase(found);
      }
    if (links.ownCopyTail > 1)
      support::fail("{}: field '{}.{}' is {}; expected a number from 0 to 1", origin, field,
                    kOwnCopyTail.str(), links.ownCopyTail);
  }

  Links links(const char *field) {
    const std::pair<llvm::StringRef, double Links::*> rates[] = {
        {kNodeBandwidth, &Links::nodeBandwidth},
        {kNodeSeconds, &Links::nodeSeconds},
        {kNetworkBandwidth, &Links::networkBandwidth},
        {kNetworkSeconds, &Links::networkSeconds},
        {kOverlap, &Links::overlap}};
    std::map<std::string, double> given = numbers(field, 0);
    Links links;
    if (given.empty())
      return links;
    readEngines(field, given, links);
    size_t known = given.contains(kNodeRanks.str()) ? 1 : 0;
    links.nodeRanks = known ? static_cast<int64_t>(given.at(kNodeRanks.str())) : 0;
    std::vector<std::string> names = {kNodeRanks.str()};
    for (const auto &[name, rate] : rates) {
      names.push_back(name.str());
      if (const auto found = given.find(name.str()); found != given.end()) {
        links.*rate = found->second;
        ++known;
      }
    }
    for (const auto &[name, rate] : rates)
      if (rate == &Links::overlap ? links.*rate > 1 : links.*rate <= 0)
        support::fail("{}: field '{}.{}' is {}; expected {}", origin, field, name.str(),
                      links.*rate,
                      rate == &Links::overlap ? "a number from 0 to 1" : "a number above 0");
    constexpr double most = 65536; // as of a mesh
    if (known != names.size() || given.size() != names.size())
      support::fail("{}: field '{}' is {}; expected {}, or nothing; {} may be left out, as may {}, "
                    "{}, {} and {}",
                    origin, field, content.at(field).dump(), fmt::join(names, ", "),
                    kOwnCopyBandwidth.str(), kOwnCopyOddBandwidth.str(), kOwnCopyTail.str(),
                    kEngineBandwidth.str(), kEngineSeconds.str());
    if (const double ranks = given.at(kNodeRanks.str());
        ranks < 1 || ranks > most || ranks != double(links.nodeRanks))
      support::fail("{}: field '{}.{}' is {}; expected an integer from 1 to {}", origin, field,
                    kNodeRanks.str(), ranks, most);
    return links;
  }

  std::vector<std::string> names(const char *field) {
    const json &value = get(field);
    if (!value.is_array() ||
        !std::all_of(value.begin(), value.end(), [](const json &name) { return name.is_string(); }))
      support::fail("{}: field '{}' is {}; expected a list of texts", origin, field, value.dump());
    return value;
  }

  /// Formats that matmuls may have operands in.
  static bool isFormat(std::string_view name) {
    const auto formats = support::numberFormats();
    return std::any_of(formats.begin(), formats.end(), [&](const support::NumberFormat &format) {
      return format.ir == name && support::isFloat(format.dtype);
    });
  }

  /// Sizes of kernels, where a description says any.
  std::vector<KernelTiles> tiles(const char *field) {
    used.emplace_back(field);
    std::vector<KernelTiles> all;
    if (!content.contains(field))
      return all;
    for (const std::string &text : names(field)) {
      std::string problem;
      std::optional<KernelTiles> one = KernelTiles::parse(text, problem);
      if (!one)
        support::fail("{}: field '{}' has \"{}\": {}", origin, field, text, problem);
      all.push_back(std::move(*one));
    }
    return all;
  }

  /// What hydra-run --calibrate has measured, where it has.
  std::shared_ptr<const report::MeasuredRates> measured(const char *field) {
    used.emplace_back(field);
    if (!content.contains(field))
      return nullptr;
    return std::make_shared<report::MeasuredRates>(
        report::MeasuredRates::parse(content.at(field).dump(), origin));
  }

  /// A misspelt field would be a silent default.
  void finish() {
    for (const auto &[field, value] : content.items())
      if (field != "about" && std::find(used.begin(), used.end(), field) == used.end())
        support::fail("{}: there is no field '{}'; a target has {}", origin, field,
                      fmt::format("{}", fmt::join(used, ", ")));
  }

private:
  const json &get(const char *field) {
    used.emplace_back(field);
    if (!content.contains(field))
      support::fail("{}: field '{}' is missing", origin, field);
    return content.at(field);
  }

  double number(const char *field, const json &value, double least) const {
    if (!value.is_number() || value.get<double>() < least)
      support::fail("{}: field '{}' is {}; expected a number of at least {}", origin, field,
                    value.dump(), least);
    return value;
  }

  const json &content;
  const std::string &origin;
  std::vector<std::string> used;
};

Target parse(const std::string &text, const std::string &origin) {
  constexpr int kMostNesting = 16; // of values in values
  auto check = [&](int depth, json::parse_event_t, json &) {
    if (depth > kMostNesting)
      support::fail("{}: values nest more than {} deep", origin, kMostNesting);
    return true;
  };
  if (const size_t zero = support::zeroByteIn(text); zero != std::string_view::npos)
    support::fail("{}: has a zero byte at {}; expected JSON text", origin, zero);
  json content;
  try {
    content = json::parse(text, check);
  } catch (const json::exception &error) {
    support::fail("{}: no JSON: {}", origin, support::jsonProblem(error));
  }
  Reader in(content, origin);
  Target target;
  target.origin = origin;
  target.name = in.text("name");
  target.kind = in.text("kind");
  target.code = in.text("code");
  target.multiprocessors = in.integer("multiprocessors", 0, 1 << 16);
  target.blockSharedBytes = in.integer("block_shared_bytes", 0, 1 << 30);
  target.multiprocessorSharedBytes = in.integer("multiprocessor_shared_bytes", 0, 1 << 30);
  target.features = in.names("features");
  target.logitsBytes = in.bytes("logits_bytes", 1 << 20); // passes count MiB
  target.classMultiple = in.integer("class_multiple", 1, 1 << 20);
  target.quantizedMultiple = in.integer("quantized_multiple", 0, 1 << 10);
  target.memoryBytes = in.bytes("memory_bytes", 1);
  target.memoryBandwidth = in.number("memory_bandwidth", 1);
  target.cacheBytes = in.bytes("cache_bytes", 0);
  target.cacheBandwidth = in.number("cache_bandwidth", 1);
  target.matmulFlops = in.rates("matmul_flops");
  target.attentionFlops = in.rates("attention_flops");
  target.vectorFlops = in.number("vector_flops", 1);
  target.launchSeconds = in.number("launch_seconds", 0);
  target.hostBandwidth = in.number("host_bandwidth", 1);
  target.hostSeconds = in.number("host_seconds", 0);
  target.loopRates = in.numbers("loop_rates");
  target.links = in.links("links");
  target.epilogues = in.names("epilogues");
  target.peakFlops = in.number("peak_flops", 0);
  target.tiles = in.tiles("kernel_tiles");
  target.measured = in.measured("measured");
  in.finish();
  return target;
}

uint64_t memoryOfThisMachine() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  return static_cast<uint64_t>(std::max(0L, pages)) * static_cast<uint64_t>(std::max(0L, size));
}

std::string readText(const std::string &path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code))
    support::fail("cannot read the target {}: it is a directory", path);
  if (std::filesystem::exists(path, code) && !std::filesystem::is_regular_file(path, code))
    support::fail("cannot read the target {}: it is no regular file", path);
  std::ifstream in(path, std::ios::binary);
  if (!in)
    support::fail("cannot read the target {}: {}", path, support::errnoText(errno));
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

std::vector<std::string> Target::names() {
  std::vector<std::string> names;
  for (const report::TargetText &entry : report::targetTexts())
    names.emplace_back(entry.name);
  return names;
}

Target Target::named(const std::string &name) {
  if (name.ends_with(".json"))
    return parse(readText(name), name);
  const bool level = name == "x86-64-v3" || name == "x86-64-v4";
  for (const report::TargetText &entry : report::targetTexts()) {
    if (entry.name != (level ? "cpu" : name))
      continue;
    Target target = parse(entry.text, std::string("built-in target ") + entry.name);
    if (level)
      target.name = target.code = name;
    else if (target.code == "host")
      target.memoryBytes = memoryOfThisMachine();
    return target;
  }
  support::fail("there is no target '{}'; known are {}, x86-64-v3, x86-64-v4, and FILE.json", name,
                fmt::join(names(), ", "));
}

std::string Target::attribute() const {
  const auto quoted = [](const std::string &text) { return json(text).dump(); };
  const auto number = [](double value) { return fmt::format("{:.17e} : f64", value); };
  const auto byFormat = [&](const std::map<std::string, double> &flops) {
    std::vector<std::string> all;
    for (const auto &[format, rate] : flops)
      all.push_back(fmt::format("{} = {}", format, number(rate)));
    return fmt::format("{{{}}}", fmt::join(all, ", "));
  };
  std::vector<std::string> known, rates;
  for (const std::string &feature : features)
    known.push_back(quoted(feature));
  for (const auto &[rate, value] : loopRates)
    rates.push_back(fmt::format("{} = {}", rate, number(value)));
  const std::string between = fmt::format(
      "{{{} = {}, {} = {}, {} = {}, {} = {}, {} = {}}}", kNodeRanks.str(),
      number(double(links.nodeRanks)), kNodeBandwidth.str(), number(links.nodeBandwidth),
      kNodeSeconds.str(), number(links.nodeSeconds), kNetworkBandwidth.str(),
      number(links.networkBandwidth), kNetworkSeconds.str(), number(links.networkSeconds));
  const std::pair<llvm::StringRef, std::string> roofline[] = {
      {kMemoryBandwidth, number(memoryBandwidth)}, {kCacheBytes, number(double(cacheBytes))},
      {kCacheBandwidth, number(cacheBandwidth)},   {kMatmulFlops, byFormat(matmulFlops)},
      {kAttentionFlops, byFormat(attentionFlops)}, {kVectorFlops, number(vectorFlops)},
      {kLaunchSeconds, number(launchSeconds)},     {kHostBandwidth, number(hostBandwidth)},
      {kHostSeconds, number(hostSeconds)},         {kLinks, links.nodeRanks > 0 ? between : "{}"}};
  for (const auto &[name, value] : roofline)
    rates.push_back(fmt::format("{} = {}", name.str(), value));
  std::string text =
      fmt::format("#hydra.target<name = {}, backend = {}, architecture = {}, multiprocessors = {}, "
                  "block_shared = {}, multiprocessor_shared = {}, quantized_multiple = {}",
                  quoted(name), quoted(kind), quoted(code), multiprocessors, blockSharedBytes,
                  multiprocessorSharedBytes, quantizedMultiple);
  if (!known.empty())
    text += fmt::format(", features = [{}]", fmt::join(known, ", "));
  text += fmt::format(", rates = {{{}}}", fmt::join(rates, ", "));
  for (const bool required : {false, true}) {
    std::vector<std::string> said;
    for (const KernelTiles &one : tiles)
      if (one.required == required)
        said.push_back(quoted(one.text()));
    if (!said.empty())
      text +=
          fmt::format(", {} = [{}]", required ? "required_tiles" : "tiles", fmt::join(said, ", "));
  }
  return text + ">";
}

uint64_t Target::latencyBytes() const {
  return static_cast<uint64_t>(links.nodeBandwidth * links.nodeSeconds);
}

uint64_t Target::bucketBytes() const {
  constexpr uint64_t kLatencies = 16;
  return kLatencies * latencyBytes();
}

} // namespace hydra
