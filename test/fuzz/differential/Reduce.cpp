// Delta debugging of model texts. Every change is tried blindly: a text that is no model any more
// shows nothing.
#include "test/fuzz/differential/Reduce.h"

#include "test/fuzz/differential/ModelLines.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace hydra::test {

namespace {

/// The shape `[2, 3]` of a type `[2, 3] f32`, and what is behind it.
std::pair<std::string, std::string> shapeAndElement(const std::string &type) {
  const size_t at = type.find(']');
  return {type.substr(0, at + 1), at + 2 < type.size() ? type.substr(at + 2) : ""};
}

class Reducer {
public:
  Reducer(const std::string &text, const ReduceQuestions &questions, const ReduceOptions &options)
      : best(text), questions(questions), end(std::chrono::steady_clock::now() + options.limit) {}

  std::string run() {
    ModelLines plain = best;
    plain.dropUnused();
    accept(plain) || accept(ModelLines(best.text())); // at least without comments
    for (bool changed = true; changed && !isOver();) {
      changed = false;
      changed |= dropBlocks();
      changed |= dropOutputs();
      changed |= simplifyLoss();
      changed |= replaceValues();
      changed |= openBlocks();
      changed |= openCalls();
      changed |= dropCarried();
      changed |= shrinkNumbers();
      changed |= dropWords();
      changed |= simplifyParameters();
    }
    return best.text();
  }

private:
  bool isOver() const { return std::chrono::steady_clock::now() > end; }

  /// Takes a candidate that is another text and still shows it.
  bool accept(const ModelLines &candidate) {
    const std::string text = candidate.text();
    if (isOver() || !tried.insert(text).second || !questions.shows(text))
      return false;
    best = candidate;
    knownTypes.reset();
    return true;
  }

  bool acceptWithoutUnused(ModelLines candidate) {
    candidate.dropUnused();
    return accept(candidate);
  }

  /// Types of the values of `best`.
  const std::map<std::string, std::string> &types() {
    if (!knownTypes)
      knownTypes = questions.types(best.text());
    return *knownTypes;
  }

  std::string typeOf(const std::string &value) {
    auto it = types().find(value);
    return it == types().end() ? "" : it->second;
  }

  /// Calls `change` for every statement from the last to the first; after a change, whose result it
  /// returns, for those that are left.
  template <typename Change> bool forStatements(Change change) {
    bool changed = false;
    std::vector<StatementLines> all = best.statements();
    for (size_t i = all.size(); i-- > 0 && !isOver();) {
      if (!change(all[i]))
        continue;
      changed = true;
      all = best.statements();
      i = std::min(i + 1, all.size());
    }
    return changed;
  }

  /// Entries, definitions, stacks, presets, groups, and statements without results.
  bool dropBlocks() {
    return forStatements([&](const StatementLines &s) {
      if (s.op == "model" || s.op == "return" || s.op == "yield" || !s.results.empty())
        return false;
      ModelLines candidate = best;
      candidate.erase(s.begin, s.end);
      return acceptWithoutUnused(std::move(candidate));
    });
  }

  /// Results of an entry but `loss`, and new values of state.
  bool dropOutputs() {
    return forStatements([&](const StatementLines &s) {
      if (s.op != "return")
        return false;
      const std::string &line = best.lines[s.begin];
      const size_t at = line.find("hydra.return") + 12;
      const size_t updates = std::min(line.find(" updates("), line.size());
      std::vector<std::string> outputs = splitList(line.substr(at, updates - at));
      const auto with = [&](const std::vector<std::string> &kept, const std::string &rest) {
        ModelLines candidate = best;
        candidate.lines[s.begin] = line.substr(0, at) + " " + joinList(kept) + rest;
        return acceptWithoutUnused(std::move(candidate));
      };
      if (updates < line.size() && with(outputs, ""))
        return true;
      for (size_t i = outputs.size(); i-- > 0 && outputs.size() > 1;) {
        std::vector<std::string> kept = outputs;
        kept.erase(kept.begin() + static_cast<int64_t>(i));
        if (with(kept, line.substr(updates)))
          return true;
      }
      return false;
    });
  }

