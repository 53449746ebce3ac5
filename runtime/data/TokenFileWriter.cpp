// Writing token files: the header last, when the number of tokens is known.
#include "runtime/data/TokenFileWriter.h"

#include "runtime/data/TokenFileHeader.h"
#include "runtime/support/Error.h"
#include "runtime/support/OutputFile.h"

#include <cstring>
#include <limits>
#include <vector>

using namespace hydra::data;

namespace {

constexpr int64_t kShortIds = 65536;

} // namespace

TokenFileWriter::TokenFileWriter(const std::filesystem::path &path, int64_t idLimit)
    : file(path), bytes(idLimit <= kShortIds ? 2 : 4) {
  file.write(std::vector<std::byte>(kHeaderBytes));
}

void TokenFileWriter::write(std::span<const int32_t> ids) {
  constexpr uint64_t most = std::numeric_limits<int32_t>::max();
  if (count + ids.size() > most)
    support::fail("more than {} tokens do not fit into one token file; write several", most);
  std::vector<std::byte> packed(ids.size() * bytes);
  for (size_t i = 0; i < ids.size(); ++i)
    std::memcpy(&packed[i * bytes], &ids[i], bytes); // little-endian, as x86-64 is
  file.write(packed);
  count += ids.size();
}

void TokenFileWriter::commit() {
  std::array<int32_t, 3> header = {};
  for (const HeaderKind &kind : kHeaders)
    if (kind.width == bytes)
      header = {kind.magic, kind.version, static_cast<int32_t>(count)};
  support::OutputFile whole(file.temporaryPath(), kHeaderBytes + count * bytes);
  whole.write(0, std::as_bytes(std::span(header)));
  whole.close();
  file.commit();
}
