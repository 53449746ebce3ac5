// The words of a model's text.
#include "test/fuzz/differential/ModelLines.h"

#include <algorithm>
#include <cctype>

namespace hydra::test {

namespace {

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

bool startsWith(const std::string &line, const std::string &prefix) {
  const size_t at = line.find_first_not_of(' ');
  return at != std::string::npos && line.compare(at, prefix.size(), prefix) == 0;
}

/// The position behind the parenthesis that closes the one at `open`.
size_t closing(const std::string &line, size_t open) {
  int depth = 0;
  for (size_t i = open; i < line.size(); ++i) {
    depth += line[i] == '(' || line[i] == '[';
    depth -= line[i] == ')' || line[i] == ']';
    if (depth == 0)
      return i + 1;
  }
  return line.size();
}

} // namespace

std::optional<std::pair<size_t, size_t>> listBehind(const std::string &line,
                                                    const std::string &word) {
  for (size_t at = line.find(word + "("); at != std::string::npos;
       at = line.find(word + "(", at + 1)) {
    if (at > 0 && isWord(line[at - 1]))
      continue;
    const size_t open = at + word.size();
    return std::pair(open + 1, closing(line, open) - open - 2);
  }
  return std::nullopt;
}

std::vector<std::string> splitList(const std::string &list) {
  std::vector<std::string> parts;
  int depth = 0;
  std::string part;
  const auto finish = [&] {
    const size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    if (first != std::string::npos)
      parts.push_back(part.substr(first, last - first + 1));
    part.clear();
  };
  for (const char c : list) {
    depth += c == '(' || c == '[';
    depth -= c == ')' || c == ']';
    if (c == ',' && depth == 0)
      finish();
    else
      part += c;
  }
  finish();
  return parts;
}

std::string joinList(const std::vector<std::string> &parts) {
  std::string list;
  for (const std::string &part : parts)
    list += (list.empty() ? "" : ", ") + part;
  return list;
}

std::vector<ValueToken> valuesIn(const std::string &line) {
  std::vector<ValueToken> tokens;
  const size_t comment = std::min(line.find("//"), line.size());
  const size_t assign = line.find(" = hydra.");
  std::vector<std::pair<size_t, size_t>> defining; // lists of names alone
  if (const auto list = listBehind(line, "combine"))
    defining.push_back(*list);
  for (size_t at = line.find('%'); at < comment; at = line.find('%', at + 1)) {
    size_t end = at + 1;
    while (end < comment && isWord(line[end]))
      ++end;
    const bool isResult = assign != std::string::npos && at < assign && startsWith(line, "%");
    const bool isArgument = line.compare(end, 1, ":") == 0 || line.compare(end, 4, " = %") == 0;
    const bool isPair = std::any_of(defining.begin(), defining.end(), [&](const auto &list) {
      return at >= list.first && at < list.first + list.second;
    });
    tokens.push_back({at, end - at, isResult || isArgument || isPair});
  }
  return tokens;
}

ModelLines::ModelLines(const std::string &text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.find_first_not_of(' ') != std::string::npos && !startsWith(line, "//"))
      lines.push_back(line);
    at = end + 1;
  }
}

