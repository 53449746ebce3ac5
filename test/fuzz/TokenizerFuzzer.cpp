// libFuzzer: no bytes whatsoever make a tokenizer file, and text behind it, do more than throw a
// one-line Error; ids are within their limit, and a stream says what decoding says, but for bytes
// that are no text.
#include "runtime/support/Error.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/Utf8.h"

#include <cstdlib>
#include <string_view>

using namespace hydra::text;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view all(reinterpret_cast<const char *>(data), size);
  // The file, a zero, the text.
  const size_t end = std::min(all.find('\0'), all.size());
  const std::string_view text = all.substr(std::min(end + 1, all.size()));
  try {
    const std::unique_ptr<Tokenizer> tokenizer = parseTokenizer(all.substr(0, end), "input");
    const std::vector<int32_t> ids = tokenizer->encode(text.substr(0, 4096));
    for (const int32_t id : ids)
      if (id < 0 || id >= tokenizer->idLimit())
        std::abort();
    const std::string shown = tokenizer->decode(ids, Specials::show);
    if (findInvalidUtf8(shown) != std::string_view::npos)
      std::abort();
    const std::unique_ptr<TextStream> stream = tokenizer->stream(Specials::show);
    std::string streamed;
    for (const int32_t id : ids)
      streamed += stream->add(id);
    streamed += stream->finish();
    if (streamed != shown && shown.find(kReplacementCharacter) == std::string::npos)
      std::abort();
  } catch (const hydra::support::Error &error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos)
      std::abort();
  }
  return 0;
}
