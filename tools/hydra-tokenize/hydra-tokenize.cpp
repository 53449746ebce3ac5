// hydra-tokenize: text to tokens and back, by the tokenizer of a file.
#include "runtime/data/TokenFileWriter.h"
#include "runtime/report/Units.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/NamedFiles.h"
#include "runtime/support/ProblemOf.h"
#include "runtime/support/Shown.h"
#include "runtime/support/StandardStreams.h"
#include "runtime/text/Tokenizer.h"
#include "tools/common/ParseArguments.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>

using namespace hydra;
using support::fail;

namespace {

struct Options {
  std::vector<std::string> files;
  std::string tokenizer, output;
  std::optional<std::string> separator, encode, decode;
  bool specials = false;
};

void print(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    fail("cannot write to standard output: {}", support::errnoText(errno));
}

text::Around aroundOf(const Options &options) {
  return options.specials ? text::Around::specialTokens : text::Around::nothing;
}

/// Without line breaks and other characters that a terminal obeys.
std::string visible(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\\')
      out += "\\\\";
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

/// A line a token: its id, and its text. Tokens in the middle of a character say so with U+FFFD.
void showTokens(const Options &options, const text::Tokenizer &tokenizer) {
  for (const int32_t id : tokenizer.encode(*options.encode, aroundOf(options)))
    print(fmt::format("{:>8}  '{}'\n", id,
                      visible(tokenizer.decode(std::array{id}, text::Specials::show))));
}

void showText(const Options &options, const text::Tokenizer &tokenizer) {
  print(tokenizer.decode(text::makeIdTokenizer()->encode(*options.decode), text::Specials::show) +
        "\n");
}

std::vector<int32_t> encodeFile(const std::string &path, const Options &options,
                                const text::Tokenizer &tokenizer, uint64_t &bytes) {
  const support::InputFile file(path);
  bytes += file.size();
  const std::vector<std::byte> content = file.readAll();
  try {
    return tokenizer.encode({reinterpret_cast<const char *>(content.data()), content.size()},
                            aroundOf(options));
  } catch (const support::Error &error) {
    fail("{}: {}", file.name(), error.what());
  }
}

void writeTokens(const Options &options, const text::Tokenizer &tokenizer) {
  std::vector<int32_t> separator;
  if (options.separator) {
    const std::optional<int32_t> id = tokenizer.find(*options.separator);
    if (!id)
      fail("--separator: '{}' is no token of {}", support::shown(*options.separator),
           support::shownPath(options.tokenizer));
    separator.push_back(*id);
  }
  std::vector<support::NamedFile> inputs = {{"--tokenizer", options.tokenizer}};
  for (const std::string &file : options.files)
    inputs.push_back({"the text", file});
  support::checkOutputs(inputs, {{"-o", options.output}});
  data::TokenFileWriter writer(options.output, tokenizer.idLimit());
  uint64_t bytes = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string &file : options.files) {
    writer.write(encodeFile(file, options, tokenizer, bytes));
    writer.write(separator);
  }
  if (writer.tokens() == 0)
    fail("{}: there is no text in it", support::shownPath(options.files[0]));
  writer.commit();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  print(fmt::format("{}: {} tokens of uint{}, {:.2f} bytes of text each ({:.3g} MB/s)\n",
                    support::shownPath(options.output), report::countText(writer.tokens()),
                    writer.width() * 8, double(bytes) / double(writer.tokens()),
                    double(bytes) * 1e-6 / seconds.count()));
}

void run(const Options &options) {
  const bool shows = options.encode || options.decode;
  if (shows && (!options.output.empty() || !options.files.empty()))
    fail("--{} shows what it makes; files of text and -o are for writing tokens",
         options.encode ? "encode" : "decode");
  if (shows && options.separator)
    fail("--separator stands between files of text, which --{} does not read",
         options.encode ? "encode" : "decode");
  if (options.decode && options.specials)
    fail(
        "--special-tokens is for text that is encoded; --decode shows all tokens that it is given");
  if (!shows && (options.output.empty() || options.files.empty()))
    fail("say which files of text to encode, and with -o where to; or use --encode or --decode");
  const auto tokenizer = text::readTokenizer(options.tokenizer);
  if (options.encode)
    showTokens(options, *tokenizer);
  else if (options.decode)
    showText(options, *tokenizer);
  else
    writeTokens(options, *tokenizer);
}

} // namespace

int main(int argc, char **argv) {
  support::reserveStandardStreams();
  Options options;
  CLI::App app("Encodes text by a tokenizer as Hugging Face has it, and writes token files for "
               "hydra-run --data: encoded once, trained on often.");
  app.add_option("text", options.files, "files of text; their tokens follow each other");
  app.add_option("--tokenizer", options.tokenizer, "tokenizer.json, or the folder that it is in")
      ->required()
      ->type_name("FILE");
  app.add_option("-o", options.output,
                 "token file to write, with llm.c's header: uint16 where that is enough, else "
                 "uint32")
      ->type_name("FILE");
  app.add_option("--separator", options.separator,
                 "a token to put behind every file, <|endoftext|> for example")
      ->type_name("TOKEN");
  app.add_flag("--special-tokens", options.specials,
               "put around every text what the tokenizer has for that");
  CLI::Option *encode =
      app.add_option("--encode", options.encode, "show the tokens of this")->type_name("TEXT");
  app.add_option("--decode", options.decode, "show the text of these ids")
      ->type_name("IDS")
      ->excludes(encode);
  app.footer("Examples:\n"
             "  hydra-tokenize text.txt --tokenizer=model/tokenizer.json -o tokens.bin\n"
             "  hydra-tokenize --tokenizer=model --encode 'To be, or not to be'");
  if (const auto status = parseArguments(app, argc, argv, "hydra-tokenize"))
    return *status;
  support::ignoreFileSizeSignal();
  std::signal(SIGPIPE, SIG_IGN); // a reader that has gone is then an error of writing
  try {
    run(options);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "hydra-tokenize: %s\n", support::problemOf(error));
    return 1;
  }
  return 0;
}