  /// The loss as the sum of one value, the earliest that will do.
  bool simplifyLoss() {
    for (size_t l = 0; l < best.lines.size(); ++l) {
      const std::optional<StatementLines> s = best.statement(l);
      if (!s || s->op != "return" || best.lines[l].find("loss = ") == std::string::npos)
        continue;
      const std::vector<StatementLines> all = best.statements();
      // What the entry itself computes: indented as the return is.
      const size_t indent = best.lines[l].find_first_not_of(' ');
      size_t before = 0;
      for (const StatementLines &each : all)
        if (each.begin < l && each.op == "entry")
          before = each.begin;
      for (const StatementLines &each : all) {
        if (each.begin <= before || each.begin >= l ||
            best.lines[each.begin].find_first_not_of(' ') != indent)
          continue;
        for (const std::string &value : each.results) {
          const auto [shape, element] = shapeAndElement(typeOf(value));
          if (element != "f32" || shape == "[]")
            continue;
          const std::string loss = best.freshName("%loss");
          std::string axes;
          const size_t rank = splitList(shape.substr(1, shape.size() - 2)).size();
          for (size_t d = 0; d < rank; ++d)
            axes += (d ? ", " : "") + std::to_string(d);
          // With as many statements in between as are needed to be smaller in the end.
          ModelLines candidate = best;
          const std::string margin(indent, ' ');
          candidate.lines[l] = margin + "hydra.return loss = " + loss;
          candidate.lines.insert(candidate.lines.begin() + static_cast<int64_t>(l),
                                 margin + loss + " = hydra.sum " + value + " axes = [" + axes +
                                     "]");
          candidate.dropUnused();
          if (candidate.lines.size() < best.lines.size() && accept(candidate))
            return true;
        }
      }
    }
    return false;
  }

  /// A value of the same type that the statement reads, or a fresh parameter, in its place.
  bool replaceValues() {
    return forStatements([&](const StatementLines &s) {
      if (s.results.empty() || s.op == "use")
        return false;
      bool changed = false;
      for (const std::string &result : s.results) {
        if (best.uses(result) == 0)
          continue;
        const std::string type = typeOf(result);
        std::vector<std::string> others;
        for (const std::string &operand : s.operands)
          if (type.empty() || typeOf(operand).empty() || typeOf(operand) == type)
            others.push_back(operand);
        bool replaced = false;
        for (const std::string &operand : others) {
          ModelLines candidate = best;
          candidate.replaceUses(result, operand);
          if ((replaced = acceptWithoutUnused(std::move(candidate))))
            break;
        }
        if (!replaced)
          replaced = replaceByParameter(s, result, type);
        changed |= replaced;
        if (replaced)
          break; // the statement may have moved
      }
      return changed;
    });
  }

  bool replaceByParameter(const StatementLines &s, const std::string &result,
                          const std::string &type) {
    const auto [shape, element] = shapeAndElement(type);
    if (element != "f32" && element != "bf16" && element != "f16")
      return false;
    ModelLines candidate = best;
    const std::string name = candidate.freshName("r"), value = candidate.freshName("%r");
    candidate.replaceUses(result, value);
    const std::string &line = candidate.lines[s.begin];
    candidate.lines.insert(candidate.lines.begin() + static_cast<int64_t>(s.begin),
                           std::string(line.find_first_not_of(' '), ' ') + value +
                               " = hydra.use @" + name);
    candidate.addParameter(name, shape, element);
    candidate.dropUnused();
    // Only where it is simpler: a use of a parameter costs two lines.
    return candidate.text().size() < best.text().size() && accept(candidate);
  }

  /// A branch in the place of a `when`, the body of a loop or call once in the place of it.
  bool openBlocks() {
    return forStatements([&](const StatementLines &s) {
      if (s.op != "when" && s.op != "for")
        return false;
      for (const bool second : {false, true}) {
        ModelLines candidate = best;
        size_t middle = s.begin + 1;
        int depth = 1;
        for (; middle < s.end; ++middle) {
          for (const char c : best.lines[middle]) {
            depth -= c == '}';
            if (depth == 0)
              break;
            depth += c == '{';
          }
          if (depth == 0)
            break;
        }
        const bool hasElse = middle + 1 < s.end;
        if (second && (!hasElse || s.op != "when"))
          continue;
        const size_t from = second ? middle + 1 : s.begin + 1, to = second ? s.end - 1 : middle;
        if (from >= to || to > best.lines.size())
          continue;
        std::vector<std::string> body(best.lines.begin() + static_cast<int64_t>(from),
                                      best.lines.begin() + static_cast<int64_t>(to));
        std::vector<std::string> yielded;
        if (!body.empty() && body.back().find("hydra.yield") != std::string::npos) {
          yielded = splitList(body.back().substr(body.back().find("hydra.yield") + 11));
          body.pop_back();
        }
        candidate.erase(s.begin, s.end);
        candidate.lines.insert(candidate.lines.begin() + static_cast<int64_t>(s.begin),
                               body.begin(), body.end());
        for (size_t i = 0; i < std::min(yielded.size(), s.results.size()); ++i)
          candidate.replaceUses(s.results[i], yielded[i]);
        if (s.op == "for")
          unwrapStack(candidate, wordBehind(best.lines[s.begin], '@'));
        if (s.op == "for")
          if (const auto carried = listBehind(best.lines[s.begin], "carry"))
            for (const std::string &pair :
                 splitList(best.lines[s.begin].substr(carried->first, carried->second)))
              if (const size_t equal = pair.find(" = "); equal != std::string::npos)
                candidate.replaceUses(pair.substr(0, equal), pair.substr(equal + 3));
        if (acceptWithoutUnused(std::move(candidate)))
          return true;
      }
      return false;
    });
  }

