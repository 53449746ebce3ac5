// Windows, and documents packed by best fit.
#include "runtime/data/Rows.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <map>

using namespace hydra::data;
using hydra::support::fail;

namespace {

/// Behind a number of tokens or a word for them.
const char *partText(Split split) {
  return split == Split::training ? " to train on" : split == Split::heldOut ? " held out" : "";
}

uint64_t trainedOn(const TokenFiles &files) { return files.tokens() - files.tokens() / 10; }

class WindowRows : public RowSet {
public:
  WindowRows(const TokenFiles &files, const Windows &windows) : files(files), windows(windows) {}
  uint64_t count() const override { return windows.count; }
  void read(uint64_t index, size_t row, BatchRows &batch) const override {
    readWindow(files, windows, index, row, batch);
  }

private:
  const TokenFiles &files;
  Windows windows;
};

class PackedRows : public RowSet {
public:
  PackedRows(const TokenFiles &files, Split split, uint64_t length) : files(files), length(length) {
    // Documents that begin among the tokens to train on are trained on.
    const uint64_t border = trainedOn(files);
    const auto isPart = [&](uint64_t first) {
      return split == Split::all || (first < border) == (split == Split::training);
    };
    uint64_t begin = 0;
    for (const uint64_t end : files.documentEnds()) {
      if (isPart(begin))
        addDocument(begin, end);
      begin = end;
    }
    pack();
  }

  uint64_t count() const override { return firstOf.size() - 1; }

  void read(uint64_t index, size_t row, BatchRows &batch) const override {
    std::span<int32_t> tokens = std::span(batch.tokens).subspan(row * length, length),
                       labels = std::span(batch.labels).subspan(row * length, length);
    for (uint64_t i = firstOf[index]; i < firstOf[index + 1]; ++i) {
      const Piece &piece = pieces[order[i]];
      files.read(piece.begin, tokens.first(piece.size));
      // Behind its end a document has no label.
      const size_t count = piece.size - (piece.ends ? 1 : 0);
      files.readLabels(piece.begin + 1, labels.first(count));
      std::fill(labels.begin() + static_cast<ptrdiff_t>(count),
                labels.begin() + static_cast<ptrdiff_t>(piece.size), kIgnoredLabel);
      tokens = tokens.subspan(piece.size);
      labels = labels.subspan(piece.size);
    }
    std::fill(tokens.begin(), tokens.end(), static_cast<int32_t>(files.kind()->end));
    std::fill(labels.begin(), labels.end(), kIgnoredLabel);
  }

  double filled() const override {
    uint64_t tokens = 0;
    for (const Piece &piece : pieces)
      tokens += piece.size;
    return double(tokens) / (double(count()) * double(length));
  }

private:
  /// Of a document, what one row takes.
  struct Piece {
    uint64_t begin;
    uint32_t size;
    bool ends; // the document ends with it
  };

  void addDocument(uint64_t begin, uint64_t end) {
    for (; begin < end; begin += length) {
      const uint64_t size = std::min(length, end - begin);
      pieces.push_back({begin, static_cast<uint32_t>(size), begin + size == end});
    }
  }

  /// Each piece goes to the open row in which it leaves the least room, or opens one.
  void pack() {
    constexpr size_t mostOpen = 1024;
    std::multimap<uint64_t, uint64_t> open; // rows by the room that is left
    std::vector<uint64_t> rowOf(pieces.size());
    uint64_t rows = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const auto best = open.lower_bound(pieces[i].size);
      uint64_t row = rows, room = length;
      if (best != open.end()) {
        room = best->first;
        row = best->second;
        open.erase(best);
      } else {
        ++rows;
      }
      rowOf[i] = row;
      if (room > pieces[i].size)
        open.emplace(room - pieces[i].size, row);
      if (open.size() > mostOpen)
        open.erase(open.begin()); // the fullest
    }
    firstOf.resize(rows + 1);
    for (const uint64_t row : rowOf)
      ++firstOf[row + 1];
    for (uint64_t row = 0; row < rows; ++row)
      firstOf[row + 1] += firstOf[row];
    order.resize(pieces.size());
    std::vector<uint64_t> next(firstOf.begin(), firstOf.end() - 1);
    for (size_t i = 0; i < pieces.size(); ++i)
      order[next[rowOf[i]]++] = i;
  }

  const TokenFiles &files;
  uint64_t length;
  std::vector<Piece> pieces;
  std::vector<uint64_t> order, firstOf; // pieces, row by row; where each row begins among them
};

} // namespace

Windows Windows::of(const TokenFiles &files, Split split, uint64_t length, uint64_t atLeast) {
  const uint64_t border = trainedOn(files);
  const uint64_t begin = split == Split::heldOut ? border : 0;
  const uint64_t tokens = (split == Split::training ? border : files.tokens()) - begin;
  if (tokens < atLeast * length + 1)
    fail("the data has {} tokens; of the {}{} not even {} {} of {} can be made", files.tokens(),
         tokens, partText(split), atLeast, atLeast == 1 ? "window" : "windows", length + 1);
  return {begin, (tokens - 1) / length, length};
}

void hydra::data::readWindow(const TokenFiles &files, const Windows &windows, uint64_t index,
                             size_t row, BatchRows &batch) {
  const size_t length = windows.length;
  const uint64_t first = windows.begin + index * length;
  files.read(first, std::span(batch.tokens).subspan(row * length, length));
  const std::span<int32_t> labels = std::span(batch.labels).subspan(row * length, length);
  if (files.masked())
    return files.readLabels(first + 1, labels);
  // The labels are the same tokens but for the first, and one more.
  std::copy_n(batch.tokens.begin() + static_cast<ptrdiff_t>(row * length + 1), length - 1,
              labels.begin());
  files.read(first + length, labels.last(1));
}

std::unique_ptr<RowSet> hydra::data::windowsOf(const TokenFiles &files, Split split,
                                               uint64_t length, uint64_t atLeast) {
  return std::make_unique<WindowRows>(files, Windows::of(files, split, length, atLeast));
}

std::unique_ptr<RowSet> hydra::data::packedRowsOf(const TokenFiles &files, Split split,
                                                  uint64_t length, uint64_t atLeast) {
  if (!files.kind() || files.kind()->end < 0)
    fail("rows of whole documents are made of shards whose documents end with a token (hydra-data "
         "--end); the data has none");
  auto rows = std::make_unique<PackedRows>(files, split, length);
  if (rows->count() < atLeast)
    fail("the data has {} tokens; of the documents{} not even {} {} of {} can be filled",
         files.tokens(), partText(split), atLeast, atLeast == 1 ? "row" : "rows", length);
  return rows;
}
