// One open document: its text, what is known of it, and the process that works on it.
#include "tools/hydra-lsp/Document.h"

#include "tools/hydra-lsp/Hover.h"
#include "tools/hydra-lsp/Semantics.h"

#include "mlir/IR/Diagnostics.h"

using namespace llvm;

namespace hydra::lsp {

//===-- In the process ----------------------------------------------------------------------===//

static json::Value diagnosticsOf(const Analysis &analysis, const std::string &uri) {
  const Text &text = analysis.text().source();
  json::Array list;
  for (const Finding &finding : analysis.findings()) {
    llvm::lsp::Diagnostic diagnostic;
    diagnostic.range = text.rangeOf(finding.begin, finding.end);
    diagnostic.severity = finding.severity;
    diagnostic.source = json::fixUTF8(finding.source);
    diagnostic.message = json::fixUTF8(finding.message);
    json::Value value = toJSON(diagnostic);
    json::Array related;
    for (const Finding::Note &note : finding.notes)
      related.push_back(json::Object{
          {"location",
           json::Object{{"uri", uri}, {"range", toJSON(text.rangeOf(note.begin, note.end))}}},
          {"message", json::fixUTF8(note.message)}});
    if (!related.empty())
      (*value.getAsObject())["relatedInformation"] = std::move(related);
    list.push_back(std::move(value));
  }
  return list;
}

static json::Value hoverValue(const std::optional<HoverText> &hover) {
  if (!hover)
    return nullptr;
  llvm::lsp::Hover value(hover->range);
  value.contents.value = json::fixUTF8(hover->markdown);
  return toJSON(value);
}

/// Sends the diagnostics, then a hover for each offset that it is sent.
static void serve(WorkerPipe &pipe, const Names &names, Choice choice, const std::string &uri) {
  Analysis analysis(names, std::move(choice));
  pipe.write(formatv("{0}", diagnosticsOf(analysis, uri)).str());
  std::optional<Semantics> semantics;
  while (std::optional<std::string> question = pipe.read()) {
    size_t offset = 0;
    StringRef(*question).getAsInteger(10, offset);
    if (!semantics && analysis.bound())
      semantics.emplace(analysis);
    pipe.write(formatv("{0}", hoverValue(hoverAt(names, offset, semantics ? &*semantics : nullptr)))
                   .str());
  }
}

//===-- In the server -----------------------------------------------------------------------===//

Document::Document(std::string uri, int64_t version, std::string given)
    : name(std::move(uri)), number(version), content(std::make_unique<Text>(std::move(given))) {}

const Names &Document::names() {
  if (!index)
    index = std::make_unique<Names>(*content);
  return *index;
}

void Document::invalidate() {
  worker.reset();
  stale = true;
  published = false;
  for (Question &question : questions)
    question.reply(std::nullopt);
  questions.clear();
}

void Document::change(int64_t version, ArrayRef<Change> changes) {
  invalidate();
  number = version;
  for (const Change &change : changes) {
    index.reset();
    content = std::make_unique<Text>(change.range ? content->replaced(*change.range, change.text)
                                                  : change.text);
  }
}

void Document::work(const Configuration &configuration) {
  stale = false;
  const Choice choice = choiceFor(names(), configuration);
  worker = Worker::start([&](WorkerPipe &pipe) { serve(pipe, names(), choice, name); });
}

json::Value Document::hoverFromText(size_t offset) {
  return hoverValue(hoverAt(names(), offset, nullptr));
}

void Document::hover(Position position, const Configuration &configuration, Reply reply) {
  const size_t offset = content->offsetOf(position);
  if (stale)
    work(configuration);
  if (!worker)
    return reply(hoverFromText(offset));
  questions.push_back({offset, std::move(reply)});
  worker->send(std::to_string(offset));
}

void Document::advance(function_ref<void(json::Value)> publish) {
  if (worker)
    for (const std::string &message : worker->receive()) {
      Expected<json::Value> value = json::parse(message);
      if (!value) {
        consumeError(value.takeError());
        continue;
      }
      if (!published) {
        published = true;
        publish(std::move(*value));
      } else if (!questions.empty()) {
        questions.front().reply(std::move(*value));
        questions.pop_front();
      }
    }
  if (worker && !worker->isLost())
    return;
  worker.reset();
  if (!published && !stale) {
    published = true;
    llvm::lsp::Diagnostic diagnostic;
    diagnostic.range = text().rangeOf(0, text().lineAt(0).size());
    diagnostic.severity = llvm::lsp::DiagnosticSeverity::Warning;
    diagnostic.source = "hydra";
    diagnostic.message = "the compiler could not finish with this text: it takes more than " +
                         std::to_string(Worker::kMostTime.count()) +
                         " seconds, or more memory than there is";
    publish(json::Array{toJSON(diagnostic)});
  }
  for (Question &question : questions)
    question.reply(hoverFromText(question.offset));
  questions.clear();
}

} // namespace hydra::lsp
