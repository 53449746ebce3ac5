// The order of windows, and the ring between the threads that read and the caller.
#include "runtime/data/Loader.h"

#include "runtime/support/Error.h"
#include "runtime/support/Philox.h"

#include <algorithm>
#include <bit>
#include <system_error>

using namespace hydra::data;
using hydra::support::fail;

namespace {

Windows windowsOf(const TokenFiles &files, const char *part, uint64_t begin, uint64_t end,
                  uint64_t length, uint64_t atLeast) {
  const uint64_t tokens = end - begin;
  if (tokens < atLeast * length + 1)
    fail("the data has {} tokens; of the {} {} not even {} {} of {} can be made", files.tokens(),
         tokens, part, atLeast, atLeast == 1 ? "window" : "windows", length + 1);
  return {begin, (tokens - 1) / length, length};
}

uint64_t split(const TokenFiles &files) { return files.tokens() - files.tokens() / 10; }

} // namespace

Windows Windows::training(const TokenFiles &files, uint64_t length, uint64_t atLeast) {
  return windowsOf(files, "to train on", 0, split(files), length, atLeast);
}

Windows Windows::heldOut(const TokenFiles &files, uint64_t length, uint64_t atLeast) {
  return windowsOf(files, "held out", split(files), files.tokens(), length, atLeast);
}

void hydra::data::readWindow(const TokenFiles &files, const Windows &windows, uint64_t index,
                             size_t row, BatchRows &batch) {
  const size_t length = windows.length;
  const uint64_t first = windows.begin + index * length;
  files.read(first, std::span(batch.tokens).subspan(row * length, length));
  // The labels are the same tokens but for the first, and one more.
  const std::span<int32_t> labels = std::span(batch.labels).subspan(row * length, length);
  std::copy_n(batch.tokens.begin() + static_cast<ptrdiff_t>(row * length + 1), length - 1,
              labels.begin());
  files.read(first + length, labels.last(1));
}

uint64_t hydra::data::shuffled(uint64_t index, uint64_t count, uint64_t seed, uint64_t epoch) {
  if (count <= 1)
    return 0;
  const int half = (std::bit_width(count - 1) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  const support::Philox keys(seed, "shuffle", epoch);
  constexpr uint64_t rounds = 6;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint64_t round = 0; round < rounds; ++round) {
      const uint64_t mixed = left ^ (keys.bits64(right * rounds + round) & mask);
      left = right;
      right = mixed;
    }
    index = left << half | right;
  } while (index >= count); // at most a few times: the power of four is below 4 * count
  return index;
}

Loader::Loader(const TokenFiles &files, const LoaderOptions &options)
    : files(files), settings(options), windows(Windows::training(files, options.length, 1)),
      slots(static_cast<size_t>(options.ring)), claimed(options.first), delivered(options.first) {
  const uint64_t rows = settings.batch / settings.parts;
  for (Slot &slot : slots) {
    slot.rows.tokens.resize(rows * settings.length);
    slot.rows.labels.resize(rows * settings.length);
  }
  for (int i = 0; i < settings.threads; ++i) {
    try {
      threads.emplace_back([this](const std::stop_token &stop) { work(stop); });
    } catch (const std::system_error &error) {
      fail(
          "cannot start thread {} of {} that read data ahead: {}; a smaller --prefetch-threads, or "
          "a higher limit of threads (ulimit -u), would help",
          i + 1, settings.threads, error.code().message());
    }
  }
}

Loader::~Loader() {
  for (std::jthread &thread : threads)
    thread.request_stop();
  changed.notify_all();
}

void Loader::work(const std::stop_token &stop) {
  std::unique_lock lock(mutex);
  while (true) {
    // The slot of the batch that the caller holds is not free.
    const auto hasRoom = [this] { return claimed - delivered + (holding ? 1 : 0) < slots.size(); };
    if (!changed.wait(lock, stop, hasRoom) || stop.stop_requested())
      return;
    Slot &slot = slots[claimed % slots.size()];
    slot.batch = claimed++;
    lock.unlock();
    try {
      fill(slot);
    } catch (...) {
      slot.error = std::current_exception();
    }
    lock.lock();
    slot.full = true;
    changed.notify_all();
  }
}

void Loader::fill(Slot &slot) const {
  const uint64_t rows = settings.batch / settings.parts;
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t place = slot.batch * settings.batch + settings.part * rows + row;
    const uint64_t window =
        shuffled(place % windows.count, windows.count, settings.seed, place / windows.count);
    readWindow(files, windows, window, row, slot.rows);
  }
}

const BatchRows &Loader::next() {
  std::unique_lock lock(mutex);
  holding = false; // of the batch before
  changed.notify_all();
  Slot &slot = slots[delivered % slots.size()];
  changed.wait(lock, [&] { return slot.full && slot.batch == delivered; });
  if (slot.error)
    std::rethrow_exception(slot.error); // and again at every further call
  slot.full = false;
  ++delivered;
  holding = true;
  return slot.rows;
}

int Loader::ready() const {
  const std::lock_guard lock(mutex);
  return static_cast<int>(
      std::count_if(slots.begin(), slots.end(), [](const Slot &slot) { return slot.full; }));
}
