// Questions about the machine that a module is compiled for.
#include "dialects/hydra/Target.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace hydra {

bool TargetAttr::has(StringRef feature) {
  return getFeatures() && llvm::is_contained(getFeatures().getAsValueRange<StringAttr>(), feature);
}

double TargetAttr::rate(StringRef name) {
  auto value = getRates() ? getRates().getAs<FloatAttr>(name) : FloatAttr();
  return value ? value.getValueAsDouble() : 0.0;
}

double Roofline::seconds(Arithmetic kind, const std::string &format, uint64_t flops,
                         uint64_t bytes) const {
  double rate = vectorFlops;
  if (kind != Arithmetic::Other) {
    const auto &rates = kind == Arithmetic::Matmul ? matmulFlops : attentionFlops;
    const auto found = rates.find(format);
    rate = found == rates.end() ? rates.at("f32") : found->second;
  }
  const double bandwidth = bytes < cacheBytes ? cacheBandwidth : memoryBandwidth;
  return std::max(double(flops) / rate, double(bytes) / bandwidth) + launchSeconds;
}

/// By how much a rank's own piece is copied for longer, as it ends within a page, than the rate of
/// copy engines knows.
static double oddCopySeconds(const Links &links, const RankGroup &group, uint64_t wireBytes) {
  if (links.engineBandwidth <= 0 || links.ownCopyBandwidth <= 0)
    return 0;
  const auto piece = double(Links::pieceBytes(group, wireBytes));
  return std::max(0.0, links.ownCopySeconds(group, wireBytes) - 2 * piece / links.ownCopyBandwidth);
}

double Roofline::collectiveSeconds(const RankGroup &group, uint64_t wireBytes,
                                   uint64_t bytes) const {
  const double inMemory = seconds(Arithmetic::Other, "f32", 0, bytes);
  if (group.ranks <= 1 || links.nodeRanks == 0)
    return inMemory;
  return std::max(inMemory,
                  links.seconds(group, wireBytes) + oddCopySeconds(links, group, wireBytes));
}

double Roofline::transferSeconds(uint64_t bytes) const {
  if (hostBandwidth <= 0)
    return seconds(Arithmetic::Other, "f32", 0, 2 * bytes);
  return hostSeconds + double(bytes) / hostBandwidth;
}

static Links linksOf(DictionaryAttr links) {
  auto number = [&](StringRef name) {
    auto value = links ? links.getAs<FloatAttr>(name) : FloatAttr();
    return value ? value.getValueAsDouble() : 0.0;
  };
  Links found{static_cast<int64_t>(number(kNodeRanks)), number(kNodeBandwidth),
              number(kNodeSeconds), number(kNetworkBandwidth), number(kNetworkSeconds)};
  return found.nodeRanks > 0 && found.nodeBandwidth > 0 && found.networkBandwidth > 0 ? found
                                                                                      : Links();
}

std::optional<Roofline> rooflineOf(TargetAttr target) {
  Roofline rates;
  auto byFormat = [&](StringRef name, std::map<std::string, double> &flops) {
    if (auto all = target.getRates().getAs<DictionaryAttr>(name))
      for (NamedAttribute one : all)
        if (auto rate = dyn_cast<FloatAttr>(one.getValue()))
          flops[one.getName().str()] = rate.getValueAsDouble();
    return flops.contains("f32");
  };
  if (!target.getRates() || !byFormat(kMatmulFlops, rates.matmulFlops) ||
      !byFormat(kAttentionFlops, rates.attentionFlops))
    return std::nullopt;
  rates.memoryBandwidth = target.rate(kMemoryBandwidth);
  rates.cacheBytes = static_cast<uint64_t>(target.rate(kCacheBytes));
  rates.cacheBandwidth = target.rate(kCacheBandwidth);
  rates.vectorFlops = target.rate(kVectorFlops);
  rates.launchSeconds = target.rate(kLaunchSeconds);
  rates.hostBandwidth = target.rate(kHostBandwidth);
  rates.hostSeconds = target.rate(kHostSeconds);
  rates.links = linksOf(target.getRates().getAs<DictionaryAttr>(kLinks));
  if (rates.memoryBandwidth <= 0 || rates.vectorFlops <= 0)
    return std::nullopt;
  return rates;
}

TargetAttr targetOf(Operation *op) {
  for (Operation *at = op; at; at = at->getParentOp())
    if (auto target = at->getAttrOfType<TargetAttr>(kTargetAttr))
      return target;
  return TargetAttr::get(op->getContext(), "cpu", "cpu", "host", 0, 0, 0, 1, {}, {}, {}, {});
}

} // namespace hydra
