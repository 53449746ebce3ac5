// The ring between the threads that read and the caller, or none of it where the caller reads.
#include "runtime/data/Loader.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <new>
#include <system_error>

using namespace hydra::data;
using hydra::support::fail;

Loader::Loader(std::unique_ptr<const RowOrder> rowsInOrder, const LoaderOptions &options)
    : order(std::move(rowsInOrder)), settings(options), claimed(options.first),
      delivered(options.first) {
  if (settings.threads == 0 || settings.ahead == 0) // one without the other reads nothing ahead
    settings.threads = settings.ahead = 0;
  reserve();
  startThreads();
}

/// A slot more than are read ahead: that of the caller.
void Loader::reserve() {
  const uint64_t tokens = settings.batch / settings.parts * settings.length;
  try {
    slots.resize(static_cast<size_t>(settings.ahead) + 1);
    for (Slot &slot : slots) {
      slot.rows.tokens.resize(tokens);
      slot.rows.labels.resize(tokens);
    }
  } catch (const std::bad_alloc &) {
    fail("no memory for {} batches of {} tokens; a smaller --prefetch-batches would help",
         settings.ahead + 1, tokens);
  }
}

void Loader::startThreads() {
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
    // The slot of the batch that the caller holds is none of these.
    const auto hasRoom = [this] {
      return claimed - delivered < static_cast<uint64_t>(settings.ahead);
    };
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
  for (uint64_t row = 0; row < rows; ++row)
    order->read(slot.batch * settings.batch + settings.part * rows + row, row, slot.rows);
}

const BatchRows &Loader::next() {
  Slot &slot = slots[delivered % slots.size()];
  if (threads.empty()) {
    slot.batch = delivered;
    fill(slot); // a batch that cannot be read is tried again at every further call
    ++delivered;
  } else {
    awaitBatch(slot);
  }
  return slot.rows;
}

void Loader::awaitBatch(Slot &slot) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return slot.full && slot.batch == delivered; });
  if (slot.error)
    std::rethrow_exception(slot.error); // and again at every further call
  slot.full = false;
  ++delivered;
  changed.notify_all(); // the slot of the batch before is free
}

int Loader::ready() const {
  const std::lock_guard lock(mutex);
  return static_cast<int>(
      std::count_if(slots.begin(), slots.end(), [](const Slot &slot) { return slot.full; }));
}