std::string ModelLines::text() const {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

size_t ModelLines::blockEnd(size_t line) const {
  int depth = 0;
  for (size_t i = line; i < lines.size(); ++i) {
    for (const char c : lines[i]) {
      depth += c == '{';
      depth -= c == '}';
    }
    if (depth <= 0)
      return i + 1;
  }
  return lines.size();
}

std::optional<StatementLines> ModelLines::statement(size_t line) const {
  const std::string &text = lines[line];
  const size_t at = text.find("hydra.");
  if (at == std::string::npos || (!startsWith(text, "%") && !startsWith(text, "hydra.")))
    return std::nullopt;
  StatementLines s;
  s.begin = line;
  s.end = blockEnd(line);
  for (size_t i = at + 6; i < text.size() && isWord(text[i]); ++i)
    s.op += text[i];
  for (const ValueToken &token : valuesIn(text)) {
    const std::string name = text.substr(token.at, token.length);
    if (token.at < at)
      s.results.push_back(name);
    else if (!token.defines)
      s.operands.push_back(name);
  }
  return s;
}

std::vector<StatementLines> ModelLines::statements() const {
  std::vector<StatementLines> all;
  for (size_t i = 0; i < lines.size(); ++i)
    if (std::optional<StatementLines> s = statement(i))
      all.push_back(std::move(*s));
  return all;
}

void ModelLines::erase(size_t begin, size_t end) {
  lines.erase(lines.begin() + static_cast<int64_t>(begin),
              lines.begin() + static_cast<int64_t>(end));
}

size_t ModelLines::uses(const std::string &value) const {
  size_t count = 0;
  for (const std::string &line : lines)
    for (const ValueToken &token : valuesIn(line))
      count += !token.defines && line.compare(token.at, token.length, value) == 0;
  return count;
}

void ModelLines::replaceUses(const std::string &value, const std::string &by) {
  for (std::string &line : lines) {
    std::vector<ValueToken> tokens = valuesIn(line);
    for (auto token = tokens.rbegin(); token != tokens.rend(); ++token)
      if (!token->defines && line.compare(token->at, token->length, value) == 0)
        line.replace(token->at, token->length, by);
  }
}

void ModelLines::dropUnused() {
  const auto isRead = [&](const std::string &symbol) {
    for (const std::string &line : lines) {
      if (startsWith(line, "hydra.param") || startsWith(line, "hydra.state"))
        continue;
      for (size_t at = line.find(symbol); at != std::string::npos; at = line.find(symbol, at + 1))
        if (at + symbol.size() == line.size() || !isWord(line[at + symbol.size()]))
          return true;
    }
    return false;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = lines.size(); i-- > 0;) {
      const std::optional<StatementLines> s = statement(i);
      if (!s)
        continue;
      bool unused = !s->results.empty();
      for (const std::string &result : s->results)
        unused &= uses(result) == 0;
      if (s->op == "param" || s->op == "state") {
        const size_t at = lines[i].find('@');
        size_t end = at + 1;
        while (end < lines[i].size() && isWord(lines[i][end]))
          ++end;
        unused = at != std::string::npos && !isRead(lines[i].substr(at, end - at));
      }
      if (unused) {
        erase(s->begin, s->end);
        changed = true;
      } else if (s->op == "entry") {
        const size_t open = lines[i].find('(');
        if (open == std::string::npos)
          continue;
        const size_t length = closing(lines[i], open) - open - 2;
        std::vector<std::string> kept;
        for (const std::string &argument : splitList(lines[i].substr(open + 1, length)))
          if (uses(argument.substr(0, argument.find(':'))) > 0)
            kept.push_back(argument);
        lines[i].replace(open + 1, length, joinList(kept));
      }
    }
  }
}

void ModelLines::addParameter(const std::string &name, const std::string &shape,
                              const std::string &dtype) {
  for (size_t i = 0; i < lines.size(); ++i)
    if (startsWith(lines[i], "hydra.entry") || startsWith(lines[i], "hydra.def") ||
        startsWith(lines[i], "hydra.stack")) {
      lines.insert(lines.begin() + static_cast<int64_t>(i),
                   "  hydra.param @" + name + " " + shape + (dtype == "f32" ? "" : " " + dtype) +
                       " init = normal(1.0)");
      return;
    }
}

std::string ModelLines::freshName(const std::string &prefix) const {
  const std::string all = text();
  for (int i = 0;; ++i)
    if (std::string name = prefix + std::to_string(i); all.find(name) == std::string::npos)
      return name;
}

std::vector<ModelLines::Number> ModelLines::numbers() const {
  std::vector<Number> found;
  for (size_t l = 0; l < lines.size(); ++l) {
    const std::string &line = lines[l];
    if (startsWith(line, "hydra.group") || startsWith(line, "hydra.model"))
      continue;
    for (size_t i = 0; i < line.size(); ++i) {
      if (!std::isdigit(static_cast<unsigned char>(line[i])))
        continue;
      size_t end = i;
      while (end < line.size() && isWord(line[end]))
        ++end;
      const std::string word = line.substr(i, end - i);
      const bool isWhole =
          std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); }) &&
          word.size() < 10;
      const bool inName = i > 0 && (isWord(line[i - 1]) || line[i - 1] == '%' ||
                                    line[i - 1] == '@' || line[i - 1] == '-');
      // Inside of `axes = […]`, `order = […]`, or behind `axis =`.
      const std::string before = line.substr(0, i);
      bool isAxis = before.ends_with("axis = ");
      for (const char *list : {"axes = [", "order = ["})
        if (const size_t at = before.rfind(list); at != std::string::npos)
          isAxis |= before.find(']', at) == std::string::npos;
      if (isWhole && !inName && !isAxis)
        found.push_back({l, i, end - i, std::stoll(word)});
      i = end;
    }
  }
  return found;
}

void ModelLines::replace(const Number &number, int64_t value) {
  lines[number.line].replace(number.column, number.length, std::to_string(value));
}

} // namespace hydra::test
