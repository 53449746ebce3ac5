// What a sweep measures: a JSON file of a model, axes, and the tables that are made of it.
//
//   {"title": "R2: ...", "model": "../../models/cs336.mlir",      beside the definition
//    "axes": {"preset": ["small", "medium"],                     a value is a flag of hydrac,
//    --preset=small,
//             "mode": [{"name": "forward", "hydrac": ["--mode=forward"], "hydra-run": [], "model":
//             ""}]},
//    "except": [{"preset": "small", "mode": "forward"}],         combinations that are left out
//    "hydrac": ["--batch=4"], "hydra-run": ["--threads=2"],      flags of all rows
//    "steps": 15, "warm_up": 3, "profile": false,                steps 0: predictions alone,
//    nothing runs "threshold": 5, "compare": "bench.median_ms",               for baselines:
//    percent, and of what "tables": [{"title": "", "rows": ["preset"], "columns": [...]}]} Table.h
//    says what columns are
//
// There is a row for each combination of values, the last axis fastest.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace hydra::bench {

using Json = nlohmann::ordered_json;

/// A value of an axis, and what it changes.
struct AxisValue {
  std::string name;
  std::string model; ///< empty: that of the definition
  std::vector<std::string> hydrac, run;
  bool optional = false; ///< only where it is chosen
};

struct Axis {
  std::string name;
  std::string flag; ///< of hydrac, for values that are nothing but a word
  std::vector<AxisValue> values;
};

/// A row of the sweep.
struct Case {
  Json axes; ///< name of the value by name of the axis
  std::filesystem::path model;
  std::vector<std::string> hydrac, run;

  /// `preset=small seq=128`.
  std::string name() const;
};

struct Definition {
  std::filesystem::path file;
  std::string title, about;
  std::filesystem::path model;
  std::vector<Axis> axes;
  Json except = Json::array();
  std::vector<std::string> hydrac, run;
  int steps = 0, warmUp = 3;
  bool profile = false;
  double threshold = 5;
  std::string compare;
  Json tables;

  std::vector<Case> cases() const;
};

/// Throws Error, in one line with the name of the member, for what a definition cannot be.
Definition readDefinition(const std::filesystem::path &file);

/// `preset=tiny`: the axis has this value alone, or with other choices of the same axis these; one
/// of the definition by its name, or, where the axis is a flag, any. Throws Error when that cannot
/// be.
void choose(Definition &definition, const std::vector<std::string> &choices);

} // namespace hydra::bench
