// The ring between the threads that read and the caller.
#include "runtime/data/Loader.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <system_error>

using namespace hydra::data;
using hydra::support::fail;

Loader::Loader(std::unique_ptr<const RowOrder> rowsInOrder, const LoaderOptions &options)
    : order(std::move(rowsInOrder)), settings(options), slots(static_cast<size_t>(options.ring)),
      claimed(options.first), delivered(options.first) {
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
  for (uint64_t row = 0; row < rows; ++row)
    order->read(slot.batch * settings.batch + settings.part * rows + row, row, slot.rows);
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
