// One open document: its text, what is known of it, and the process that works on it.
#pragma once

#include "tools/hydra-lsp/Configuration.h"
#include "tools/hydra-lsp/Names.h"
#include "tools/hydra-lsp/Worker.h"

#include "llvm/ADT/FunctionExtras.h"
#include "llvm/Support/JSON.h"

#include <deque>

namespace hydra::lsp {

class Document {
public:
  Document(std::string uri, int64_t version, std::string content);

  const std::string &uri() const { return name; }
  int64_t version() const { return number; }
  const Text &text() const { return *content; }
  /// Of the version that is there.
  const Names &names();

  /// Another version: what is asked of the one before is answered with nothing. A range of null is
  /// the whole text.
  struct Change {
    std::optional<Range> range;
    std::string text;
  };
  void change(int64_t version, llvm::ArrayRef<Change> changes);
  /// The same text is to be worked on anew: the configuration has changed.
  void invalidate();

  /// Whether the version that is there has not been worked on.
  bool isStale() const { return stale; }
  /// Starts to work on it.
  void work(const Configuration &configuration);

  /// `reply` is given a hover of the protocol, or null; without a process it is made from the text.
  using Reply = llvm::unique_function<void(std::optional<llvm::json::Value>)>;
  /// Its argument is nullopt where the text has changed meanwhile.
  void hover(Position position, const Configuration &configuration, Reply reply);

  const Worker *process() const { return worker.get(); }
  /// Whether `advance` has something to say without a process: there could be none.
  bool isWithoutProcess() const { return !worker && !stale && !published; }
  /// Takes what the process has sent, and ends one that is lost. `publish` is given the list of
  /// diagnostics of the version.
  void advance(llvm::function_ref<void(llvm::json::Value)> publish);

private:
  struct Question {
    size_t offset;
    Reply reply;
  };
  llvm::json::Value hoverFromText(size_t offset);

  std::string name;
  int64_t number;
  std::unique_ptr<Text> content;
  std::unique_ptr<Names> index;
  bool stale = true;
  bool published = false; ///< whether this version's diagnostics are
  std::unique_ptr<Worker> worker;
  std::deque<Question> questions; ///< that the process has, in their order
};

} // namespace hydra::lsp