  /// The word that begins with `mark`.
  static std::string wordBehind(const std::string &line, char mark) {
    const size_t at = line.find(mark);
    if (at == std::string::npos)
      return {};
    size_t end = at + 1;
    while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) ||
                                 line[end] == '_' || line[end] == '.'))
      ++end;
    return line.substr(at, end - at);
  }

  /// The parameters of a stack as those of the model.
  static void unwrapStack(ModelLines &model, const std::string &name) {
    for (const StatementLines &s : model.statements())
      if (s.op == "stack" && wordBehind(model.lines[s.begin], '@') == name) {
        model.erase(s.end - 1, s.end);
        model.erase(s.begin, s.begin + 1);
        return;
      }
  }

  /// The body of a definition in the place of a call.
  bool openCalls() {
    return forStatements([&](const StatementLines &s) {
      if (s.op != "call")
        return false;
      const std::string name = wordBehind(best.lines[s.begin], '@');
      for (const StatementLines &definition : best.statements()) {
        const std::string &head = best.lines[definition.begin];
        if (definition.op != "def" || wordBehind(head, '@') != name)
          continue;
        const size_t open = head.find('('), close = head.rfind(')');
        const std::vector<std::string> arguments =
            splitList(head.substr(open + 1, close - open - 1));
        // Names of its own, with arguments and results those of the call.
        ModelLines body("");
        body.lines.assign(best.lines.begin() + static_cast<int64_t>(definition.begin + 1),
                          best.lines.begin() + static_cast<int64_t>(definition.end - 1));
        const std::string suffix = best.freshName("_c");
        for (std::string &line : body.lines) {
          const std::vector<ValueToken> tokens = valuesIn(line);
          for (auto token = tokens.rbegin(); token != tokens.rend(); ++token)
            line.insert(token->at + token->length, suffix);
        }
        for (size_t i = 0; i < std::min(arguments.size(), s.operands.size()); ++i)
          body.replaceUses(arguments[i] + suffix, s.operands[i]);
        if (body.lines.empty() || body.lines.back().find("hydra.yield") == std::string::npos)
          return false;
        const std::vector<std::string> yielded =
            splitList(body.lines.back().substr(body.lines.back().find("hydra.yield") + 11));
        body.lines.pop_back();
        ModelLines candidate = best;
        candidate.erase(s.begin, s.end);
        candidate.lines.insert(candidate.lines.begin() + static_cast<int64_t>(s.begin),
                               body.lines.begin(), body.lines.end());
        for (size_t i = 0; i < std::min(yielded.size(), s.results.size()); ++i)
          candidate.replaceUses(s.results[i], yielded[i]);
        ModelLines without = candidate;
        for (const StatementLines &each : without.statements())
          if (each.op == "def" && wordBehind(without.lines[each.begin], '@') == name) {
            without.erase(each.begin, each.end);
            break;
          }
        return acceptWithoutUnused(std::move(without)) || acceptWithoutUnused(std::move(candidate));
      }
      return false;
    });
  }

  /// One carried value, or one sequence of results, of a scan or loop less.
  bool dropCarried() {
    return forStatements([&](const StatementLines &s) {
      if (s.op != "scan" && s.op != "for")
        return false;
      const std::string &line = best.lines[s.begin];
      const auto carry = listBehind(line, "carry");
      const std::vector<std::string> carried =
          carry ? splitList(line.substr(carry->first, carry->second)) : std::vector<std::string>();
      size_t yieldLine = s.end - 1;
      while (yieldLine > s.begin && best.lines[yieldLine].find("hydra.yield") == std::string::npos)
        --yieldLine;
      const size_t at = best.lines[yieldLine].find("hydra.yield");
      if (at == std::string::npos)
        return false;
      const std::vector<std::string> yielded = splitList(best.lines[yieldLine].substr(at + 11));
      if (yielded.size() != s.results.size() || carried.size() > yielded.size())
        return false;
      const size_t first = yielded.size() - carried.size();
      for (size_t i = yielded.size(); i-- > 0 && yielded.size() > 1;) {
        ModelLines candidate = best;
        std::vector<std::string> results = s.results, values = yielded, left = carried;
        results.erase(results.begin() + static_cast<int64_t>(i));
        values.erase(values.begin() + static_cast<int64_t>(i));
        std::string head = line;
        if (i >= first) {
          left.erase(left.begin() + static_cast<int64_t>(i - first));
          if (left.empty()) // ` carry(…)`
            head.erase(carry->first - 7, carry->second + 8);
          else
            head.replace(carry->first, carry->second, joinList(left));
        } else if (best.uses(s.results[i]) > 0) {
          continue; // replaceValues makes it unused
        }
        head.replace(head.find('%'), head.find(" = hydra.") - head.find('%'), joinList(results));
        candidate.lines[s.begin] = head;
        candidate.lines[yieldLine].replace(at + 11, std::string::npos, " " + joinList(values));
        if (i >= first) {
          const std::string &pair = carried[i - first];
          const size_t equal = pair.find(" = ");
          candidate.replaceUses(pair.substr(0, equal), pair.substr(equal + 3));
          candidate.replaceUses(s.results[i], pair.substr(equal + 3));
        }
        if (acceptWithoutUnused(std::move(candidate)))
          return true;
      }
      return false;
    });
  }

  /// Smaller numbers: a size wherever it stands, with its multiples, in one line, in one place.
  bool shrinkNumbers() {
    bool changed = false;
    std::set<int64_t> values;
    for (const ModelLines::Number &number : best.numbers())
      values.insert(number.value);
    for (auto value = values.rbegin(); value != values.rend(); ++value) {
      for (const int64_t less : smaller(*value)) {
        if (replaceNumbers(*value, less, /*multiples=*/false) ||
            replaceNumbers(*value, less, /*multiples=*/true)) {
          changed = true;
          break;
        }
      }
    }
    for (size_t i = 0; i < best.numbers().size() && !isOver(); ++i) {
      const ModelLines::Number number = best.numbers()[i];
      for (const int64_t less : smaller(number.value)) {
        ModelLines candidate = best;
        candidate.replace(number, less);
        if (accept(candidate)) {
          changed = true;
          break;
        }
      }
    }
    return changed;
  }

  static std::vector<int64_t> smaller(int64_t value) {
    std::vector<int64_t> less;
    for (const int64_t v : {int64_t{1}, int64_t{2}, int64_t{3}, value / 2, value - 1})
      if (v < value && v > 0 && std::find(less.begin(), less.end(), v) == less.end())
        less.push_back(v);
    return less;
  }

  bool replaceNumbers(int64_t value, int64_t by, bool multiples) {
    ModelLines candidate = best;
    std::vector<ModelLines::Number> numbers = candidate.numbers();
    bool any = false;
    for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
      const bool isMultiple = number->value > value && number->value % value == 0;
      if (number->value != value && !(multiples && isMultiple))
        continue;
      any |= isMultiple || !multiples;
      candidate.replace(*number, number->value / value * by);
    }
    return any && accept(candidate);
  }

  /// Flags and attributes that can be left out.
  bool dropWords() {
    return forStatements([&](const StatementLines &s) {
      const std::string &line = best.lines[s.begin];
      if (s.results.empty() || s.end != s.begin + 1)
        return false;
      // ` word` and ` word = value` behind the operands.
      size_t at = line.find("hydra.");
      if (!s.operands.empty())
        at = line.rfind(s.operands.back()) + s.operands.back().size();
      else
        at = std::min(line.find(' ', at), line.size());
      for (size_t begin = line.find(' ', at); begin != std::string::npos;
           begin = line.find(' ', begin + 1)) {
        if (begin + 1 >= line.size() || !std::isalpha(static_cast<unsigned char>(line[begin + 1])))
          continue;
        size_t end = std::min(line.find(' ', begin + 1), line.size());
        if (line.compare(end, 3, " = ") == 0) {
          int depth = 0;
          for (end += 3; end < line.size() && (line[end] != ' ' || depth > 0); ++end)
            depth +=
                (line[end] == '[' || line[end] == '(') - (line[end] == ']' || line[end] == ')');
        }
        ModelLines candidate = best;
        candidate.lines[s.begin].erase(begin, end - begin);
        if (accept(candidate))
          return true;
      }
      return false;
    });
  }

  /// Initialisers and groups that say nothing, and symbols that nothing reads.
  bool simplifyParameters() {
    bool changed = false;
    for (size_t l = 0; l < best.lines.size(); ++l) {
      const std::string line = best.lines[l];
      const size_t at = line.find("hydra.param "), init = line.find(" init = ");
      if (at == std::string::npos || init == std::string::npos)
        continue;
      const std::string plain = line.substr(0, init) + " init = normal(1.0)";
      if (plain == line)
        continue;
      ModelLines candidate = best;
      candidate.lines[l] = plain;
      changed |= accept(candidate);
    }
    return changed;
  }

  ModelLines best;
  const ReduceQuestions &questions;
  std::chrono::steady_clock::time_point end;
  std::set<std::string> tried;
  std::optional<std::map<std::string, std::string>> knownTypes;
};

} // namespace

std::string reduceText(const std::string &text, const ReduceQuestions &questions,
                       const ReduceOptions &options) {
  return Reducer(text, questions, options).run();
}

} // namespace hydra::test
