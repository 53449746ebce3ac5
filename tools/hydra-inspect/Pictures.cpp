// Rectangles of less than a fifth of a unit are left out: nobody sees them, and files stay small.
#include "tools/hydra-inspect/Pictures.h"

#include "runtime/report/LiveMemory.h"
#include "runtime/report/PlanNames.h"
#include "runtime/report/PlanNodes.h"
#include "runtime/report/Units.h"
#include "tools/hydra-inspect/Paints.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <unordered_map>

namespace hydra::inspect {

using namespace planfile;
using namespace report;

namespace {

constexpr double kLeft = 76, kTop = 26, kWidth = 860, kRight = 14, kAxis = 22, kLegendRow = 18;
constexpr double kLeast = 0.2;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

std::string timeText(double microseconds) {
  const double size = std::abs(microseconds);
  return size >= 1e6   ? fmt::format("{:.4g} s", microseconds / 1e6)
         : size >= 1e3 ? fmt::format("{:.4g} ms", microseconds / 1e3)
                       : fmt::format("{:.3g} us", microseconds);
}

/// A picture of so many units below the title, and its legend.
class Picture {
public:
  Picture(std::string title, double total, double height)
      : title(std::move(title)), total(total > 0 ? total : 1), height(height) {}

  double x(double time) const { return kLeft + time / total * kWidth; }

  template <typename... Args> void add(fmt::format_string<Args...> format, Args &&...args) {
    fmt::format_to(std::back_inserter(body), format, std::forward<Args>(args)...);
    body += '\n';
  }

  /// From time to time, and from y to y of the picture, the upper one first.
  void rectangle(size_t kind, const std::string &name, double begin, double end, double y0,
                 double y1) {
    names.try_emplace(kind, name);
    const double width = x(end) - x(begin);
    if (width < kLeast || y1 - y0 < kLeast)
      return;
    const double gap = width > 3 && y1 - y0 > 3 ? 0.5 : 0;
    add(R"(<rect class="k{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)", kind,
        x(begin), y0, width - gap, y1 - y0 - gap);
  }

  void timeAxis(bool blocks) {
    const double rough = total / 8, ten = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * ten;
    for (const double factor : {5., 2., 1.})
      if (ten * factor >= rough * 0.999)
        step = ten * factor;
    for (double time = 0; time <= total * 1.0001; time += step) {
      add(R"(<path class="grid" d="M{0:.1f} {1}V{2}"/>)", x(time), kTop, kTop + height);
      add(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", x(time), kTop + height + 15,
          blocks ? fmt::format("{:.0f}", time) : timeText(time));
    }
  }

  void yLabel(double y, const std::string &text) {
    add(R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 6, y + 4, text);
  }

  std::string text() const {
    std::string legend;
    double left = kLeft, top = kTop + height + kAxis + 12;
    for (const auto &[kind, name] : names) {
      const double width = 26 + 7.2 * static_cast<double>(name.size());
      if (left + width > kLeft + kWidth) {
        left = kLeft;
        top += kLegendRow;
      }
      legend += fmt::format(R"(<rect class="k{}" x="{}" y="{}" width="11" height="11"/>)"
                            R"(<text x="{}" y="{}">{}</text>)"
                            "\n",
                            kind, left, top - 10, left + 16, top, escaped(name));
      left += width;
    }
    return head(top + 10) + body + legend + "</svg>\n";
  }

private:
  std::string head(double bottom) const {
    std::string text =
        fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img">)"
                    "\n<title>{}</title>\n<style>\n",
                    kLeft + kWidth + kRight, bottom, escaped(title));
    text += "svg{background:#fff}text{font:12px ui-monospace,monospace;fill:#1b1f24}"
            ".grid{stroke:#8884}.mark{stroke:#1b1f24;stroke-dasharray:5 4}.band{fill:#d0d7de}\n"
            "@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}"
            ".mark{stroke:#e6edf3}.band{fill:#30363d}}\n";
    std::string patterns;
    for (const auto &[kind, name] : names) {
      const std::string_view texture = textureOf(kind);
      if (texture == "plain") {
        text += fmt::format(".k{}{{fill:{}}}\n", kind, colourOf(kind));
        continue;
      }
      text += fmt::format(".k{0}{{fill:url(#p{0})}}\n", kind);
      patterns += fmt::format(
          R"(<pattern id="p{}" width="6" height="6" patternUnits="userSpaceOnUse">)"
          R"(<rect width="6" height="6" fill="{}"/>{}</pattern>)"
          "\n",
          kind, colourOf(kind),
          texture == "dots" ? R"(<circle cx="3" cy="3" r="1.3" fill="#fffc"/>)"
                            : R"(<path d="M-1 7L7 -1" stroke="#fffc" stroke-width="1.6"/>)");
    }
    return text + fmt::format("</style>\n{}<text x=\"{}\" y=\"16\">{}</text>\n", patterns, kLeft,
                              escaped(title));
  }

