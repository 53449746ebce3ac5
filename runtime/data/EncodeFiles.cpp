// A ring of chunks: one thread reads, several encode, the caller takes.
#include "runtime/data/EncodeFiles.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

using namespace hydra::data;
namespace support = hydra::support;
namespace text = hydra::text;

namespace {

class Ring {
public:
  Ring(std::span<const TextInput> files, const text::Tokenizer &tokenizer, int threads)
      : files(files), tokenizer(tokenizer), slots(static_cast<size_t>(threads) * 2 + 1) {
    try {
      workers.emplace_back([this] { read(); });
      for (int i = 0; i < threads; ++i)
        workers.emplace_back([this] { encode(); });
    } catch (const std::system_error &error) {
      const size_t started = workers.size();
      stop();
      support::fail("cannot start thread {} of {}: {}; fewer --threads would help", started + 1,
                    threads + 1, error.code().message());
    }
  }
  ~Ring() { stop(); }
  Ring(const Ring &) = delete;
  Ring &operator=(const Ring &) = delete;

  /// The next chunk, until the next call; null at the end.
  const EncodedChunk *next() {
    std::unique_lock lock(mutex);
    if (holding) {
      slotOf(taken - 1).state = State::empty;
      holding = false;
      changed.notify_all();
    }
    changed.wait(
        lock, [&] { return slotOf(taken).state == State::encoded || (ended && taken == filled); });
    Slot &slot = slotOf(taken);
    if (slot.state != State::encoded) {
      if (readError)
        std::rethrow_exception(readError);
      return nullptr;
    }
    if (slot.error)
      std::rethrow_exception(slot.error);
    ++taken;
    holding = true;
    return &slot.encoded;
  }

private:
  enum class State { empty, filled, encoded };
  struct Slot {
    State state = State::empty;
    Chunk chunk;
    const TextFormat *format = nullptr;
    EncodedChunk encoded;
    std::exception_ptr error;
  };

  Slot &slotOf(uint64_t number) { return slots[number % slots.size()]; }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    workers.clear(); // waits for them
  }

  bool isStopping() {
    const std::lock_guard lock(mutex);
    return stopping;
  }

  void read() {
    std::exception_ptr error;
    try {
      for (const TextInput &file : files)
        if (!isStopping())
          readFile(file);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    readError = error;
    ended = true;
    changed.notify_all();
  }

  void readFile(const TextInput &file) {
    const std::string name = support::shownPath(file.path);
    ChunkReader reader(unpacked(openFile(file.path)), name, file.format, tokenizer);
    while (true) {
      Chunk chunk;
      if (!reader.next(chunk))
        return;
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || slotOf(filled).state == State::empty; });
      if (stopping)
        return;
      Slot &slot = slotOf(filled++);
      slot.chunk = std::move(chunk);
      slot.format = &file.format;
      slot.state = State::filled;
      changed.notify_all();
    }
  }

  void encode() {
    const std::unique_ptr<text::TextEncoder> encoder = tokenizer.encoder();
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock,
                   [&] { return stopping || claimed < filled || (ended && claimed == filled); });
      if (stopping || claimed == filled)
        return;
      Slot &slot = slotOf(claimed++);
      lock.unlock();
      slot.encoded.ids.clear();
      slot.encoded.parts.clear();
      slot.encoded.textBytes = slot.encoded.leftOut = 0;
      try {
        encodeChunk(slot.chunk, *slot.format, *encoder, slot.encoded);
      } catch (...) {
        slot.error = std::current_exception();
      }
      lock.lock();
      slot.state = State::encoded;
      changed.notify_all();
    }
  }

  std::span<const TextInput> files;
  const text::Tokenizer &tokenizer;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Slot> slots; // chunk n is in slot n % size
  uint64_t filled = 0, claimed = 0, taken = 0;
  bool ended = false, stopping = false, holding = false;
  std::exception_ptr readError;
  std::vector<std::jthread> workers;
};

} // namespace

void hydra::data::encodeFiles(std::span<const TextInput> files, const text::Tokenizer &tokenizer,
                              int threads, const std::function<void(const EncodedChunk &)> &take) {
  Ring ring(files, tokenizer, threads);
  while (const EncodedChunk *chunk = ring.next())
    take(*chunk);
}
