// The server: which methods of the protocol it has, and when it works on what.
#pragma once

#include "tools/hydra-lsp/Document.h"
#include "tools/hydra-lsp/Messages.h"

#include "llvm/Support/LSP/Transport.h"

#include <map>

namespace hydra::lsp {

class Server {
public:
  /// `configuration`: what flags say, below what the editor says.
  Server(int input, llvm::raw_ostream &output, Configuration configuration);

  /// Answers until `exit`. Whether `shutdown` came before it. Throws support::Error when the stream
  /// ends without `exit` or is none of the protocol.
  bool run();

private:
  using Value = llvm::json::Value;
  /// What a request or notification has with it, as it is.
  struct Params {
    Value value = nullptr;
    friend bool fromJSON(const Value &value, Params &params, llvm::json::Path) {
      params.value = value;
      return true;
    }
  };
  using Reply = llvm::lsp::Callback<Value>;

  void onInitialize(const Params &params, Reply reply);
  void onShutdown(const Params &params, Reply reply);
  void onOpen(const Params &params);
  void onChange(const Params &params);
  void onClose(const Params &params);
  void onConfiguration(const Params &params);
  void onHover(const Params &params, Reply reply);
  void onDefinition(const Params &params, Reply reply);
  void onReferences(const Params &params, Reply reply);
  void onOutline(const Params &params, Reply reply);
  void onCompletion(const Params &params, Reply reply);

  /// False after `exit`.
  bool handleNext(bool &more);
  void wait();
  void configure(const Value *given);
  /// The document that parameters name; null, with a reply of why not, where there is none.
  Document *find(const Params &params, Reply &reply);
  Document *find(const Params &params);
  void publish(const std::string &uri, std::optional<int64_t> version, Value diagnostics);
  Value locations(const Document &document, llvm::ArrayRef<Range> ranges) const;

  Messages messages;
  llvm::lsp::JSONTransport transport;
  llvm::lsp::MessageHandler handler;
  llvm::lsp::OutgoingNotification<Value> publishDiagnostics, showMessage;
  const Configuration flags;
  Configuration configuration;
  std::map<std::string, std::unique_ptr<Document>> documents; ///< by URI
  bool initialized = false, stopped = false;
};

} // namespace hydra::lsp
