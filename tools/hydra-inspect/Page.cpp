// The parts are files of their own, and come into the program when it is built.
#include "tools/hydra-inspect/Page.h"

#include <string_view>
#include <utility>

namespace hydra::inspect {

namespace {

constexpr std::pair<std::string_view, std::string_view> kParts[] = {
#include "tools/hydra-inspect/Viewer.inc"
};

std::string partsEndingIn(std::string_view suffix) {
  std::string text;
  for (const auto &[name, part] : kParts)
    if (name.ends_with(suffix))
      text += part;
  return text;
}

void replaceAll(std::string &text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// JSON inside of <script>: no `<` is left that could end it, or begin a comment.
std::string embeddedJson(const nlohmann::ordered_json &data) {
  std::string text = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  for (const char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string escapedHtml(std::string text) {
  replaceAll(text, "&", "&amp;");
  replaceAll(text, "<", "&lt;");
  replaceAll(text, ">", "&gt;");
  replaceAll(text, "\"", "&quot;");
  return text;
}

} // namespace

std::string pageOf(const nlohmann::ordered_json &data) {
  const std::pair<std::string_view, std::string> contents[] = {
      {"{{title}}", escapedHtml(data.at("title").get<std::string>())},
      {"{{style}}", partsEndingIn(".css")},
      {"{{data}}", embeddedJson(data)},
      {"{{script}}", partsEndingIn(".js")}};
  const std::string form = partsEndingIn(".html");
  std::string page;
  size_t at = 0;
  for (const auto &[mark, content] : contents) { // in the order of the form
    const size_t next = form.find(mark, at);
    page.append(form, at, next - at);
    page += content;
    at = next + mark.size();
  }
  return page.append(form, at);
}

} // namespace hydra::inspect