  std::string title, body;
  double total, height;
  std::map<size_t, std::string> names; // of the kinds that are there
};

/// Times between which values of blocks count as live: streams change the order of blocks.
struct BlockTimes {
  std::vector<double> begin, end;
};

BlockTimes timesOf(const std::vector<PlanNode> &nodes, uint32_t blocks, bool equal) {
  BlockTimes times{std::vector<double>(blocks), std::vector<double>(blocks)};
  for (const PlanNode &node : nodes) {
    if (node.depth > 0)
      continue;
    times.begin[node.top] = equal ? node.top : node.begin;
    times.end[node.top] = equal ? node.top + 1 : node.end;
  }
  for (uint32_t i = 1; i < blocks; ++i)
    times.end[i] = std::max(times.end[i], times.end[i - 1]);
  for (uint32_t i = blocks; i-- > 1;)
    times.begin[i - 1] = std::min(times.begin[i - 1], times.begin[i]);
  return times;
}

double endOf(const std::vector<PlanNode> &nodes) {
  double end = 0;
  for (const PlanNode &node : nodes)
    end = std::max(end, node.end);
  return end;
}

std::string titleOf(const Plan &plan, const Program &program, const std::string &rest) {
  const Header &header = *plan.header();
  return fmt::format("{}{}, {}, {} on {}: {}", header.model()->string_view(),
                     header.preset() ? " " + header.preset()->str() : "",
                     header.precision()->string_view(), program.name()->string_view(),
                     plan.target()->name()->string_view(), rest);
}

/// A bar of the schedule.
struct Bar {
  const Step *step;
  uint32_t stream;
  double begin, end;
};

std::vector<Bar> barsOf(const std::vector<PlanNode> &nodes, const MeasuredProgram *measured) {
  std::vector<Bar> bars;
  if (!measured) {
    std::vector<uint32_t> streams; // of the program's own blocks
    for (const PlanNode &node : nodes) {
      if (node.depth == 0)
        streams.push_back(node.block->stream());
      if (const Step *step = node.block->node_as_Step())
        bars.push_back({step, streams.back(), node.begin, node.end});
    }
    return bars;
  }
  std::unordered_map<std::string, const Step *> steps;
  for (const PlanNode &node : nodes)
    steps.emplace(node.place, node.block->node_as_Step());
  for (const MeasuredSpan &span : measured->spans)
    bars.push_back({steps.at(span.place), span.stream, span.begin, span.end});
  return bars;
}

void addPhases(Picture &picture, std::vector<Bar> bars) {
  std::ranges::sort(bars, {}, &Bar::begin);
  std::vector<Bar> phases; // neighbours of a phase together
  for (const Bar &bar : bars) {
    if (bar.end <= bar.begin)
      continue;
    if (!phases.empty() && phases.back().step->phase() == bar.step->phase())
      phases.back().end = std::max(phases.back().end, bar.end);
    else
      phases.push_back(bar);
  }
  for (const Bar &phase : phases) {
    const double width = picture.x(phase.end) - picture.x(phase.begin);
    if (width < kLeast)
      continue;
    picture.add(R"(<rect class="band" x="{:.1f}" y="{}" width="{:.1f}" height="16"/>)",
                picture.x(phase.begin), kTop, std::max(width - 0.5, kLeast));
    const std::string name = EnumNamePhase(phase.step->phase());
    if (width > 7.4 * static_cast<double>(name.size()) + 6)
      picture.add(R"(<text x="{:.1f}" y="{}">{}</text>)", picture.x(phase.begin) + 4, kTop + 12,
                  name);
  }
  picture.yLabel(kTop + 8, "phase");
}

} // namespace

std::string memoryPicture(const Plan &plan, const Program &program) {
  constexpr double height = 320;
  const LiveMemory memory = liveMemory(plan, program);
  const std::vector<PlanNode> nodes = nodesOf(plan, program);
  const bool equal = endOf(nodes) <= 0;
  const std::vector<size_t> paints = paintsOfCategories(plan);
  const BlockTimes times = timesOf(nodes, memory.blocks, equal);
  uint64_t top = 1;
  for (const LivePiece &piece : memory.pieces)
    top = std::max(top, piece.end);
  Picture picture(
      titleOf(plan, program,
              fmt::format("{} transient, {} live at the peak", bytesText(program.transient_bytes()),
                          bytesText(memory.peakBytes))),
      equal ? memory.blocks : endOf(nodes), height);
  const auto y = [&](double bytes) {
    return kTop + height * (1 - bytes / static_cast<double>(top));
  };
  picture.timeAxis(equal);
  const double step = std::exp2(std::ceil(std::log2(static_cast<double>(top) / 8)));
  for (double bytes = 0; bytes <= static_cast<double>(top); bytes += step) {
    picture.add(R"(<path class="grid" d="M{} {:.1f}h{}"/>)", kLeft, y(bytes), kWidth);
    picture.yLabel(y(bytes), bytesText(static_cast<uint64_t>(bytes)));
  }
  for (const LivePiece &piece : memory.pieces) {
    const Category category = plan.tensors()->Get(piece.tensor)->category();
    picture.rectangle(paints[static_cast<size_t>(category)], categoryName(category),
                      times.begin[piece.first], times.end[piece.last],
                      y(static_cast<double>(piece.end)), y(static_cast<double>(piece.begin)));
  }
  const double peak = picture.x(times.begin[memory.peakBlock]);
  picture.add(R"(<path class="mark" d="M{:.1f} {}v{}"/>)", peak, kTop, height);
  return picture.text();
}

std::string schedulePicture(const Plan &plan, const Program &program,
                            const MeasuredProgram *measured) {
  constexpr double lane = 34, phases = 24;
  const std::vector<PlanNode> nodes = nodesOf(plan, program);
  const std::vector<Bar> bars = barsOf(nodes, measured);
  const std::vector<size_t> paints = paintsOfClasses(plan);
  double end = 0;
  std::map<uint32_t, size_t> lanes; // of streams
  for (const Bar &bar : bars) {
    end = std::max(end, bar.end);
    lanes.try_emplace(bar.stream);
  }
  double top = kTop + phases;
  for (auto &[stream, number] : lanes)
    number = static_cast<size_t>(std::distance(lanes.begin(), lanes.find(stream)));
  Picture picture(titleOf(plan, program,
                          fmt::format("{} {}", timeText(end), measured ? "measured" : "predicted")),
                  end, phases + lane * static_cast<double>(lanes.size()));
  picture.timeAxis(false);
  for (const auto &[stream, number] : lanes)
    picture.yLabel(top + lane * (static_cast<double>(number) + 0.5) - 2,
                   fmt::format("stream {}", stream));
  for (const Bar &bar : bars) {
    const double y = top + lane * static_cast<double>(lanes.at(bar.stream));
    const OpClass kind = bar.step->op_class();
    picture.rectangle(paints[static_cast<size_t>(kind)], EnumNameOpClass(kind), bar.begin, bar.end,
                      y, y + lane - 4);
  }
  addPhases(picture, bars);
  return picture.text();
}

} // namespace hydra::inspect
