// The server: which methods of the protocol it has, and when it works on what.
#include "tools/hydra-lsp/Server.h"

#include "runtime/support/Error.h"
#include "tools/hydra-lsp/Completion.h"
#include "tools/hydra-lsp/Navigation.h"

#include <poll.h>

using namespace llvm;
using llvm::lsp::ErrorCode;
using llvm::lsp::LSPError;

namespace hydra::lsp {

/// The value behind `keys`, one inside of the other, or null.
static const json::Value *lookup(const json::Value &value, std::initializer_list<StringRef> keys) {
  const json::Value *at = &value;
  for (StringRef key : keys) {
    const json::Object *object = at ? at->getAsObject() : nullptr;
    at = object ? object->get(key) : nullptr;
  }
  return at;
}

static std::optional<std::string> textAt(const json::Value &value,
                                         std::initializer_list<StringRef> keys) {
  const json::Value *found = lookup(value, keys);
  if (const std::optional<StringRef> text = found ? found->getAsString() : std::nullopt)
    return text->str();
  return std::nullopt;
}

/// Anything of the protocol's types; nullopt where it is not what it should be.
template <typename T> static std::optional<T> read(const json::Value *value) {
  T result;
  json::Path::Root root;
  if (value && fromJSON(*value, result, root))
    return result;
  return std::nullopt;
}

static Position positionIn(const json::Value &params) {
  return read<Position>(lookup(params, {"position"})).value_or(Position());
}

Server::Server(int input, raw_ostream &output, Configuration given)
    : messages(input), transport(stdin, output), handler(transport), flags(std::move(given)),
      configuration(flags) {
  handler.method("initialize", this, &Server::onInitialize);
  handler.method("shutdown", this, &Server::onShutdown);
  handler.notification("textDocument/didOpen", this, &Server::onOpen);
  handler.notification("textDocument/didChange", this, &Server::onChange);
  handler.notification("textDocument/didClose", this, &Server::onClose);
  handler.notification("workspace/didChangeConfiguration", this, &Server::onConfiguration);
  handler.method("textDocument/hover", this, &Server::onHover);
  handler.method("textDocument/definition", this, &Server::onDefinition);
  handler.method("textDocument/references", this, &Server::onReferences);
  handler.method("textDocument/documentSymbol", this, &Server::onOutline);
  handler.method("textDocument/completion", this, &Server::onCompletion);
  publishDiagnostics = handler.outgoingNotification<Value>("textDocument/publishDiagnostics");
  showMessage = handler.outgoingNotification<Value>("window/showMessage");
}

//===-- The loop ----------------------------------------------------------------------------===//

bool Server::run() {
  while (true) {
    bool more = true;
    while (more)
      if (!handleNext(more))
        return stopped;
    wait();
  }
}

bool Server::handleNext(bool &more) {
  auto message = messages.next();
  more = false;
  if (std::holds_alternative<NoMessage>(message))
    return true;
  if (std::holds_alternative<EndOfMessages>(message))
    support::fail("standard input ended without 'exit'");
  more = true;
  if (auto *bad = std::get_if<BadMessage>(&message)) {
    transport.reply(nullptr, make_error<LSPError>(bad->problem, static_cast<ErrorCode>(bad->code)));
    return true;
  }
  auto &object = std::get<json::Object>(message);
  const json::Value *id = object.get("id"), *params = object.get("params");
  const std::optional<StringRef> method = object.getString("method");
  if (!method) // an answer to what this server has not asked
    return true;
  const json::Value given = params ? *params : json::Value(nullptr);
  if (!id)
    return handler.onNotify(*method, given);
  if (stopped) {
    transport.reply(*id,
                    make_error<LSPError>("the server is shut down", ErrorCode::InvalidRequest));
  } else if (!initialized && *method != "initialize") {
    transport.reply(*id, make_error<LSPError>("the first request has to be 'initialize'",
                                              ErrorCode::ServerNotInitialized));
  } else if (initialized && *method == "initialize") {
    transport.reply(*id, make_error<LSPError>("'initialize' is the first request alone",
                                              ErrorCode::InvalidRequest));
  } else {
    return handler.onCall(*method, given, *id);
  }
  return true;
}

/// Until there is something to read. Documents are worked on once nothing more has come: of what is
/// typed quickly, the last version.
void Server::wait() {
  auto pollAll = [&](std::vector<pollfd> &all, int milliseconds) {
    return ::poll(all.data(), all.size(), milliseconds);
  };
  std::vector<pollfd> input = {{messages.waitAt(), POLLIN, 0}};
  if (pollAll(input, 0) <= 0) {
    for (auto &[uri, document] : documents)
      if (document->isStale())
        document->work(configuration);
  }

  std::vector<pollfd> all = {{messages.waitAt(), POLLIN, 0}};
  int milliseconds = -1;
  for (auto &[uri, document] : documents) {
    if (const Worker *worker = document->process()) {
      all.push_back({worker->descriptor(), POLLIN, 0});
      if (const auto deadline = worker->deadline()) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - Worker::Clock::now());
        const int most = std::max(0, static_cast<int>(left.count()) + 1);
        milliseconds = milliseconds < 0 ? most : std::min(milliseconds, most);
      }
    } else if (document->isWithoutProcess()) {
      milliseconds = 0;
    }
  }
  pollAll(all, milliseconds);
  for (auto &[uri, document] : documents) {
    document->advance([&, &uri = uri, &document = document](Value diagnostics) {
      publish(uri, document->version(), std::move(diagnostics));
    });
  }
  if (all[0].revents != 0)
    messages.fill();
}

void Server::publish(const std::string &uri, std::optional<int64_t> version, Value diagnostics) {
  json::Object params{{"uri", uri}, {"diagnostics", std::move(diagnostics)}};
  if (version)
    params["version"] = *version;
  publishDiagnostics(std::move(params));
}

//===-- Life cycle and settings -------------------------------------------------------------===//

void Server::onInitialize(const Params &params, Reply reply) {
  initialized = true;
  configure(lookup(params.value, {"initializationOptions"}));
  reply(
      json::Object{{"capabilities",
                    json::Object{
                        {"positionEncoding", "utf-16"},
                        {"textDocumentSync", json::Object{{"openClose", true}, {"change", 2}}},
                        {"hoverProvider", true},
                        {"definitionProvider", true},
                        {"referencesProvider", true},
                        {"documentSymbolProvider", true},
                        {"completionProvider",
                         json::Object{{"triggerCharacters", json::Array{"%", "@", ".", "=", "("}}}},
                    }},
                   {"serverInfo", json::Object{{"name", "hydra-lsp"}, {"version", "0.1"}}}});
}

void Server::onShutdown(const Params &, Reply reply) {
  stopped = true;
  for (auto &[uri, document] : documents) // what is asked of them has an answer
    document->invalidate();
  documents.clear();
  reply(nullptr);
}

/// The editor's settings, which may be those of many programs, ours under `hydra`.
void Server::configure(const Value *given) {
  if (!given)
    return;
  if (const json::Value *own = lookup(*given, {"hydra"}))
    given = own;
  configuration = flags;
  const json::Object *object = given->getAsObject();
  if (!object)
    return;
  if (const std::string problems = configuration.read(*object); !problems.empty())
    showMessage(json::Object{{"type", 2}, {"message", "hydra-lsp: " + json::fixUTF8(problems)}});
}

void Server::onConfiguration(const Params &params) {
  configure(lookup(params.value, {"settings"}));
  for (auto &[uri, document] : documents)
    document->invalidate();
}

//===-- Documents ---------------------------------------------------------------------------===//

Document *Server::find(const Params &params) {
  const auto uri = textAt(params.value, {"textDocument", "uri"});
  auto found = uri ? documents.find(*uri) : documents.end();
  return found == documents.end() ? nullptr : found->second.get();
}

Document *Server::find(const Params &params, Reply &reply) {
  Document *document = find(params);
  if (!document)
    reply(make_error<LSPError>("the parameters name no document that is open",
                               ErrorCode::InvalidParams));
  return document;
}

void Server::onOpen(const Params &params) {
  const auto uri = textAt(params.value, {"textDocument", "uri"});
  auto text = textAt(params.value, {"textDocument", "text"});
  const json::Value *version = lookup(params.value, {"textDocument", "version"});
  if (!uri || !text)
    return;
  std::unique_ptr<Document> &document = documents[*uri];
  if (document) // what is asked of it has an answer
    document->invalidate();
  document = std::make_unique<Document>(*uri, version ? version->getAsInteger().value_or(0) : 0,
                                        std::move(*text));
}

void Server::onChange(const Params &params) {
  Document *document = find(params);
  const json::Value *list = lookup(params.value, {"contentChanges"});
  if (!document || !list || !list->getAsArray())
    return;
  std::vector<Document::Change> changes;
  for (const json::Value &change : *list->getAsArray())
    if (auto text = textAt(change, {"text"}))
      changes.push_back({read<Range>(lookup(change, {"range"})), std::move(*text)});
  const json::Value *version = lookup(params.value, {"textDocument", "version"});
  document->change(version ? version->getAsInteger().value_or(0) : 0, changes);
}

void Server::onClose(const Params &params) {
  if (Document *document = find(params)) {
    const std::string uri = document->uri();
    document->invalidate();
    documents.erase(uri);
    publish(uri, std::nullopt, json::Array());
  }
}

//===-- Questions ---------------------------------------------------------------------------===//

void Server::onHover(const Params &params, Reply reply) {
  Document *document = find(params, reply);
  if (!document)
    return;
  document->hover(
      positionIn(params.value), configuration,
      [reply = std::move(reply)](std::optional<Value> hover) mutable {
        if (hover)
          reply(std::move(*hover));
        else
          reply(make_error<LSPError>("the text has changed meanwhile", ErrorCode::ContentModified));
      });
}

json::Value Server::locations(const Document &document, ArrayRef<Range> ranges) const {
  json::Array list;
  for (const Range &range : ranges)
    list.push_back(json::Object{{"uri", document.uri()}, {"range", toJSON(range)}});
  return list;
}

void Server::onDefinition(const Params &params, Reply reply) {
  if (Document *document = find(params, reply))
    reply(locations(*document, declarationsAt(document->names(), document->text().offsetOf(
                                                                     positionIn(params.value)))));
}

void Server::onReferences(const Params &params, Reply reply) {
  Document *document = find(params, reply);
  if (!document)
    return;
  const json::Value *include = lookup(params.value, {"context", "includeDeclaration"});
  reply(locations(*document, referencesAt(document->names(),
                                          document->text().offsetOf(positionIn(params.value)),
                                          include && include->getAsBoolean().value_or(false))));
}

void Server::onOutline(const Params &params, Reply reply) {
  if (Document *document = find(params, reply)) {
    json::Array list;
    for (const llvm::lsp::DocumentSymbol &symbol : outlineOf(document->names()))
      list.push_back(toJSON(symbol));
    reply(std::move(list));
  }
}

void Server::onCompletion(const Params &params, Reply reply) {
  if (Document *document = find(params, reply)) {
    llvm::lsp::CompletionList list;
    list.items =
        completionsAt(document->names(), document->text().offsetOf(positionIn(params.value)));
    reply(toJSON(list));
  }
}

} // namespace hydra::lsp
